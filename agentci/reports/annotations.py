"""GitHub annotations on the lines of a pull request."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import maxsize

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.model.case import CaseSummary
from agentci.model.result import CheckResult, Report
from agentci.model.values import Place, Severity
from agentci.reports.check_text import format_outcome, list_findings, split_lines
from agentci.reports.contents import load_run
from agentci.reports.differences import find_difference
from agentci.reports.groups_and_totals import (
    EvaluatorChecks,
    case_key,
    filter_by_status,
    format_case_names,
    group_by_evaluator,
    group_by_reason,
    group_warnings,
    list_cases,
    make_problem_annotation,
    place_in_file,
    sort_worst_first,
)
from agentci.reports.outcomes import CaseOutcome, list_case_outcomes
from agentci.reports.verdict import format_conclusion
from agentci.reports.workflow_commands import NO_DIFF, Annotation, DiffLines

MAX_CASES = 5
MAX_LINES = 8
MAX_LINE = 300
# Of a title.
MAX_NAMES = 3
MAX_NAME = 60


def make_annotations(report: Report, diff: DiffLines = NO_DIFF) -> tuple[Annotation, ...]:
    """Make one annotation per case in the diff, per evaluator that fails elsewhere, per problem.

    Failed cases are annotated at the line of their eval case or recorded run if ``diff`` shows it,
    because reviewers see no annotations on other lines; further failures are on the lines of their
    evaluators in the config, worst first. Errors of the input come first; warnings about skipped
    evaluators and the input come last. Failures are warnings if the run passed or the evaluator is
    advisory. A failed run without any error annotation gets one with its reasons.

    Args:
        diff: of the pull request.
    """
    places = find_case_places(report.results, diff)
    found = group_by_evaluator(report.results, by_place=True)
    failing = [
        (each, elsewhere)
        for each in found
        if (elsewhere := [r for r in _list_failing(each) if case_key(r.case) not in places])
    ]
    annotations = [
        *(
            make_problem_annotation(problem)
            for problem in report.problems
            if problem.severity == "error"
        ),
        *_annotate_cases(report, places),
        *(
            _annotate_failing(each, results, gate_failed=report.decision.is_failure)
            for each, results in sorted(failing, key=lambda pair: _severity_key(pair[0]))
        ),
        *(_annotate_skipped(each) for each in found if each.totals.skipped == each.totals.checks),
        *(
            make_problem_annotation(problem)
            for problem in report.problems
            if problem.severity != "error"
        ),
        *(_annotate_warning(text, cases) for text, cases in group_warnings(report).items()),
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


def _list_failing(checks: EvaluatorChecks) -> list[CheckResult]:
    return [each for each in checks.results if each.status in ("failed", "errored")]


def _annotate_cases(
    report: Report, places: Mapping[tuple[str | None, ...], Place]
) -> Iterator[Annotation]:
    """Yield an annotation per line of the diff with failed cases: most failed checks first."""
    found: dict[Place, list[CaseOutcome]] = {}
    for outcome in list_case_outcomes(report) if places else ():
        place = places.get(case_key(outcome.summary))
        if place is not None and outcome.problems:
            found.setdefault(place, []).append(outcome)
    counts = {place: sum(len(each.problems) for each in group) for place, group in found.items()}
    for place, group in sorted(found.items(), key=lambda item: -counts[item[0]]):
        problems = [each for case in group for each in case.problems]
        required = any(each.evaluator.required for each in problems)
        yield Annotation(
            level="error" if required and report.decision.is_failure else "warning",
            title=_title_cases(group, problems),
            message="\n".join(_list_cases(group, report)),
            place=place,
        )


def _title_cases(group: Sequence[CaseOutcome], problems: Sequence[CheckResult]) -> str:
    """Make the title of cases: ``refund > tone failed``, ``refund: tone, calls did not pass``."""
    if len(problems) == 1:
        return _title_check(problems[0])
    names = _join_names([*dict.fromkeys(each.evaluator.name for each in problems)])
    if len(group) == 1:
        return f"{_shorten_name(group[0].summary.id)}: {names} did not pass"
    cases, checks = format_count(len(group), "case"), format_count(len(problems), "check")
    return f"{cases}: {checks} did not pass ({names})"


def _title_check(result: CheckResult) -> str:
    return f"{_shorten_name(result.case.id)} > {result.evaluator.name} {result.status}"


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(truncate.truncate_list(truncate.distinct(names, MAX_NAME), MAX_NAMES))


def _shorten_name(name: str) -> str:
    return truncate.short(name, MAX_NAME)


def _list_cases(group: Sequence[CaseOutcome], report: Report) -> Iterator[str]:
    """Yield the failed checks of the first cases, and what differs first in each."""
    for each in group[:MAX_CASES]:
        if len(group) > 1:
            yield _shorten_line(f"{each.summary.id}:")
        for result in each.problems[:MAX_CASES]:
            lines = split_lines(format_outcome(result)) or (result.status,)
            headline = truncate.join_first_and_last(lines)
            yield _shorten_line(f"{result.evaluator.name}: {headline}")
            found = truncate.truncate_list(list_findings(result), MAX_LINES)
            yield from (f"  {_shorten_line(line)}" for line in found)
        if len(each.problems) > MAX_CASES:
            yield truncate.format_omitted(len(each.problems) - MAX_CASES)
        difference = find_difference(load_run(report, each.results).content, "expected")
        for label, lines in [] if difference is None else difference.list_parts():
            yield f"Difference, {label}:"
            yield from (f"  {line}" for line in lines)
    if len(group) > MAX_CASES:
        yield truncate.format_omitted(len(group) - MAX_CASES)


def _annotate_failing(
    checks: EvaluatorChecks, results: Sequence[CheckResult], *, gate_failed: bool
) -> Annotation:
    """Annotate the failed and errored checks ``results`` of an evaluator."""
    failing = checks.representative.evaluator.required and gate_failed
    lines = (
        *_list_failed(sort_worst_first(filter_by_status(results, "failed"))),
        *_list_errored(filter_by_status(results, "errored")),
    )
    title = _title_failing(checks, results)
    return _make_annotation(checks, "error" if failing else "warning", title, lines)


def _annotate_skipped(checks: EvaluatorChecks) -> Annotation:
    """Warn about an evaluator whose checks were all skipped, which tests nothing."""
    lines = (
        f"{_shorten_line(truncate.join_first_and_last(split_lines(reason)))} "
        f"({format_case_names(cases, str)})"
        for (_, _, reason), cases in group_by_reason(checks.results).items()
    )
    skipped = f"{format_count(checks.totals.skipped, 'check')} skipped"
    title = f"{checks.representative.evaluator.name}: {skipped}"
    return _make_annotation(checks, "warning", title, lines)


def _make_annotation(
    checks: EvaluatorChecks, level: Severity, title: str, lines: Iterable[str]
) -> Annotation:
    evaluator = checks.representative.evaluator
    return Annotation(
        level=level,
        title=title,
        message="\n".join(lines),
        place=place_in_file(evaluator.place),
    )


def _title_failing(checks: EvaluatorChecks, results: Sequence[CheckResult]) -> str:
    """Make the title of an evaluator: ``refund > tone failed``, ``tone: 2 of 9 checks failed``.

    It names the first cases of ``results``, which the annotation lists.
    """
    if checks.totals.failed + checks.totals.errored == 1:
        return _title_check(results[0])
    cases = [*dict.fromkeys(each.case.id for each in results)]
    return f"{checks.representative.evaluator.name}: {_count(checks)} ({_join_names(cases)})"


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


def list_case_files(results: Sequence[CheckResult]) -> frozenset[str]:
    """List the files of eval cases and recorded runs."""
    return frozenset(place.file for case in list_cases(results) for place in _list_places(case))


def find_case_places(
    results: Sequence[CheckResult], diff: DiffLines
) -> Mapping[tuple[str | None, ...], Place]:
    """Find a line of the diff for each case, by ``case_key``; cases without one are left out.

    It is the line of the eval case, else of the recorded run. Either reaches to where the next one
    in its file starts. Traces start at the line of their JSON document.
    """
    cases = list_cases(results)
    starts = _list_starts(place for case in cases for place in _list_places(case))
    found: dict[tuple[str | None, ...], Place] = {}
    for case in cases:
        lines = (
            _find_line(place, starts[place.file], diff.get(place.file, ()))
            for place in _list_places(case)
        )
        if place := next((each for each in lines if each is not None), None):
            found[case_key(case)] = place
    return found


def _list_places(case: CaseSummary) -> Iterator[Place]:
    if case.eval_case_place is not None:
        yield case.eval_case_place
    yield case.recording


def _list_starts(places: Iterable[Place]) -> dict[str, list[int]]:
    """List the lines at which cases and runs start, by file, in order."""
    found: dict[str, set[int]] = {}
    for place in places:
        found.setdefault(place.file, set()).add(place.line)
    return {file: sorted(lines) for file, lines in found.items()}


def _find_line(place: Place, starts: Sequence[int], hunks: Sequence[range]) -> Place | None:
    following = bisect_right(starts, place.line)
    end = starts[following] if following < len(starts) else maxsize
    lines = (
        max(place.line, hunk.start)
        for hunk in hunks
        if hunk and hunk.start < end and hunk.stop > place.line
    )
    line = next(lines, None)
    return None if line is None else Place(file=place.file, line=line)
