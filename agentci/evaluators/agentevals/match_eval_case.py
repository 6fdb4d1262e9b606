"""Which golden case a recording is judged by, as agentevals 0.11.0 chooses it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from agentci._util.text.format import count
from agentci.model.case import Case, Golden, GoldenSet
from agentci.model.dataset import Row
from agentci.model.trace import Trace
from agentci.model.values import replace

NO_EVAL_SET: Final = "no eval set provided"
NO_TURNS: Final = "no turns to match"
NO_USER_INPUT: Final = "no user input to match"
NO_MATCH: Final = "no matching eval case"
AMBIGUOUS: Final = "ambiguous eval case"


class Matching:
    """Gives the recordings of a run their golden cases, one after the other."""

    def __init__(self, goldens: GoldenSet | None, *, are_alone: bool) -> None:
        """Begin.

        Args:
            goldens: None where there is no eval set.
            are_alone: a single recording is judged.
        """
        self._index = None if goldens is None else Index(goldens.cases, are_alone=are_alone)
        self._ids = _Ids()
        self._covered: set[str] = set()

    def case_of(self, trace: Trace, row: Row | None = None) -> Case:
        """The recording beside its golden case, or the reason why it has none.

        Args:
            row: that the agent was asked by.
        """
        found = NO_EVAL_SET if self._index is None else self._index.find(trace)
        if isinstance(found, str):
            case_id = self._ids.unique(row.id if row else trace.key or trace.id)
            return Case(id=case_id, trace=trace, no_golden_because=found, row=row)
        self._covered.add(found.id)
        expected, recorded = len(found.turns), len(trace.turns)
        if expected != recorded:
            warning = f"{count(expected, 'turn')} expected by the golden case, {recorded} recorded"
            trace = replace(trace, warnings=tuple(sorted({*trace.warnings, warning})))
        return Case(id=self._ids.unique(found.id), trace=trace, golden=found, row=row)

    @property
    def uncovered(self) -> tuple[Golden, ...]:
        """Golden cases with turns that no recording was matched with."""
        usable = () if self._index is None else self._index.usable
        return tuple(golden for golden in usable if golden.id not in self._covered)


def multi_turn(goldens: GoldenSet | None) -> bool:
    """Tell whether any golden case is a conversation, so that recordings have to be grouped."""
    return goldens is not None and any(len(golden.turns) > 1 for golden in goldens.cases)


class Index:
    """The golden cases of one set, by id and by what the user asks first.

    A set with a single usable case is meant for the recording, whatever was asked, where that is
    alone as well.
    """

    def __init__(self, goldens: Iterable[Golden], *, are_alone: bool) -> None:
        self.usable = tuple(golden for golden in goldens if golden.turns)
        self._by_id = {golden.id: golden for golden in reversed(self.usable)}
        self._by_text: defaultdict[str, list[Golden]] = defaultdict(list)
        for golden in self.usable:
            self._by_text[_normalised(golden.turns[0].user_text)].append(golden)
        self._only = self.usable[0] if are_alone and len(self.usable) == 1 else None

    def find(self, trace: Trace) -> Golden | str:
        """Find the golden case of a recording, or the reason why there is none."""
        if trace.golden_id is not None:
            return self._by_id.get(trace.golden_id, f"eval case '{trace.golden_id}' not found")
        if not trace.turns:
            return NO_TURNS
        text = _normalised(trace.turns[0].user_text)
        if not text:
            return self._only or NO_USER_INPUT
        candidates = self._by_text.get(text, [])
        if not candidates:
            return self._only or NO_MATCH
        return _by_length(candidates, len(trace.turns))


def _by_length(candidates: Sequence[Golden], turns: int) -> Golden | str:
    if len(candidates) > 1:
        candidates = [golden for golden in candidates if len(golden.turns) == turns]
    return candidates[0] if len(candidates) == 1 else AMBIGUOUS


def _normalised(text: str) -> str:
    return " ".join(text.split()).casefold()


class _Ids:
    """Numbers what comes again: ``x``, ``x#2``, ``x#3``."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: Counter[str] = Counter()

    def unique(self, original: str) -> str:
        unique = ""
        while not unique or unique in self._taken:
            self._counts[original] += 1
            times = self._counts[original]
            unique = original if times == 1 else f"{original}#{times}"
        self._taken.add(unique)
        return unique
