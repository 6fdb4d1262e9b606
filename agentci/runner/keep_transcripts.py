"""Keeps what evaluators were sent and what came back, for as many checks as a page has room for."""

from collections.abc import Sequence
from threading import Lock
from typing import Final, TypeAlias

from msgspec import Struct, to_builtins

from agentci._util.text.strict_json import in_a_page
from agentci.model.call import Exchanges
from agentci.model.choices import ExchangesOf
from agentci.model.result import Result
from agentci.runner.transcript import Dealing, exchanged

# Of all checks of a run, as the page holds them.
MAX_CHARACTERS: Final = 8 * 1024**2


class ExchangeLog:
    """The exchanges of the worst checks, from any number of threads.

    Never more than twice the room is taken, however many checks there are.

    Args:
        of: which checks they are kept of.
        room: characters for all of them.
    """

    def __init__(self, of: ExchangesOf, *, room: int = MAX_CHARACTERS) -> None:
        self._of = of
        self._room = room
        self._lock = Lock()
        self._kept: dict[str, _Kept] = {}
        self._left_out: set[str] = set()
        self._taken = 0
        self._bar = _NO_BAR

    def keep(self, result: Result, dealings: Sequence[Dealing], secrets: tuple[str, ...]) -> None:
        """Take what a check was about; of several runs of one, the last that is of interest.

        Args:
            secrets: what nobody is to read of it.
        """
        if self._of == "none" or (self._of == "failed" and result.status == "passed"):
            return
        badness = _badness(result)
        has_room = badness < self._bar
        packed = in_a_page(to_builtins(exchanged(dealings, secrets))) if has_room else ""
        with self._lock:
            if before := self._kept.pop(result.id, None):
                self._taken -= len(before.packed)
            if not has_room:
                self._left_out.add(result.id)
                return
            self._kept[result.id] = _Kept(packed=packed, badness=badness)
            self._taken += len(packed)
            self._left_out.discard(result.id)
            if self._taken > 2 * self._room:
                self._make_room()

    def worst(self) -> Exchanges:
        """What there is room for, the worst first."""
        with self._lock:
            self._make_room()
            return Exchanges(
                packed={id_: each.packed for id_, each in self._kept.items()},
                left_out=frozenset(self._left_out),
            )

    def _make_room(self) -> None:
        """Keep the worst; nothing that is less bad has room where something else had none."""
        found = sorted(self._kept.items(), key=lambda item: item[1].badness)
        self._kept, self._taken = {}, 0
        for index, (id_, each) in enumerate(found):
            if self._taken + len(each.packed) > self._room:
                self._left_out.update(left for left, _ in found[index:])
                self._bar = each.badness
                return
            self._kept[id_] = each
            self._taken += len(each.packed)


_Badness: TypeAlias = tuple[int, bool, float, str]


class _Kept(Struct, frozen=True, kw_only=True):
    packed: str
    badness: _Badness


_ORDER: Final = {"failed": 0, "errored": 0, "skipped": 1, "passed": 2}
_NO_BAR: Final[_Badness] = (len(_ORDER), False, 0.0, "")


def _badness(result: Result) -> _Badness:
    """Less for what is worse; what has no score is worst.

    Of equals some have room, the same ones whenever they come, and of all evaluators.
    """
    score = None if result.judgement is None else result.judgement.score
    order = _ORDER[result.status]
    return order, not result.evaluator.required, -1.0 if score is None else score, result.id
