"""GitHub annotations on the lines of a pull request."""

from collections.abc import Iterable, Iterator, Sequence

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.model.case import CaseSummary
from agentci.model.problem import Severity
from agentci.model.result import CheckResult, Report
from agentci.reports.check_text import format_outcome, list_findings, split_lines
from agentci.reports.report_format import (
    EvaluatorChecks,
    filter_by_status,
    format_case_names,
    format_conclusion,
    group_by_evaluator,
    group_by_reason,
    group_warnings,
    make_problem_annotation,
    place_in_file,
    sort_worst_first,
)
from agentci.reports.workflow_commands import Annotation

MAX_CASES = 5
MAX_LINES = 8
MAX_LINE = 300


def make_annotations(report: Report) -> tuple[Annotation, ...]:
    """Make one annotation per evaluator with failures, worst first, and one per problem.

    Errors of the input come first; warnings about skipped evaluators and the input come last.
    Failures are warnings if the run passed or the evaluator is advisory. A failed run without any
    error annotation gets one with its reasons.
    """
    found = group_by_evaluator(report.results, by_place=True)
    failing = [each for each in found if each.totals.failed or each.totals.errored]
    annotations = [
        *(
            make_problem_annotation(problem)
            for problem in report.problems
            if problem.severity == "error"
        ),
        *(
            _annotate_failing(each, gate_failed=report.decision.is_failure)
            for each in sorted(failing, key=_severity_key)
        ),
        *(_annotate_skipped(each) for each in found if each.totals.skipped == each.totals.checks),
        *(
            make_problem_annotation(problem)
            for problem in report.problems
            if problem.severity != "error"
        ),
        *(_annotate_warning(text, cases) for text, cases in group_warnings(report.results).items()),
    ]
    if report.decision.is_failure and not any(each.level == "error" for each in annotations):
        annotations.append(_annotate_failed_gate(report))
    return tuple(annotations)


def _annotate_failed_gate(report: Report) -> Annotation:
    reasons = "\n".join(_shorten_line(reason) for reason in report.decision.reasons)
    return Annotation(level="error", title=format_conclusion(report), message=reasons)


def _severity_key(checks: EvaluatorChecks) -> tuple[float, float]:
    """Sort by the share of failed and errored checks, largest first, then by mean score."""
    totals = checks.totals
    share = (totals.failed + totals.errored) / totals.checks
    return (-share, -1.0 if totals.score is None else totals.score)


def _annotate_failing(checks: EvaluatorChecks, *, gate_failed: bool) -> Annotation:
    failing = checks.representative.evaluator.required and gate_failed
    lines = (
        *_list_failed(sort_worst_first(filter_by_status(checks.results, "failed"))),
        *_list_errored(filter_by_status(checks.results, "errored")),
    )
    return _make_annotation(checks, "error" if failing else "warning", _count(checks), lines)


def _annotate_skipped(checks: EvaluatorChecks) -> Annotation:
    """Warn about an evaluator whose checks were all skipped, which tests nothing."""
    lines = (
        f"{_shorten_line(truncate.join_first_and_last(split_lines(reason)))} "
        f"({format_case_names(cases, str)})"
        for (_, _, reason), cases in group_by_reason(checks.results).items()
    )
    skipped = f"{format_count(checks.totals.skipped, 'check')} skipped"
    return _make_annotation(checks, "warning", skipped, lines)


def _make_annotation(
    checks: EvaluatorChecks, level: Severity, counts: str, lines: Iterable[str]
) -> Annotation:
    evaluator = checks.representative.evaluator
    return Annotation(
        level=level,
        title=f"{evaluator.name}: {counts}",
        message="\n".join(lines),
        place=place_in_file(evaluator.place),
    )


def _count(checks: EvaluatorChecks) -> str:
    """Count failed and errored checks: "2 of 9 checks failed, 1 errored"."""
    totals = checks.totals
    counts = {"failed": totals.failed, "errored": totals.errored}
    first, *others = [f"{count:,} {status}" for status, count in counts.items() if count]
    amount, status = first.split(" ")
    return ", ".join([f"{amount} of {format_count(totals.checks, 'check')} {status}", *others])


def _list_failed(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield the first failed checks with their findings, then the number omitted."""
    for result in results[:MAX_CASES]:
        yield _shorten_line(f"{_name_with_file(result.case)}: {format_outcome(result)}")
        found = truncate.truncate_list(list_findings(result), MAX_LINES)
        yield from (f"  {_shorten_line(line)}" for line in found)
    if len(results) > MAX_CASES:
        yield truncate.format_omitted(len(results) - MAX_CASES)


def _list_errored(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield cases by reason; a long reason keeps its first and last lines."""
    groups = list(group_by_reason(results).items())
    for (_, _, reason), cases in groups[:MAX_CASES]:
        first, *others = truncate.truncate_lines(split_lines(reason), MAX_LINES) or ("",)
        names = _name_with_file(cases[0]) if len(cases) == 1 else format_case_names(cases, str)
        yield _shorten_line(f"{names}: {first}")
        yield from (f"  {_shorten_line(line)}" for line in others)
    if len(groups) > MAX_CASES:
        yield truncate.format_omitted(len(groups) - MAX_CASES)


def _name_with_file(case: CaseSummary) -> str:
    return f"{case.id} ({case.recording.file})"


def _shorten_line(text: str) -> str:
    return truncate.middle(text, MAX_LINE)


def _annotate_warning(text: str, cases: Sequence[CaseSummary]) -> Annotation:
    names = ", ".join(truncate.truncate_list([case.id for case in cases], MAX_CASES))
    return Annotation(
        level="warning",
        title=f"Warning about {format_count(len(cases), 'trace')}",
        message=f"{text}\n{names}",
        place=place_in_file(cases[0].recording),
    )
