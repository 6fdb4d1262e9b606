"""Counts the cases of both runs by class, in the words that all reports show."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_count
from agentci.gate.rules import find_coverage
from agentci.model.result import CaseState, Report, has_only_errors
from agentci.model.values import IdentityKey
from agentci.reports.case_states import CASE_CLASSES, has_lower_score, is_unrecorded
from agentci.reports.changed_checks import TOOL_CHANGES
from agentci.reports.groups_and_totals import list_first_names
from agentci.reports.outcomes import CaseOutcome, list_case_outcomes


class CaseNote(Struct, frozen=True):
    """What some cases of a class have; the classes of notes may overlap.

    Attributes:
        tools: that newly fail, if the note is about them.
    """

    count: int
    words: str
    tools: tuple[str, ...] = ()


class CaseCount(Struct, frozen=True):
    """The cases of one class.

    Attributes:
        count: of its cases.
        missing: of these, ids of those that this run has no checks of.
        notes: about cases that passed in both runs, and new failures that do not decide the class.
    """

    state: CaseState
    count: int
    missing: tuple[str, ...] = ()
    notes: tuple[CaseNote, ...] = ()


def count_cases(report: Report) -> tuple[CaseCount, ...]:
    """Count the cases of both runs by class, each in exactly one; empty without a baseline."""
    return _count_cases(IdentityKey(report)) if report.baseline else ()


# Each report format shows them.
@lru_cache(maxsize=1)
def _count_cases(key: IdentityKey[Report]) -> tuple[CaseCount, ...]:
    report = key.value
    outcomes = list_case_outcomes(report)
    missing = list_missing_cases(report)
    counts = Counter(each.state for each in outcomes)
    for state, cases in missing.items():
        counts[state] += len(cases)
    by_state: dict[CaseState, list[CaseOutcome]] = {state: [] for state in CASE_CLASSES}
    for each in outcomes:
        if each.state is not None:
            by_state[each.state].append(each)
    return tuple(
        CaseCount(
            state,
            counts[state],
            missing.get(state, ()),
            tuple(filter(_has_cases, _list_notes(report, state, found))),
        )
        for state, found in by_state.items()
        if counts[state]
    )


def _has_cases(note: CaseNote) -> bool:
    return note.count > 0


def list_missing_cases(report: Report) -> Mapping[CaseState, tuple[str, ...]]:
    """List the ids of the cases that this run has no checks of, by class.

    Those of a shard are not known.
    """
    comparison = report.comparison
    unrecorded = () if comparison is None else comparison.unrecorded_cases
    needed = find_coverage(report.gates).missing if report.shard_info is None else ()
    return {
        "unrecorded": (*unrecorded, *(each for each in needed if each not in unrecorded)),
        "removed": () if comparison is None else comparison.removed_cases,
    }


def find_missing(report: Report) -> frozenset[str]:
    """Find the ids of the cases that are missing as a whole, which is no matter of an evaluator.

    Those whose checks errored for one reason are among them.
    """
    return _find_missing(IdentityKey(report))


# Each evaluator needs them.
@lru_cache(maxsize=1)
def _find_missing(report: IdentityKey[Report]) -> frozenset[str]:
    absent = (case for cases in list_missing_cases(report.value).values() for case in cases)
    errored = (
        each.summary.id
        for each in list_case_outcomes(report.value)
        if len(each.results) > 1
        and has_only_errors(each.results)
        and len({result.reason for result in each.results}) == 1
    )
    return frozenset((*absent, *errored))


def has_uncounted_errors(report: Report) -> bool:
    """Return whether a case has an error, and is counted in another class."""
    counted = ("error", "still_errored", "unrecorded")
    return any(
        (each.state or _name_outcome(each)) not in (*counted, "errored")
        for each in list_case_outcomes(report)
        if any(result.status == "errored" for result in each.results)
    )


def _list_notes(
    report: Report, state: CaseState, cases: Sequence[CaseOutcome]
) -> Iterator[CaseNote]:
    advisory = sum(each.is_advisory_failure for each in cases)
    yield CaseNote(advisory, "with a newly failing advisory check")
    passed = cases if state == "same" else ()
    for kind, words in TOOL_CHANGES.items():
        tools = [found for each in passed if (found := each.list_tools(kind))]
        yield CaseNote(len(tools), words, tuple(dict.fromkeys(sum(tools, ()))))
    lower = sum(has_lower_score(report, each.results) for each in passed)
    yield CaseNote(lower, "with a lower score")
    yield CaseNote(sum(each.answer_changed is True for each in passed), "with a changed answer")
    yield CaseNote(sum(bool(each.changed_calls) for each in passed), "with changed tool calls")
    yield CaseNote(sum(each.has_other_results for each in passed), "with changed tool results")


def format_case_line(
    report: Report, baseline: str, *, bold: str = "", write: Callable[[str], str] = str
) -> str:
    """Format ``Cases against BASELINE: 2 newly failing, 1 fixed, 9 passed in both``.

    Without a baseline it is ``12 cases: 2 failed, 10 passed``; without cases, nothing.

    Args:
        baseline: its name, as the report format shows it.
        bold: is put around what got worse.
        write: writes the name of a tool, which is foreign text.
    """
    counts = count_cases(report)
    if not counts:
        return _format_single(report)
    return f"Cases against {baseline}: {', '.join(_format(each, bold, write) for each in counts)}"


def _format(counted: CaseCount, bold: str, write: Callable[[str], str]) -> str:
    about = CASE_CLASSES[counted.state]
    mark = bold if about.is_worse else ""
    return f"{mark}{counted.count:,} {about.words}{mark}{format_notes(counted, bold, write)}"


def format_notes(counted: CaseCount, bold: str = "", write: Callable[[str], str] = str) -> str:
    """Format what some cases of a class have: `` (2 with a lower score)``, or nothing.

    Args:
        bold, write: as for ``format_case_line``.
    """
    notes = [
        f"{bold if each.tools else ''}{each.count:,} {each.words}"
        + (f" ({list_first_names(each.tools, write)}){bold}" if each.tools else "")
        for each in counted.notes
    ]
    return f" ({', '.join(notes)})" if notes else ""


def _format_single(report: Report) -> str:
    """Format the cases of a run without a baseline by their worst check."""
    outcomes = list_case_outcomes(report)
    if not outcomes:
        return ""
    counts = Counter(map(_name_outcome, outcomes))
    counts["unrecorded"] += len(list_missing_cases(report)["unrecorded"])
    shown = (f"{counts[name]:,} {words}" for name, words in _OUTCOME_WORDS.items() if counts[name])
    return f"{format_count(counts.total(), 'case')}: {', '.join(shown)}"


_OUTCOME_WORDS: Final = {
    "failed": "failed",
    "errored": "errored",
    "unrecorded": CASE_CLASSES["unrecorded"].words,
    "passed": "passed",
    "skipped": CASE_CLASSES["not_evaluated"].words,
}


def _name_outcome(case: CaseOutcome) -> str:
    if is_unrecorded(case.results):
        return "unrecorded"
    statuses = {each.status for each in case.results}
    return next(name for name in _OUTCOME_WORDS if name in statuses)
