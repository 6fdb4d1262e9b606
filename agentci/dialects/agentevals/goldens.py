"""Which golden case a recording is judged by, as agentevals 0.11.0 chooses it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agentci.model.case import Case, Golden, GoldenSet
from agentci.model.trace import Trace
from agentci.text.words import count

NO_EVAL_SET: Final = "no eval set provided"
NO_TURNS: Final = "no turns to match"
NO_USER_INPUT: Final = "no user input to match"
NO_MATCH: Final = "no matching eval case"
AMBIGUOUS: Final = "ambiguous eval case"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The outcome for all recordings of a run.

    Attributes:
        cases: one a recording, in their order.
        uncovered: golden cases with turns that no recording was matched with.
    """

    cases: tuple[Case, ...]
    uncovered: tuple[Golden, ...]


def choose(traces: Sequence[Trace], goldens: GoldenSet | None) -> Choice:
    """Give each recording its golden case, or the reason why it has none."""
    index = None if goldens is None else _Index(goldens.cases, are_alone=len(traces) == 1)
    found = [NO_EVAL_SET if index is None else index.find(trace) for trace in traces]
    ids = _unique(
        golden.id if isinstance(golden, Golden) else trace.key or trace.id
        for trace, golden in zip(traces, found, strict=True)
    )
    covered = {golden.id for golden in found if isinstance(golden, Golden)}
    usable = () if index is None else index.usable
    return Choice(
        cases=tuple(map(_case, ids, traces, found)),
        uncovered=tuple(golden for golden in usable if golden.id not in covered),
    )


def multi_turn(goldens: GoldenSet | None) -> bool:
    """Tell whether any golden case is a conversation, so that recordings have to be grouped."""
    return goldens is not None and any(len(golden.turns) > 1 for golden in goldens.cases)


def _case(case_id: str, trace: Trace, found: Golden | str) -> Case:
    if isinstance(found, str):
        return Case(id=case_id, trace=trace, no_golden_because=found)
    expected, recorded = len(found.turns), len(trace.turns)
    if expected != recorded:
        warning = f"{count(expected, 'turn')} expected by the golden case, {recorded} recorded"
        trace = replace(trace, warnings=tuple(sorted({*trace.warnings, warning})))
    return Case(id=case_id, trace=trace, golden=found)


class _Index:
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


def _unique(ids: Iterable[str]) -> Iterator[str]:
    """Number what comes again: ``x``, ``x#2``, ``x#3``."""
    taken: set[str] = set()
    counts: Counter[str] = Counter()
    for original in ids:
        unique = ""
        while not unique or unique in taken:
            counts[original] += 1
            unique = original if counts[original] == 1 else f"{original}#{counts[original]}"
        taken.add(unique)
        yield unique
