"""GitHub annotations on the lines of a pull request."""

from collections.abc import Iterable, Iterator, Sequence

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.model.case import CaseSummary
from agentci.model.problem import Severity
from agentci.model.result import CheckResult, Report
from agentci.reports.check_text import (
    format_outcome,
    is_below_threshold,
    list_findings,
    split_lines,
)
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
    fallen = [tally for tally in found if tally.totals.failed or tally.totals.errored]
    annotations = [
        *(
            make_problem_annotation(problem)
            for problem in report.problems
            if problem.severity == "error"
        ),
        *(
            _annotate_failing(tally, shut=report.decision.is_failure)
            for tally in sorted(fallen, key=_severity_key)
        ),
        *(
            _annotate_skipped(tally)
            for tally in found
            if tally.totals.skipped == tally.totals.checks
        ),
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
    why = "\n".join(_shorten_line(reason) for reason in report.decision.reasons)
    return Annotation(level="error", title=format_conclusion(report), message=why)


def _severity_key(tally: EvaluatorChecks) -> tuple[float, float]:
    """Sort by the share of failed and errored checks, largest first, then by mean score."""
    totals = tally.totals
    share = (totals.failed + totals.errored) / totals.checks
    return (-share, -1.0 if totals.score is None else totals.score)


def _annotate_failing(tally: EvaluatorChecks, *, shut: bool) -> Annotation:
    level: Severity = "error" if tally.representative.evaluator.required and shut else "warning"
    told = (
        *_list_failed(sort_worst_first(filter_by_status(tally.results, "failed"))),
        *_list_errored(filter_by_status(tally.results, "errored")),
    )
    return _make_annotation(tally, level, _format_title(tally), told)


def _annotate_skipped(tally: EvaluatorChecks) -> Annotation:
    """Warn about an evaluator whose checks were all skipped, which tests nothing."""
    skipped = f"{tally.totals.skipped:,} of {tally.totals.checks:,} had nothing to judge"
    told = (
        f"{_shorten_line(truncate.join_first_and_last(split_lines(reason)))} "
        f"({format_case_names(cases, str)})"
        for (_, _, reason), cases in group_by_reason(tally.results).items()
    )
    return _make_annotation(
        tally, "warning", f"{tally.representative.evaluator.name}: {skipped}", told
    )


def _make_annotation(
    tally: EvaluatorChecks, level: Severity, title: str, told: Iterable[str]
) -> Annotation:
    place = place_in_file(tally.representative.evaluator.place)
    return Annotation(level=level, title=title, message="\n".join(told), place=place)


def _format_title(tally: EvaluatorChecks) -> str:
    totals, bar = tally.totals, tally.representative.evaluator.criterion
    said = []
    if totals.failed:
        below = any(map(is_below_threshold, filter_by_status(tally.results, "failed")))
        fell = f"below {bar}" if below and bar.startswith("at least ") else "failed"
        said.append(f"{totals.failed:,} of {totals.checks:,} {fell}")
    if totals.errored:
        said.append(f"{totals.errored:,} of {totals.checks:,} could not be judged")
    return f"{tally.representative.evaluator.name}: {', '.join(said)}"


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
        title=f"{format_count(len(cases), 'recording')} read with a warning",
        message=f"{text}\n{names}",
        place=place_in_file(cases[0].recording),
    )
