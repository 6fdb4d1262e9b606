"""What got worse in a run, one entry per cause, for the comment, the summary and the terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count, format_score
from agentci.model.gate import CheckChange
from agentci.model.result import CheckResult, Report
from agentci.reports.case_outcomes import CaseOutcome, list_case_outcomes, rank_problem
from agentci.reports.check_text import (
    format_headline,
    format_reason,
    list_findings,
    shorten_quotes,
    split_lines,
)
from agentci.reports.comparison import (
    MIN_CHANGE,
    count_gone,
    describe_change,
    format_evaluator,
    format_note,
)
from agentci.reports.contents import show_case
from agentci.reports.first_difference import FirstDifference, find_first_difference
from agentci.reports.report_format import list_case_names
from agentci.reports.tool_calls import find_unmatched_turns

LOST_TITLE: Final = "Passed in the baseline, not evaluated now"
MAX_LOWER_SCORES: Final = 5

# Config, evaluator and case.
_CheckKey: TypeAlias = tuple[str, str, str]


class FailedCheck(Struct, frozen=True, kw_only=True):
    """A failed check.

    Attributes:
        before: its score in the baseline, else its status; empty if it has none.
        after: its score.
        note: what else to know about the change; empty for nothing.
        reason: why it failed, on one line; empty if nothing says it.
        findings: all that its evaluator found, by line.
        shows_calls: whether these lines have all tool calls that differ.
    """

    result: CheckResult
    before: str
    after: str
    note: str
    reason: str
    findings: tuple[str, ...]
    shows_calls: bool


class Cause(Struct, frozen=True, kw_only=True):
    """Cases that fail for the same reasons.

    Attributes:
        case: the worst of them, which the other attributes describe.
        others: ids of the others.
        checks: its failed ones, required before advisory, the worst first.
        difference: what differs first; None if nothing does or if that is not known.
    """

    case: CaseOutcome
    others: tuple[str, ...]
    checks: tuple[FailedCheck, ...]
    difference: FirstDifference | None

    @property
    def question(self) -> str:
        """The first question; empty if it is the id of the case."""
        summary = self.case.summary
        found = next((turn.question for turn in summary.dialogue if turn.question), "")
        return "" if found == summary.id else found

    def format_others(self, write: Callable[[str], str]) -> str:
        """Format ``2 more cases fail in the same way: a, b``; empty for none.

        Args:
            write: escapes the id of a case.
        """
        if not self.others:
            return ""
        verb = "fails" if len(self.others) == 1 else "fail"
        names = list_case_names(self.others, write)
        return f"{format_count(len(self.others), 'more case')} {verb} in the same way: {names}"


class LostChecks(Struct, frozen=True, kw_only=True):
    """Checks of one evaluator that passed in the baseline and are skipped or removed now.

    Attributes:
        change: ``1 → skipped``.
        reason: why they are skipped; empty for removed ones.
        cases: ids.
    """

    evaluator: str
    change: str
    reason: str
    cases: tuple[str, ...]


class Causes(Struct, frozen=True, kw_only=True):
    """What got worse, and what still fails as in the baseline.

    Attributes:
        new, known: cases by cause, the most first; in each, the worst case first.
    """

    report: Report
    worse: Mapping[_CheckKey, CheckChange]
    new: tuple[Sequence[CaseOutcome], ...]
    known: tuple[Sequence[CaseOutcome], ...]
    lost: tuple[LostChecks, ...]

    def describe(self, group: Sequence[CaseOutcome]) -> Cause:
        """Describe the worst case of a cause."""
        case, *others = group
        difference = find_first_difference(show_case(self.report, case.results).content)
        return Cause(
            case=case,
            others=tuple(each.summary.id for each in others),
            checks=tuple(
                self._describe_check(each, quotes=difference is None)
                for each in case.problems
                if each.status == "failed"
            ),
            difference=difference,
        )

    def _describe_check(self, result: CheckResult, *, quotes: bool) -> FailedCheck:
        change = self.worse.get(_make_key(result))
        reason = truncate.join_first_and_last(split_lines(format_reason(result)))
        judgement, threshold = result.judgement, result.evaluator.threshold
        return FailedCheck(
            result=result,
            before=self._format_before(result, change),
            after="failed" if result.score is None else format_score(result.score, threshold),
            note="" if change is None else format_note(change),
            reason=reason if quotes else shorten_quotes(reason, result),
            findings=list_findings(result, quotes=quotes),
            shows_calls=judgement is not None and bool(find_unmatched_turns(judgement.details)),
        )

    def _format_before(self, result: CheckResult, change: CheckChange | None) -> str:
        if change is not None and change.before is not None:
            return format_score(change.before)
        before = self.report.baseline.get(result.id)
        if before is None:
            return ""
        return before.status if before.score is None else format_score(before.score)


def list_causes(report: Report) -> Causes:
    """Group failed cases by cause, and checks that are not evaluated any more by reason.

    A case that fails as in the baseline is new if one of its checks passed there by the evaluators
    of that time.
    """
    worse = _find_worse(report)
    new: list[CaseOutcome] = []
    known: list[CaseOutcome] = []
    for case in list_case_outcomes(report):
        failed = [each for each in case.results if each.status == "failed"]
        if failed:
            got_worse = any(_make_key(each) in worse for each in failed)
            (known if case.state == "still_failing" and not got_worse else new).append(case)
    return Causes(
        report=report,
        worse=worse,
        new=tuple(_group_by_cause(new)),
        known=tuple(_group_by_cause(known)),
        lost=tuple(_list_lost(report)),
    )


def _group_by_cause(outcomes: Sequence[CaseOutcome]) -> list[list[CaseOutcome]]:
    """Group cases that fail for the same reasons.

    Groups with the most cases come first, then those with the most failures, then the worst.
    """
    groups: dict[int | None, list[CaseOutcome]] = {}
    for each in outcomes:
        groups.setdefault(each.cluster, []).append(each)
    for group in groups.values():
        group.sort(key=lambda case: rank_problem(case.problems[0]))
    return sorted(
        groups.values(),
        key=lambda group: (
            -len(group),
            -len(group[0].problems),
            rank_problem(group[0].problems[0]),
        ),
    )


def _make_key(result: CheckResult) -> _CheckKey:
    return result.config, result.evaluator.name, result.case.id


def _find_worse(report: Report) -> Mapping[_CheckKey, CheckChange]:
    compared = report.comparison.evaluators if report.comparison else ()
    return {
        (each.config, each.evaluator, change.case): change
        for each in compared
        for change in each.worse
    }


def _list_lost(report: Report) -> Iterator[LostChecks]:
    if report.comparison is None:
        return
    skipped = {_make_key(each): each for each in report.results if each.status == "skipped"}
    groups: dict[tuple[str, str, str], list[CheckChange]] = {}
    for compared in report.comparison.evaluators:
        name = format_evaluator(compared, report.comparison)
        for change in compared.worse:
            if change.status in ("skipped", "removed"):
                result = skipped.get((compared.config, compared.evaluator, change.case))
                reason = "" if result is None else format_headline(result)
                groups.setdefault((name, change.status, reason), []).append(change)
    for (evaluator, _, reason), changes in groups.items():
        cases = tuple(each.case for each in changes)
        yield LostChecks(
            evaluator=evaluator, change=_describe_changes(changes), reason=reason, cases=cases
        )


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
    worse = _find_worse(report)
    return tuple(
        each for each in report.results if each.status == "skipped" and _make_key(each) not in worse
    )


def format_changes(report: Report) -> tuple[str, ...]:
    """Format how many cases changed: ``2 new failures``, ``1 fixed``, ``3 changed answers``.

    New failures come first. Checks that passed and are skipped or removed now are counted beside
    the cases. Empty without a baseline, or if nothing changed.
    """
    if not report.baseline:
        return ()
    outcomes, causes = list_case_outcomes(report), list_causes(report)
    new = sum(case.state != "error" for group in causes.new for case in group)
    states = [each.state for each in outcomes]
    counts = [
        (new, "new failure", "new failures"),
        (states.count("error"), "error", "errors"),
        (sum(map(len, causes.known)), "still failing", "still failing"),
        (states.count("fixed"), "fixed", "fixed"),
        (
            sum(each.answer_changed is True for each in outcomes),
            "changed answer",
            "changed answers",
        ),
    ]
    texts = [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
    return (*texts, *(count_gone(report.comparison) if report.comparison else ()))


class LowerScore(Struct, frozen=True):
    """A check that passes as in the baseline, with a lower score."""

    result: CheckResult
    before: float
    after: float


def list_lower_scores(report: Report) -> list[LowerScore]:
    """List the checks whose score fell although they still pass: largest drop first."""
    found: list[LowerScore] = []
    for result in report.results if report.baseline else ():
        before, after = report.baseline.get(result.id), result.score
        if before is None or {result.status, before.status} != {"passed"}:
            continue
        if before.score is None or after is None or result.evaluator.better == "lower":
            continue
        if before.score - after >= MIN_CHANGE:
            found.append(LowerScore(result, before.score, after))
    return sorted(found, key=lambda each: each.after - each.before)
