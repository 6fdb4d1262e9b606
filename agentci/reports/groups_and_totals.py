"""Groups of results, and the totals, titles and short texts that several reports share."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count, format_number, format_percent, format_score
from agentci.gate import statistics
from agentci.gate.decision import compute_totals
from agentci.model.case import CaseSummary
from agentci.model.gate import POOLED
from agentci.model.result import (
    EXIT_ERRORED,
    EXIT_INVALID_INPUT,
    SCORED_STATUSES,
    CheckResult,
    Decision,
    JudgeSpending,
    ModelCost,
    Report,
    Status,
    Totals,
)
from agentci.model.values import COMMAND_LINE, IdentityKey, Place, Problem, Severity
from agentci.reports.check_text import find_reason_key, format_headline, hide_case_values
from agentci.reports.workflow_commands import LEVELS, Annotation

PERCENT = 100


class EvaluatorStats(Struct, frozen=True, kw_only=True):
    """Statistics over the checks of one evaluator that passed or failed.

    Attributes:
        pass_rate: 0 to 1; None without checks.
        pass_rate_interval: at 95%; None for too few groups.
        score_interval: of the mean score, at 95%; None for too few groups.
        groups: number of independent groups of cases.
    """

    pass_rate: float | None
    pass_rate_interval: statistics.ConfidenceInterval | None
    score_interval: statistics.ConfidenceInterval | None
    groups: int


def compute_evaluator_stats(results: Sequence[CheckResult]) -> EvaluatorStats:
    """Compute statistics of the checks of one evaluator of one config."""
    passes: dict[str, list[bool]] = {}
    scores: dict[str, list[float]] = {}
    for result in results:
        if result.status in SCORED_STATUSES:
            group, score = result.case.group, result.score
            passes.setdefault(group, []).append(result.status == "passed")
            if score is not None and math.isfinite(score):
                scores.setdefault(group, []).append(score)
    judged = [*chain.from_iterable(passes.values())]
    return EvaluatorStats(
        pass_rate=sum(judged) / len(judged) if judged else None,
        pass_rate_interval=_find_interval([*passes.values()]),
        score_interval=_find_interval([*scores.values()]),
        groups=len(passes),
    )


def _find_interval(groups: Sequence[Sequence[float]]) -> statistics.ConfidenceInterval | None:
    enough = len(groups) >= statistics.MIN_SHOWN_GROUPS
    return statistics.mean_confidence_interval(groups) if enough else None


def format_pass_rate(stats: EvaluatorStats) -> str:
    """Format ``75% (45 to 92%)``; "" without a pass rate."""
    if stats.pass_rate is None:
        return ""
    rate = format_percent(stats.pass_rate)
    interval = stats.pass_rate_interval
    if interval is None:
        return rate
    # Round outwards, so that the interval never looks narrower than it is.
    low, high = math.floor(interval.low * PERCENT), math.ceil(interval.high * PERCENT)
    return f"{rate} ({low} to {high}%)"


def format_mean_score(score: float | None, stats: EvaluatorStats) -> str:
    """Format ``0.71 (0.62 to 0.81)``, without an interval equal to that of the pass rate."""
    if score is None:
        return ""
    interval = stats.score_interval
    if interval in (None, stats.pass_rate_interval):
        return format_score(score)
    return (
        f"{format_score(score)} ({format_number(interval.low, 2)} to "
        f"{format_number(interval.high, 2)})"
    )


def format_path(file: str) -> str:
    """Format a file path for display; the command line has a name of its own."""
    return "command line" if file == COMMAND_LINE.file else file


def place_in_file(place: Place | None) -> Place | None:
    """Return ``place`` if an editor can open it, else None."""
    return None if place is None or place.file == COMMAND_LINE.file else place


def format_problem(problem: Problem) -> str:
    """Format a problem as ``FILE:LINE:COLUMN: SEVERITY: MESSAGE; HINT``; the place if in a file."""
    place = "" if problem.place in (None, COMMAND_LINE) else f"{problem.place}: "
    return f"{place}{problem.severity}: {format_problem_text(problem)}"


def format_problem_text(problem: Problem) -> str:
    """Format a problem without its place and severity: ``MESSAGE; HINT``."""
    return problem.message if problem.hint is None else f"{problem.message}; {problem.hint}"


def count_problems(problems: Sequence[Problem]) -> str:
    """Count problems by severity: "2 errors, 1 warning"; "no problems" without any."""
    found = [problem.severity for problem in problems]
    counts = (format_count(found.count(level), level) for level in LEVELS if level in found)
    return ", ".join(counts) or "no problems"


# Decimals of an amount in dollars: one judge call costs hundredths of a cent.
USD_DIGITS = 4


def format_spending(spending: Sequence[JudgeSpending]) -> str:
    """Format what the judges of all configs cost together; "" without judges."""
    if not spending:
        return ""
    priced = all(each.priced for each in spending)
    spent = sum((each.spent for each in spending), ModelCost())
    saved = sum((each.saved for each in spending), ModelCost())
    line = f"Judge usage: {_format_charge(spent, priced=priced)}"
    return (
        f"{line}; saved by cached responses: {_format_charge(saved, priced=priced)}"
        if saved.calls
        else line
    )


def _format_charge(charge: ModelCost, *, priced: bool) -> str:
    usd = f", ${format_number(charge.usd, USD_DIGITS)}" if priced else ""
    return f"{format_count(charge.calls, 'call')}, {format_count(charge.tokens, 'token')}{usd}"


MAX_NAMES = 5

Verdict: TypeAlias = Literal["passed", "failed", "error", "invalid", "partial"]


class EvaluatorChecks(Struct, frozen=True, kw_only=True, dict=True):
    """The checks of one evaluator of one config."""

    results: tuple[CheckResult, ...]
    totals: Totals

    @property
    def representative(self) -> CheckResult:
        """Any one result, for what all share: evaluator name, threshold, place."""
        return self.results[0]

    @cached_property
    def stats(self) -> EvaluatorStats:
        """Pass rate and confidence intervals of the checks."""
        return compute_evaluator_stats(self.results)


def group_by_evaluator(
    results: tuple[CheckResult, ...], *, by_place: bool = False
) -> tuple[EvaluatorChecks, ...]:
    """Group results by config and evaluator, in the order of their first result.

    Args:
        by_place: whether to separate evaluators of the same name on different lines, such as those
            of different cases of an eval file.
    """
    return _group_by_evaluator(IdentityKey(results), by_place=by_place)


# Nearly every report format of a run needs the groups.
@lru_cache(maxsize=2)
def _group_by_evaluator(
    results: IdentityKey[tuple[CheckResult, ...]], *, by_place: bool
) -> tuple[EvaluatorChecks, ...]:
    groups: dict[tuple[str, str, Place | None], list[CheckResult]] = {}
    for result in results.value:
        place = result.evaluator.place if by_place else None
        key = (result.config, result.evaluator.name, place)
        groups.setdefault(key, []).append(result)
    return tuple(
        EvaluatorChecks(results=tuple(group), totals=compute_totals(group))
        for group in groups.values()
    )


def has_several_configs(results: Sequence[CheckResult]) -> bool:
    """Whether the results come from several configs, so that names may repeat."""
    return len({result.config for result in results}) > 1


def filter_by_status(results: Sequence[CheckResult], status: Status) -> tuple[CheckResult, ...]:
    """Return the results with the given status."""
    return tuple(result for result in results if result.status == status)


def sort_worst_first(results: Sequence[CheckResult]) -> list[CheckResult]:
    """Sort required before advisory, then by score, lowest first; no score comes first."""

    def sort_key(result: CheckResult) -> tuple[bool, float]:
        return (not result.evaluator.required, -1.0 if result.score is None else result.score)

    return sorted(results, key=sort_key)


def get_verdict(decision: Decision) -> Verdict:
    """Return the decision in one word.

    ``partial`` is a shard in which nothing failed: the other shards decide, too.
    """
    if not (decision.passed or decision.is_failure):
        return "partial"
    return "passed" if decision.passed else _FAILED_VERDICTS.get(decision.exit_code, "failed")


def is_invalid_input(report: Report) -> bool:
    """Whether invalid input kept all checks from running, so that only problems are shown."""
    return get_verdict(report.decision) == "invalid" and not report.results


def format_totals(totals: Totals, part: str = "") -> str:
    """Format the counts above 0: ``25 checks: 21 passed, 4 skipped; mean score 0.99``.

    The mean is that of passed and failed checks; the text shows that if there are errors.

    Args:
        part: ``required `` or ``advisory `` if these are not all checks.
    """
    counts = ", ".join(
        f"{count:,} {status}"
        for status in ("passed", "failed", "errored", "skipped")
        if (count := getattr(totals, status))
    )
    score = choose_mean(totals)
    mean = "" if score is None else f"; mean score {format_score(score)}"
    mean += " without the errors" if mean and totals.errored else ""
    return f"{format_count(totals.checks, f'{part}check')}: {counts}{mean}"


def choose_mean(totals: Totals) -> float | None:
    """Return the mean score; None without one, or if it is 1 although checks failed."""
    return None if totals.failed and (totals.score or 0.0) >= 1 else totals.score


def name_no_score(totals: Totals) -> str:
    """Say what an evaluator has instead of a mean score: ``skipped``, ``errored``."""
    if totals.score is not None:
        return "\N{EN DASH}"
    statuses: tuple[Status, ...] = ("skipped", "errored")
    return next((each for each in statuses if getattr(totals, each) == totals.checks), "no score")


def format_counts(report: Report) -> str:
    """Format the totals of a report, with the number of cached checks; "" without checks.

    Advisory checks are counted apart, as verdicts count required ones only.
    """
    if not report.results:
        return ""
    advisory = [each for each in report.results if not each.evaluator.required]
    required = [each for each in report.results if each.evaluator.required]
    parts = {"required ": required, "advisory ": advisory} if advisory else {"": required}
    counts = [format_totals(compute_totals(each), part) for part, each in parts.items() if each]
    if cached := sum(result.cached for result in report.results):
        counts.append(f"{cached:,} cached")
    return "; ".join(counts)


def format_thresholds(result: CheckResult, report: Report) -> str:
    """Format what a check needs to pass, and the thresholds of only its evaluator's checks."""
    gate = next((each for each in report.gates if each.config == result.config), None)
    own = None if gate is None else gate.policy.evaluators.get(result.evaluator.name)
    values = {key: getattr(own, key, None) for key in POOLED}
    shown = [f"{key} {value:g}" for key, value in values.items() if value is not None]
    return "; ".join([result.evaluator.criterion, *shown])


def group_by_reason(
    results: Sequence[CheckResult],
) -> dict[tuple[str, tuple[str, ...], str], list[CaseSummary]]:
    """Group cases by config, evaluators and reason, without what is another one in each case.

    Evaluators that say the same of a case are together: what is wrong with its run is one problem.

    Returns:
        The cases by config, evaluators and headline of the first of them; without its values if the
        others have other ones.
    """
    found: dict[tuple[str, str, tuple[str | None, ...]], list[CheckResult]] = {}
    for result in results:
        key = (result.config, find_reason_key(result), case_key(result.case))
        found.setdefault(key, []).append(result)
    groups: dict[tuple[str, tuple[str, ...], str], list[CheckResult]] = {}
    for (config, reason, _), same in found.items():
        names = tuple(dict.fromkeys(each.evaluator.name for each in same))
        groups.setdefault((config, names, reason), []).append(same[0])
    cases: dict[tuple[str, tuple[str, ...], str], list[CaseSummary]] = {}
    for (config, names, _), same in groups.items():
        shown = cases.setdefault((config, names, _format_common_headline(same)), [])
        shown += [each.case for each in same]
    return cases


def _format_common_headline(results: Sequence[CheckResult]) -> str:
    first, *others = dict.fromkeys(map(format_headline, results))
    return hide_case_values(first, results[0].case) if others else first


class ReasonGroup(Struct, frozen=True):
    """Checks with the same reason: those of the same cases, by evaluator.

    Where several evaluators have the same reason, the cases come first.
    """

    config: str
    evaluators: tuple[str, ...]
    reason: str
    cases: tuple[CaseSummary, ...]

    def format_name(self, write: Callable[[str], str], write_case: Callable[[str], str]) -> str:
        """Format the evaluator, or the first cases.

        Args:
            write: escapes the name of an evaluator.
            write_case: escapes the id of a case.
        """
        if len(self.evaluators) == 1:
            return write(self.evaluators[0])
        return list_first_names([each.id for each in self.cases], write_case)

    def format_checks(
        self, write: Callable[[str], str], write_case: Callable[[str], str], *, names: bool = True
    ) -> str:
        """Format ``2 cases: a, b``, or ``12 checks: tone, brevity`` of the cases in the name.

        Args:
            write, write_case: as for ``format_name``.
            names: whether to name the evaluators.
        """
        if len(self.evaluators) == 1:
            return format_case_names(self.cases, write_case)
        checks = format_count(len(self.evaluators) * len(self.cases), "check")
        return f"{checks}: {list_first_names(self.evaluators, write)}" if names else checks


def group_by_cases(results: Sequence[CheckResult]) -> list[ReasonGroup]:
    """Group cases like ``group_by_reason``."""
    return [ReasonGroup(*key, tuple(cases)) for key, cases in group_by_reason(results).items()]


def format_case_names(cases: Sequence[CaseSummary], write: Callable[[str], str]) -> str:
    """Format the number of cases and the first names: "7 cases: a, b, c, d, e, … and 2 more".

    Args:
        write: escapes a case id for the report format.
    """
    names = list_first_names([case.id for case in cases], write)
    return f"{format_count(len(cases), 'case')}: {names}"


def list_first_names(names: Sequence[str], write: Callable[[str], str]) -> str:
    """Format the first names, like ``format_case_names``."""
    shown = [write(name) for name in names[:MAX_NAMES]]
    if len(names) > MAX_NAMES:
        shown.append(truncate.format_omitted(len(names) - MAX_NAMES))
    return ", ".join(shown)


def format_passed(passed: int, evaluated: int, others: Sequence[str]) -> str:
    """Format ``9 of 11 (1 error)``: what passed of the checks that passed or failed, and others."""
    if not evaluated:
        return f"none evaluated: {', '.join(others)}" if others else "none evaluated"
    return f"{passed:,} of {evaluated:,}" + (f" ({', '.join(others)})" if others else "")


def list_cases(results: Sequence[CheckResult]) -> tuple[CaseSummary, ...]:
    """Return each case of ``results`` once, in the order of their first result."""
    return tuple({case_key(result.case): result.case for result in results}.values())


def case_key(case: CaseSummary) -> tuple[str | None, ...]:
    """Return the key that identifies a case within a report."""
    return (case.id, case.trace_id, case.recording.file, case.eval_case_id)


def group_warnings(report: Report) -> dict[str, list[CaseSummary]]:
    """Group the warnings of reading traces, with the cases that each concerns.

    Answers that ended as early in the baseline are left out.
    """
    known = {
        (case_key(result.case), warning)
        for result in (report.results if report.baseline else ())
        if (before := report.baseline.get(result.id)) is not None
        for warning in before.early_ends
    }
    found: dict[str, list[CaseSummary]] = {}
    for case in list_cases(report.results):
        for warning in case.shown_warnings:
            if (case_key(case), warning) not in known:
                found.setdefault(warning, []).append(case)
    return found


def make_problem_annotation(problem: Problem) -> Annotation:
    """Make an annotation on the line of a problem."""
    return Annotation(
        level=problem.severity,
        title=_TITLES[problem.severity],
        message=format_problem_text(problem),
        place=place_in_file(problem.place),
    )


_FAILED_VERDICTS: dict[int, Verdict] = {EXIT_INVALID_INPUT: "invalid", EXIT_ERRORED: "error"}
_TITLES: dict[Severity, str] = {
    "error": "Invalid input",
    "warning": "agentci warning",
    "note": "agentci note",
}
