"""Recorded runs as far as they are compared, with their turns and tool calls in pairs."""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentci._util.text import json_text
from agentci._util.text.patterns import EPOCH, TEMPORARY_PATH, UUID
from agentci.model.result import ContentLevel
from agentci.reports.tool_calls import align

# Of a turn, as many as the page aligns.
MAX_ALIGNED: Final = 200
# Of longer arguments, ids and times are compared, too.
MAX_COMPARED: Final = 20_000

# What differs in each recording: temporary files, ids of mixed letters and digits, such as
# ``call_5kVb81mGqQ2d``, times since 1970, and times with seconds, which no question has.
_UNSTABLE: Final = re.compile(
    rf"""{UUID}|{TEMPORARY_PATH}|\b0x[0-9a-f]+"""
    r"""|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"""
    r"""|(?<![a-z0-9])(?=[a-z]*\d+[a-z]+\d)[a-z0-9]{12,}(?![a-z0-9])"""
    rf"""|{EPOCH}"""
    r"""|\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d:(?!00(?![.,\d]))\d\d(?:[.,]\d+)?(?:z|[+-]\d\d:?\d\d)?""",
    re.IGNORECASE,
)


class ComparedCall(Struct):
    """What is read of a ``CallContent``."""

    name: str
    arguments: Any = None
    result: Any | UnsetType = UNSET
    error: bool | None = None
    failed: bool = False

    @property
    def key(self) -> tuple[str, Any]:
        """What equal calls share."""
        return self.name, self.arguments


class ComparedTurn(Struct):
    """What is read of a ``TurnContent``."""

    user: str = ""
    answer: str | None = None
    calls: tuple[ComparedCall, ...] = ()
    missing: bool = False
    cut: Mapping[str, int] = {}


class _Subagent(Struct):
    turns: tuple[ComparedTurn, ...] = ()
    name: str | None = None


class ComparedRun(Struct):
    """What is read of a ``RunContent`` to compare it."""

    turns: tuple[ComparedTurn, ...] = ()
    subagents: tuple[_Subagent, ...] = ()
    level: ContentLevel = "full"
    printed: str | None = None

    @property
    def recorded(self) -> list[ComparedTurn]:
        """The turns that the run has."""
        return [turn for turn in self.turns if not turn.missing]

    @property
    def tools(self) -> set[str]:
        """The names of all tools that the run calls."""
        calls = (call for turn in self.turns for call in turn.calls)
        return {each.name for each in (*calls, *self.calls_of_subagents)}

    @property
    def calls_of_subagents(self) -> tuple[ComparedCall, ...]:
        """All of them, in order."""
        return tuple(call for each in self.subagents for turn in each.turns for call in turn.calls)


# A call, and the index of that of the baseline.
_Indexed: TypeAlias = tuple[ComparedCall, int]


def read_run(data: bytes) -> ComparedRun:
    """Read what is compared of an encoded ``RunContent``."""
    return _DECODER.decode(data)


_DECODER: Final = msgspec.json.Decoder(ComparedRun)


class CallPairs(Struct):
    """The calls of a turn, and the indexes of those in the baseline.

    Attributes:
        equal: with the same arguments, but for ids and times; perhaps in another order.
        changed: of the same tool, with other arguments.
        added, removed: only in one of both runs.
    """

    equal: list[_Indexed]
    changed: list[_Indexed]
    added: list[ComparedCall]
    removed: list[int]


class PairedTurns(Struct):
    """Two turns with their calls in pairs.

    Attributes:
        known: ids and times that the question of the baseline gives, which are compared.
        has_results: whether the results of equal calls are compared.
    """

    turn: ComparedTurn
    before: ComparedTurn
    calls: CallPairs
    known: AbstractSet[str]
    has_results: bool = True


def pair_turns(run: ComparedRun, before: ComparedRun) -> Iterator[PairedTurns]:
    """Pair turns by their order, also those of sub-agents if both runs started the same.

    Else only the calls of all sub-agents are compared.
    """
    for turn, old in zip(run.recorded, before.recorded, strict=False):
        yield _pair_turn(turn, old)
    if before.level != "full":  # without sub-agents
        return
    if [each.name for each in run.subagents] == [each.name for each in before.subagents]:
        for own, other in zip(run.subagents, before.subagents, strict=True):
            for turn, old in zip(own.turns, other.turns, strict=False):
                yield _pair_turn(turn, old)
    else:
        turns = (ComparedTurn(calls=each.calls_of_subagents) for each in (run, before))
        yield _pair_turn(*turns, has_results=False)


def _pair_turn(
    turn: ComparedTurn, before: ComparedTurn, *, has_results: bool = True
) -> PairedTurns:
    known = {found[0] for found in _UNSTABLE.finditer(before.user[:MAX_COMPARED])}
    calls = _pair_calls(turn.calls, before.calls, known)
    return PairedTurns(turn, before, calls, known, has_results)


def _pair_calls(
    calls: Sequence[ComparedCall], before: Sequence[ComparedCall], known: AbstractSet[str]
) -> CallPairs:
    """Pair calls as the page does, but equal ones also if they are in another order."""
    if [each.key for each in calls] == [each.key for each in before]:
        return CallPairs([(call, index) for index, call in enumerate(calls)], [], [], [])
    keys, old = ([_make_key(each, known) for each in side] for side in (calls, before))
    # Their numbers are compared faster than the texts.
    numbers = {key: number for number, key in enumerate(dict.fromkeys((*old, *keys)))}
    own, other = ([numbers[key] for key in side] for side in (keys, old))

    def rate(then: int, now: int) -> int:
        if before[then].name != calls[now].name:
            return 0
        return 3 if other[then] == own[now] else 1

    aligned = range(len(old[:MAX_ALIGNED])), range(len(keys[:MAX_ALIGNED]))
    similar = [(n, t) for t, n in align(*aligned, rate) if t is not None and n is not None]
    right, left = dict.fromkeys(range(len(keys))), dict.fromkeys(range(len(old)))

    def take(pairs: Iterable[tuple[int, int]]) -> Iterator[_Indexed]:
        for now, then in pairs:
            if now in right and then in left:
                del right[now], left[then]
                yield calls[now], then

    equal = [*take(each for each in similar if own[each[0]] == other[each[1]])]
    # These have another place than in the baseline.
    equal += take(_match(right, left, own, other))
    names, old_names = ([each.name for each in side] for side in (calls, before))
    changed = [*take(similar), *take(_match(right, left, names, old_names))]
    return CallPairs(equal, changed, [calls[now] for now in right], [*left])


def _match(
    right: Iterable[int], left: Iterable[int], keys: Sequence[Any], old: Sequence[Any]
) -> list[tuple[int, int]]:
    """Pair the indexes of calls with equal keys, in order."""
    places: dict[Any, deque[int]] = {}
    for then in left:
        places.setdefault(old[then], deque()).append(then)
    return [(now, places[keys[now]].popleft()) for now in right if places.get(keys[now])]


def hide_unstable(text: str, known: AbstractSet[str]) -> str:
    """Write ``#`` for the ids and times in an argument that are not known."""
    return _UNSTABLE.sub(lambda found: found[0] if found[0] in known else "#", text)


def _make_key(call: ComparedCall, known: AbstractSet[str]) -> str:
    """Make what calls share that are equal but for ids and times."""
    arguments = json.dumps(json_text.make_strict(call.arguments), sort_keys=True)
    if len(arguments) <= MAX_COMPARED:
        arguments = hide_unstable(arguments, known)
    return f"{call.name}\n{arguments}"
