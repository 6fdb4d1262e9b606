"""Plain-text report for a terminal or a log."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count, format_score, format_score_pair
from agentci.model.gate import Comparison
from agentci.model.problem import Problem
from agentci.model.result import CheckResult, Report
from agentci.reports import comparison as baseline_text
from agentci.reports.case_outcomes import CaseOutcome
from agentci.reports.check_text import format_outcome, list_findings, split_lines
from agentci.reports.failed_cases import (
    MAX_LOWER_SCORES,
    format_before,
    group_by_cause,
    list_failed_cases,
    list_lower_scores,
)
from agentci.reports.policy import choose_title, list_policy_lines
from agentci.reports.problems import render_problems
from agentci.reports.report_format import (
    EvaluatorChecks,
    filter_by_status,
    format_case_names,
    format_conclusion,
    format_counts,
    format_path,
    format_problem,
    format_spending,
    group_by_evaluator,
    group_by_reason,
    group_warnings,
    has_several_configs,
    is_invalid_input,
    list_case_names,
)
from agentci.reports.stability import summarize_repeats
from agentci.reports.tool_calls import format_diff
from agentci.reports.workflow_commands import render_group

MAX_CASES = 10
# More cases that fail for the same reasons are shown as one.
MAX_EQUAL = 5
MAX_LINES = 12
MAX_ITEMS = 20
MAX_WIDTH = 500
MAX_CELL = 60

COLUMNS = (
    *("config", "evaluator", "checks", "passed", "failed", "errored", "skipped", "score"),
    "threshold",
)


# Headings of what is not about failures.
FOLDED: Final = frozenset({"Checks", "Evaluators", "Repeats", "Skipped checks"})


def render_console(
    report: Report,
    *,
    quiet: bool,
    verbose: bool,
    colour: bool,
    page: str = "",
    folds: bool = False,
) -> str:
    """Render failed and errored checks, evaluators, skipped checks, problems, and the decision.

    If invalid input kept all checks from running, render only the problems. The text contains no
    workflow commands except groups, and no control sequences except the report's own colours.

    Args:
        quiet: render only the decision, its reasons and errors of the input.
        verbose: add one line per check.
        colour: use ANSI colours.
        page: path of ``report.html``, which is the last line; "" if it was not written.
        folds: whether the log of a workflow shows it, in which details are groups.
    """
    if is_invalid_input(report):
        return escape.neutralize_commands(render_problems(_shown(report, quiet=quiet), "text"))
    texts = []
    sections = _sections(report, verbose=verbose, colour=colour)
    for heading, lines in [_problems(report, quiet=True)] if quiet else sections:
        body = escape.neutralize_commands("".join(f"  {line}\n" for line in lines))
        if body and folds and heading in FOLDED:
            texts.append(render_group(heading, body))
        elif body:
            texts.append(f"{colour_text(heading, _BOLD, colour=colour)}\n{body}")
    end = _render_decision(report, colour=colour)
    if page and not quiet:
        end += f"Report: {_line(page)}\n"
    return "\n".join([*texts, escape.neutralize_commands(end)])


def _render_decision(report: Report, *, colour: bool) -> str:
    code = _RED if report.decision.is_failure else _GREEN
    first, *others = report.decision.reasons or ("",)
    head = colour_text(format_conclusion(report), code, colour=colour)
    counts = (format_counts(report), format_spending(report.spending))
    lines = (
        *(_line(each) for each in counts if each),
        f"{head}{first and f': {_line(first)}'}",
        *(f"  {_line(each)}" for each in others),
    )
    return "".join(f"{line}\n" for line in lines)


_BOLD, _RED, _GREEN = "1", "1;31", "1;32"
# Of a difference, which is no verdict: what is expected, and what was found.
_DIFF_COLOURS: Final = {"-": "36", "+": "35"}


def colour_text(text: str, code: str, *, colour: bool) -> str:
    """Add an ANSI colour or weight (``1;31``), or with ``colour=False`` none."""
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def _sections(
    report: Report, *, verbose: bool, colour: bool
) -> Iterator[tuple[str, Iterable[str]]]:
    if verbose:
        yield "Checks", map(_check, report.results)
    several = has_several_configs(report.results)
    yield "Failed checks", _list_failed(report, colour=colour)
    yield (
        "Errored checks",
        _list_by_reason(filter_by_status(report.results, "errored"), several=several),
    )
    yield "Evaluators", _render_table(group_by_evaluator(report.results), several=several)
    if report.policy is not None:
        policy = truncate.truncate_list([*list_policy_lines(report.policy)], MAX_ITEMS)
        yield choose_title(report.policy), map(_line, policy)
    yield "Score fell, still passing", _list_lower_scores(report)
    yield "Comparison with the baseline", comparison_lines(report.comparison, beside_failures=True)
    yield "Repeats", [_line(each.line) for each in summarize_repeats(report.results)]
    yield (
        "Skipped checks",
        _list_by_reason(filter_by_status(report.results, "skipped"), several=several),
    )
    yield "Warnings", _warnings(report.results)
    yield "Notes", map(_line, report.decision.notes)
    yield _problems(report, quiet=False)


def _problems(report: Report, *, quiet: bool) -> tuple[str, Sequence[str]]:
    lines = [_line(format_problem(each)) for each in _shown(report, quiet=quiet)]
    return "Problems", truncate.truncate_list(lines, MAX_ITEMS)


def _shown(report: Report, *, quiet: bool) -> Sequence[Problem]:
    """Return all problems, or with ``quiet`` only errors."""
    return [each for each in report.problems if each.severity == "error" or not quiet]


def _check(result: CheckResult) -> str:
    return _line(
        f"{result.status}: {result.case.id} > {result.evaluator.name}: {format_outcome(result)}"
    )


def _render_table(evaluators: Sequence[EvaluatorChecks], *, several: bool) -> Iterator[str]:
    """Yield the rows of the evaluator table, with a config column if there are several."""
    if not evaluators:
        return
    rows = [COLUMNS, *(_make_row(each) for each in evaluators)]
    names = 2 if several else 1
    rows = [row[2 - names :] for row in rows]
    yield from align_columns(rows, names=names)


def align_columns(rows: Sequence[Sequence[str]], *, names: int) -> Iterator[str]:
    """Align columns: the first ``names`` to the left, others to the right, the last unpadded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        *cells, last = row
        padded = (
            cell.ljust(width) if column < names else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=False))
        )
        yield f"{'  '.join(padded)}  {last}"


def comparison_lines(
    comparison: Comparison | None, *, beside_failures: bool = False
) -> Iterator[str]:
    """Yield one line per evaluator, then remarks, then regressions.

    Args:
        beside_failures: as in ``list_worse``.
    """
    if comparison is None:
        return
    if comparison.evaluators:
        rows = (baseline_text.format_cells(each, comparison) for each in comparison.evaluators)
        yield from align_columns(
            [baseline_text.COLUMNS, *(list(map(_cell, row)) for row in rows)], names=1
        )
    yield from map(_line, baseline_text.list_remarks(comparison))
    worse = [
        _line(f"worse: {case} > {evaluator}: {scores}")
        for case, evaluator, scores in baseline_text.list_worse(
            comparison, beside_failures=beside_failures
        )
    ]
    yield from truncate.truncate_list(worse, MAX_ITEMS)


def _make_row(checks: EvaluatorChecks) -> tuple[str, ...]:
    totals, result = checks.totals, checks.representative
    counts = (totals.checks, totals.passed, totals.failed, totals.errored, totals.skipped)
    advisory = "" if result.evaluator.required else " (advisory)"
    return (
        _cell(format_path(result.config)),
        f"{_cell(result.evaluator.name)}{advisory}",
        *(f"{each:,}" for each in counts),
        "-" if totals.score is None else format_score(totals.score),
        _cell(result.evaluator.criterion),
    )


def _list_lower_scores(report: Report) -> Iterator[str]:
    found = list_lower_scores(report)
    for each in found[:MAX_LOWER_SCORES]:
        name = f"{each.result.case.id} > {each.result.evaluator.name}"
        yield _line(f"{name}: {format_score_pair(each.before, each.after)}")
    if len(found) > MAX_LOWER_SCORES:
        yield truncate.format_omitted(len(found) - MAX_LOWER_SCORES)


def _list_failed(report: Report, *, colour: bool) -> Iterator[str]:
    """Yield the failed checks by case, the worst first."""
    new, known = list_failed_cases(report)
    left, shown = len(new) + len(known), 0
    for group in (*group_by_cause(new), *group_by_cause(known)):
        described = group[:1] if len(group) > MAX_EQUAL else group
        described = described[: MAX_CASES - shown]
        if not described:
            break
        shown += len(described)
        for case in described:
            yield _format_case(case)
            for result in case.problems:
                if result.status == "failed":
                    yield from (f"  {line}" for line in _list_check(result, report, colour=colour))
        left -= len(described)
        if others := group[len(described) :] if len(group) > MAX_EQUAL else ():
            names = list_case_names([each.summary.id for each in others], _cell)
            verb = "fails" if len(others) == 1 else "fail"
            count = format_count(len(others), "more case")
            yield f"  {count} {verb} in the same way: {names}"
            left -= len(others)
    if left:
        yield truncate.format_omitted(left)


def _format_case(case: CaseOutcome) -> str:
    """Format ``refunds: new failure, "Please refund it.", trace recordings/a.json``."""
    question = next((turn.question for turn in case.summary.dialogue if turn.question), "")
    parts = (
        case.state.replace("_", " ") if case.state in ("new_failure", "still_failing") else "",
        f'"{_cell(question)}"' if question != case.summary.id and question else "",
        f"trace {_line(case.summary.recording.file)}",
    )
    return f"{_line(case.summary.id)}: {', '.join(filter(None, parts))}"


def _list_check(result: CheckResult, report: Report, *, colour: bool) -> Iterator[str]:
    was = format_before(result, report)
    outcome = f"{format_outcome(result)}, was {was}" if was else format_outcome(result)
    yield _line(f"{result.evaluator.name}: {outcome} ({result.evaluator.place})")
    differing = frozenset(
        format_diff(result.judgement.details) if colour and result.judgement is not None else ()
    )
    for line in truncate.truncate_list(list_findings(result), MAX_LINES):
        code = _DIFF_COLOURS.get(line[:1], "") if line in differing else ""
        yield f"  {colour_text(_line(line), code, colour=bool(code))}"


def _list_by_reason(results: Sequence[CheckResult], *, several: bool) -> Iterator[str]:
    """Yield cases by evaluator and reason; a long reason keeps its first and last lines."""
    groups = list(group_by_reason(results).items())
    for (config, evaluator, reason), cases in groups[:MAX_ITEMS]:
        name = (
            f"{_cell(evaluator)} of {_cell(format_path(config))}" if several else _cell(evaluator)
        )
        first, *others = truncate.truncate_lines(split_lines(reason), MAX_LINES) or ("",)
        yield f"{name} ({format_case_names(cases, _cell)}): {_line(first)}"
        yield from (f"  {truncate.middle(line, MAX_WIDTH)}" for line in others)
    if len(groups) > MAX_ITEMS:
        yield truncate.format_omitted(len(groups) - MAX_ITEMS)


def _warnings(results: Sequence[CheckResult]) -> Sequence[str]:
    found = group_warnings(results).items()
    return truncate.truncate_list(
        [f"{_line(text)} ({format_case_names(cases, _cell)})" for text, cases in found], MAX_ITEMS
    )


def _cell(text: str) -> str:
    return _line(text, MAX_CELL)


def _line(text: str, width: int = MAX_WIDTH) -> str:
    return escape.flatten_line(truncate.middle(text, width))
