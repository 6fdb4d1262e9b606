"""Checks that changed against the baseline: lost ones, lower scores and how many there are."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_count
from agentci.gate.comparison import NO_LONGER_EVALUATED
from agentci.model.case import ResultChange
from agentci.model.gate import ChangedStatus, CheckChange
from agentci.model.result import CheckResult, Report
from agentci.reports.case_states import find_changes, make_check_key
from agentci.reports.check_text import format_headline
from agentci.reports.comparison import (
    describe_change,
    find_gone_configs,
    format_evaluator,
    format_whole_config,
)
from agentci.reports.contents import load_run
from agentci.reports.differences import RunDifference, find_difference
from agentci.reports.groups_and_totals import MAX_NAMES, filter_by_status, list_first_names
from agentci.reports.outcomes import CaseOutcome, list_case_outcomes

LOST_TITLE: Final = NO_LONGER_EVALUATED.capitalize()
LOWER_SCORE_TITLE: Final = "Lower score, still passing"
MAX_LOWER_SCORES: Final = 5
TOOL_FAILS: Final = "in which a tool newly fails"
# By how a result changed, what the cases with it have in common: no check may see it.
TOOL_CHANGES: Final[Mapping[ResultChange, str]] = {
    "error": TOOL_FAILS,
    "empty": "in which a tool newly returns nothing",
}


class LostChecks(Struct, frozen=True, kw_only=True):
    """Checks of one evaluator, or of a config that is gone, that are no longer evaluated.

    Attributes:
        change: ``1 → skipped``.
        status: the second part of it.
        reason: why they are skipped; empty for others.
        checks: their number.
        is_without_cases: whether they are those of cases that this run does not have.
        is_more: whether others of the evaluator are, so that these are not all.
        cases: ids.
        changed: those of them whose answer changed, if no earlier checks have them.
        difference: of the first of these that no failed check shows.
    """

    evaluator: str
    change: str
    status: ChangedStatus
    reason: str
    checks: int
    is_without_cases: bool
    is_more: bool
    cases: tuple[str, ...]
    changed: tuple[str, ...]
    difference: RunDifference | None

    @property
    def amount(self) -> str:
        """``2 checks``; beside those of removed cases, ``2 more checks``."""
        return format_count(self.checks, "more check" if self.is_more else "check")

    def format_cases(self, write: Callable[[str], str]) -> str:
        """Format ``a, b``, or ``20 checks: a, b, c, d, e, … and 15 more``.

        Args:
            write: escapes the id of a case.
        """
        names = list_first_names(self.cases, write)
        is_counted = self.checks == len(self.cases) <= MAX_NAMES and not self.is_more
        return names if is_counted else f"{self.amount}: {names}"

    def format_changed(self, write: Callable[[str], str]) -> str:
        """Format ``2 of these cases have a changed answer: a, b``, or of all."""
        if self.changed == self.cases and len(self.cases) > 1:
            return "all of these cases have a changed answer"
        verb = "has" if len(self.changed) == 1 else "have"
        names = list_first_names(self.changed, write)
        return f"{len(self.changed):,} of these cases {verb} a changed answer: {names}"


def join_lost(lost: Sequence[LostChecks]) -> list[list[LostChecks]]:
    """Join evaluators whose checks of the same cases have the same status and reason now.

    All checks of cases that this run does not have are one group.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], list[LostChecks]] = {}
    for each in lost:
        cases = () if each.is_without_cases else each.cases
        groups.setdefault((each.status, each.reason, cases), []).append(each)
    return [*groups.values()]


def format_lost(
    group: Sequence[LostChecks], write: Callable[[str], str], write_case: Callable[[str], str]
) -> str:
    """Format ``tone 1 → skipped: a, b``; of several evaluators ``a, b: 4 checks removed (...)``.

    Of cases that this run does not have, ``2 cases removed with 4 checks that passed: a, b``.

    Args:
        group: as returned by ``join_lost``.
        write: escapes the name of an evaluator.
        write_case: escapes the id of a case.
    """
    [first, *others] = group
    noun = "more check" if first.is_more else "check"
    checks = format_count(sum(each.checks for each in group), noun)
    if all(each.is_without_cases for each in group):
        cases = [*dict.fromkeys(case for each in group for case in each.cases)]
        names = list_first_names(cases, write_case)
        return f"{format_count(len(cases), 'case')} removed with {checks} that passed: {names}"
    if not others:
        return f"{write(first.evaluator)} {first.change}: {first.format_cases(write_case)}"
    names = list_first_names([each.evaluator for each in group], write)
    return f"{list_first_names(first.cases, write_case)}: {checks} {first.status} ({names})"


def list_lost_checks(report: Report) -> Iterator[LostChecks]:
    """Yield the checks that are no longer evaluated; those of a config that is gone together.

    Errored ones, and those of cases without a recorded run, have a list of their own.
    """
    comparison = report.comparison
    if comparison is None:
        return
    gone = find_gone_configs(comparison)
    results = {make_check_key(each): each for each in report.results}
    present = {(each.config, each.case.id) for each in report.results}
    groups: dict[tuple[str, ChangedStatus, str, bool], list[CheckChange]] = {}
    for compared in comparison.evaluators:
        name = format_evaluator(compared, comparison)
        if compared.config in gone:
            own = [each for each in comparison.evaluators if each.config == compared.config]
            name = format_whole_config(own)
        for change in compared.no_longer_evaluated:
            if change.status in ("errored", "unrecorded"):
                continue
            result = results.get((compared.config, compared.evaluator, change.case))
            reason = "" if result is None else format_headline(result)
            is_case = compared.config in gone or (compared.config, change.case) in present
            is_without = not is_case and change.status != "skipped"
            groups.setdefault((name, change.status, reason, is_without), []).append(change)
    changed = {
        each.summary.id: each for each in list_case_outcomes(report) if each.answer_changed is True
    }
    for (evaluator, status, reason, is_without), changes in groups.items():
        cases = tuple(dict.fromkeys(each.case for each in changes))
        found = [changed.pop(each) for each in cases if each in changed]
        # What a failed check shows is above already.
        unseen = next((each for each in found if not each.problems), found[0] if found else None)
        yield LostChecks(
            evaluator=evaluator,
            change=_describe_changes(changes),
            status=status,
            reason=reason,
            checks=len(changes),
            is_without_cases=is_without,
            is_more=not is_without and (evaluator, status, reason, True) in groups,
            cases=cases,
            changed=tuple(each.summary.id for each in found),
            difference=None if unseen is None else _find_difference(report, unseen),
        )


def _find_difference(report: Report, case: CaseOutcome) -> RunDifference | None:
    return find_difference(load_run(report, case.results).content, "baseline")


def _describe_changes(changes: Sequence[CheckChange]) -> str:
    """Describe changes to one status: ``1 → skipped``, or ``0.93 to 1 → removed``."""
    lowest, highest = (
        choose(changes, key=lambda each: 0.0 if each.before is None else each.before)
        for choose in (min, max)
    )
    low, high = describe_change(lowest), describe_change(highest)
    return high if low == high else f"{low.partition(' ')[0]} to {high}"


def list_skipped(report: Report) -> tuple[CheckResult, ...]:
    """List the skipped checks without those that ``list_causes`` has as lost."""
    changes = find_changes(report)
    return tuple(
        each
        for each in report.results
        if each.status == "skipped" and make_check_key(each) not in changes
    )


def count_tool_changes(report: Report) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield each of ``TOOL_CHANGES`` that cases have, their number, and the tools."""
    if report.comparison is None or report.comparison.no_baseline:
        return
    for kind, text in TOOL_CHANGES.items():
        found = [tools for each in list_case_outcomes(report) if (tools := each.list_tools(kind))]
        if found:
            yield text, len(found), tuple(dict.fromkeys(chain(*found)))


class LowerScore(Struct, frozen=True):
    """A check that passes as in the baseline, with a lower score."""

    evaluator: str
    change: CheckChange


def list_lower_scores(report: Report) -> list[LowerScore]:
    """List the checks whose score fell although they still pass: largest drop first."""
    if report.comparison is None:
        return []
    found = [
        LowerScore(format_evaluator(compared, report.comparison), change)
        for compared in report.comparison.evaluators
        for change in compared.lower_score
    ]
    return sorted(found, key=lambda each: (each.change.after or 0.0) - (each.change.before or 0.0))


def format_more_skips(report: Report) -> str:
    """Format that skipped checks which passed in the baseline are in another list; or nothing."""
    found = filter_by_status(report.results, "skipped")
    lost = len(found) - len(list_skipped(report))
    return f", and {lost:,} that passed in the baseline" if lost else ""
