"""Plain-text report for a terminal or a log."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count, format_score
from agentci._util.text.suggest import shorten_commit
from agentci.gate.policy_changes import has_looser, summarize_changes
from agentci.gate.rules import list_changed_words
from agentci.model.gate import Comparison, PolicyComparison
from agentci.model.result import CheckResult, Report
from agentci.model.values import Problem
from agentci.reports import comparison as baseline_text
from agentci.reports.case_counts import find_missing, format_case_line, list_missing_cases
from agentci.reports.case_states import UNRECORDED
from agentci.reports.changed_checks import (
    LOST_TITLE,
    LOWER_SCORE_TITLE,
    MAX_LOWER_SCORES,
    format_lost,
    format_more_skips,
    join_lost,
    list_lower_scores,
    list_skipped,
)
from agentci.reports.changed_runs import list_changed_runs
from agentci.reports.check_text import format_outcome, split_lines
from agentci.reports.differences import RunDifference
from agentci.reports.failures import Cause, Causes, FailedCheck, list_causes
from agentci.reports.groups_and_totals import (
    EvaluatorChecks,
    choose_mean,
    filter_by_status,
    format_case_names,
    format_counts,
    format_path,
    format_problem,
    format_spending,
    format_thresholds,
    group_by_cases,
    group_by_evaluator,
    group_warnings,
    has_several_configs,
    is_invalid_input,
    list_first_names,
    name_no_score,
)
from agentci.reports.outcomes import (
    format_metrics,
    has_notable_change,
    summarize_metrics,
    summarize_repeats,
)
from agentci.reports.policy import POLICY_TITLE, list_policy_lines
from agentci.reports.policy_effects import explain_policy
from agentci.reports.problems import join_problems, render_problems
from agentci.reports.tool_calls import format_diff
from agentci.reports.verdict import format_conclusion, list_reasons, list_verdict_warnings
from agentci.reports.workflow_commands import render_group

MAX_CASES = 10
MAX_CHANGED_RUNS = 5
MAX_POLICY_CHANGES = 3
MAX_LINES = 12
MAX_ITEMS = 20
MAX_WIDTH = 500
MAX_CELL = 60

COLUMNS = (
    *("config", "evaluator", "checks", "passed", "failed", "errored", "skipped", "score"),
    "threshold",
)


# Headings of what is not about failures.
FOLDED: Final = ("Checks", "Evaluators", "Repeats", "Skipped checks")


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
        if body and folds and heading.startswith(FOLDED):
            texts.append(render_group(heading, body))
        elif body:
            texts.append(f"{colour_text(heading, _BOLD, colour=colour)}\n{body}")
    end = _render_decision(report, colour=colour)
    if page and not quiet:
        end += f"Report: {_line(page)}\n"
    return "\n".join([*texts, escape.neutralize_commands(end)])


def _render_decision(report: Report, *, colour: bool) -> str:
    code = (
        _RED if report.decision.is_failure else _YELLOW if list_verdict_warnings(report) else _GREEN
    )
    first, *others = list_reasons(report) or ("",)
    head = colour_text(format_conclusion(report), code, colour=colour)
    metrics = summarize_metrics(report)
    counts = (
        _format_cases(report),
        format_metrics(metrics) if has_notable_change(metrics) else "",
        format_spending(report.spending),
    )
    lines = (
        *(_line(each) for each in counts if each),
        f"{head}{first and f': {_line(first)}'}",
        *(f"  {_line(each)}" for each in (*others, *_list_looser(report))),
    )
    return "".join(f"{line}\n" for line in lines)


def _list_looser(report: Report) -> Iterator[str]:
    """Yield what a policy loosens, on one line: readers of a log see its end first."""
    policy = report.policy
    if policy is not None and has_looser(policy.loosened):
        lines = truncate.truncate_list([*list_policy_lines(policy)], MAX_POLICY_CHANGES)
        yield f"looser policy: {'; '.join(lines)}"


def _format_cases(report: Report) -> str:
    found = report.comparison
    name = "" if found is None else shorten_commit(found.commit) or found.baseline
    return format_case_line(report, name)


_BOLD, _RED, _GREEN, _YELLOW = "1", "1;31", "1;32", "1;33"
# Of a difference, which is not a verdict: what is expected, and what was found.
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
    causes = list_causes(report)
    yield "Failed checks", _list_failed(causes, colour=colour)
    yield (
        "Errored checks",
        _list_by_reason(filter_by_status(report.results, "errored"), several=several),
    )
    yield LOST_TITLE, _list_lost(causes, colour=colour)
    yield "Changed since the baseline", _list_changed_runs(report)
    table = _render_table(report, several=several)
    yield "Evaluators", [*table, format_counts(report)] if report.results else ()
    if (policy := explain_policy(report)) is not None:
        lines = truncate.truncate_list([*list_policy_lines(policy)], MAX_ITEMS)
        yield _choose_policy_title(policy), map(_line, lines)
    yield LOWER_SCORE_TITLE, _list_lower_scores(report)
    yield (
        "Comparison with the baseline",
        list_comparison(
            report.comparison,
            report.decision.reasons,
            with_numbers=verbose,
            missing=find_missing(report),
        ),
    )
    yield "Repeats", [_line(each.line) for each in summarize_repeats(report.results)]
    yield (
        f"Skipped checks{format_more_skips(report)}",
        _list_by_reason(list_skipped(report), several=several),
    )
    yield "Other words than expected", _list_other_words(report)
    yield "Warnings", _warnings(report)
    yield "Notes", map(_line, report.decision.unlisted_notes)
    yield _problems(report, quiet=False)


def _choose_policy_title(policy: PolicyComparison) -> str:
    found = policy.loosened
    return f"Warning: {summarize_changes(found)}" if found else POLICY_TITLE


def _problems(report: Report, *, quiet: bool) -> tuple[str, Sequence[str]]:
    shown = join_problems(_shown(report, quiet=quiet))
    lines = [_line(format_problem(each)) for each in shown]
    return "Problems", truncate.truncate_list(lines, MAX_ITEMS)


def _shown(report: Report, *, quiet: bool) -> Sequence[Problem]:
    """Return all problems, or with ``quiet`` only errors."""
    return [each for each in report.problems if each.severity == "error" or not quiet]


def _check(result: CheckResult) -> str:
    return _line(
        f"{result.status}: {result.case.id} > {result.evaluator.name}: {format_outcome(result)}"
    )


def _render_table(report: Report, *, several: bool) -> Iterator[str]:
    """Yield the rows of the evaluator table, with a config column if there are several."""
    evaluators = group_by_evaluator(report.results)
    rows = [COLUMNS, *(_make_row(each, report) for each in evaluators)]
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


def list_comparison(
    comparison: Comparison | None,
    reasons: Sequence[str] = (),
    *,
    with_numbers: bool = True,
    missing: frozenset[str] | None = None,
) -> Iterator[str]:
    """Yield one line per evaluator, then remarks.

    Args:
        reasons, with_numbers: as in ``list_remarks``.
        missing: as in ``list_rows``.
    """
    if comparison is None:
        return
    if comparison.evaluators:
        rows = [baseline_text.COLUMNS, *baseline_text.list_rows(comparison, missing=missing)]
        yield from align_columns([[*map(_cell, row[:-1]), _line(row[-1])] for row in rows], names=1)
    remarks = baseline_text.list_remarks(comparison, with_numbers=with_numbers, reasons=reasons)
    yield from map(_line, remarks)


def list_changed_checks(comparison: Comparison) -> Iterator[str]:
    """Yield the checks that changed, by group, evaluator and change."""
    changed = [
        _line(f"{group}: {evaluator} {change}: {list_first_names(cases, _cell)}")
        for group, evaluator, change, cases in baseline_text.group_changes(comparison)
    ]
    yield from truncate.truncate_list(changed, MAX_ITEMS)


def _make_row(checks: EvaluatorChecks, report: Report) -> tuple[str, ...]:
    totals, result = checks.totals, checks.representative
    score = choose_mean(totals)
    counts = (totals.checks, totals.passed, totals.failed, totals.errored, totals.skipped)
    advisory = "" if result.evaluator.required else baseline_text.ADVISORY
    return (
        _cell(format_path(result.config)),
        f"{_cell(result.evaluator.name)}{advisory}",
        *(f"{each:,}" for each in counts),
        name_no_score(totals) if score is None else format_score(score),
        _cell(format_thresholds(result, report)),
    )


def _list_lower_scores(report: Report) -> Iterator[str]:
    found = list_lower_scores(report)
    for each in found[:MAX_LOWER_SCORES]:
        yield _line(
            f"{each.change.case} > {each.evaluator}: {baseline_text.describe_change(each.change)}"
        )
    if len(found) > MAX_LOWER_SCORES:
        yield truncate.format_omitted(len(found) - MAX_LOWER_SCORES)


def _list_failed(causes: Causes, *, colour: bool) -> Iterator[str]:
    """Yield the failed checks, one case per cause: new ones, then those that failed before."""
    new = "new failure, " if causes.report.baseline else ""
    groups = [
        (group, "new advisory failure, " if group[0].is_advisory_failure else new)
        for group in causes.new
    ]
    groups += [(group, "still failing, ") for group in causes.known]
    for group, state in groups[:MAX_CASES]:
        yield from _list_cause(causes.describe(group), state, colour=colour)
    if left := sum(len(group) for group, _ in groups[MAX_CASES:]):
        yield truncate.format_omitted(left)


def _list_cause(cause: Cause, state: str, *, colour: bool) -> Iterator[str]:
    """Yield ``refunds: new failure, "Please refund it.", trace recordings/a.json``, and below it.

    These are its checks, the answer that differs, and the cases like it.
    """
    summary, difference = cause.case.summary, cause.difference
    question = f'"{_cell(cause.question)}", ' if cause.question else ""
    yield f"{_line(summary.id)}: {state}{question}trace {_line(summary.recording.file)}"
    # Calls that a check shows are complete there, unless these are too many lines.
    is_short = difference is None or not difference.calls
    shown = [each for each in cause.checks if is_short or len(each.findings) <= MAX_LINES]
    for check in cause.checks:
        lines = _list_check(check, colour=colour, with_calls=check in shown)
        yield from (f"  {line}" for line in lines)
    if difference is not None:
        with_calls = not any(each.shows_calls for each in shown)
        yield from _list_difference(difference, colour=colour, with_calls=with_calls)
    if others := cause.format_others(_cell, _line):
        yield f"  {others}"
    if similar := cause.format_similar(_cell, _cell):
        yield f"  {similar}"


def _list_difference(
    difference: RunDifference, *, colour: bool, with_calls: bool = True
) -> Iterator[str]:
    # What its checks found says which turns are missing.
    if difference.is_same:
        yield f"  {difference.format_head()}"
    for label, lines in difference.list_parts(with_calls=with_calls):
        yield f"  {label}:"
        yield from (f"    {_colour_line(line, colour=colour)}" for line in lines)
    if more := difference.format_more(with_calls=with_calls):
        yield f"  {more}"


def _list_check(check: FailedCheck, *, colour: bool, with_calls: bool) -> Iterator[str]:
    result = check.result
    was = f", was {check.before}" if check.before else ""
    advisory = "" if result.evaluator.required else baseline_text.ADVISORY
    if check.note:
        was = f", {check.before} → {check.after}; {check.note}"
    yield _line(
        f"{result.evaluator.name}{advisory}: {format_outcome(result)}{was} "
        f"({result.evaluator.place})"
    )
    calls = () if result.judgement is None else format_diff(result.judgement.details)
    findings = [each for each in check.findings if with_calls or each not in calls]
    for line in truncate.truncate_list(findings, MAX_LINES):
        if line in calls and not line.startswith("tool calls "):
            yield f"    {_colour_line(line, colour=colour)}"
        else:
            yield f"  {_line(line)}"


def _colour_line(line: str, *, colour: bool) -> str:
    code = _DIFF_COLOURS.get(line[:1], "") if colour else ""
    return colour_text(_line(line), code, colour=bool(code))


def _list_lost(causes: Causes, *, colour: bool) -> Iterator[str]:
    """Yield the eval cases without a run, and checks that passed in the baseline and do not run."""
    if names := list_missing_cases(causes.report)["unrecorded"]:
        yield f"{format_count(len(names), 'case')} {UNRECORDED}: {list_first_names(names, _cell)}"
    groups = join_lost(causes.lost)
    for group in groups[:MAX_ITEMS]:
        reason = f" ({_line(group[0].reason)})" if group[0].reason else ""
        yield _line(format_lost(group, _line, _cell)) + reason
        for each in group:
            if each.changed:
                yield f"  {each.format_changed(_cell)}"
            if each.difference is not None:
                yield from _list_difference(each.difference, colour=colour)
    if len(groups) > MAX_ITEMS:
        yield truncate.format_omitted(len(groups) - MAX_ITEMS)


def _list_changed_runs(report: Report) -> Iterator[str]:
    """Yield what changed by kind, and below it one case per line."""
    for each in list_changed_runs(report, MAX_CHANGED_RUNS, _cell, str):
        yield _line(f"{each.label}: {each.head}")
        yield from (f"  {_line(line)}" for line in each.lines)


def _list_by_reason(results: Sequence[CheckResult], *, several: bool) -> Iterator[str]:
    """Yield cases by evaluator and reason; a long reason keeps its first and last lines."""
    groups = group_by_cases(results)
    for each in groups[:MAX_ITEMS]:
        name = each.format_name(_cell, _cell)
        name += f" of {_cell(format_path(each.config))}" if several else ""
        first, *others = truncate.truncate_lines(split_lines(each.reason), MAX_LINES) or ("",)
        yield f"{name} ({each.format_checks(_cell, _cell)}): {_line(first)}"
        yield from (f"  {truncate.middle(line, MAX_WIDTH)}" for line in others)
    if len(groups) > MAX_ITEMS:
        yield truncate.format_omitted(len(groups) - MAX_ITEMS)


def _list_other_words(report: Report) -> Sequence[str]:
    found = [
        _line(f"{each.case.id}: {'; '.join(words)}")
        for each in report.results
        if each.evaluator.required and (words := list_changed_words(each))
    ]
    return truncate.truncate_list(found, MAX_CHANGED_RUNS)


def _warnings(report: Report) -> Sequence[str]:
    found = group_warnings(report).items()
    return truncate.truncate_list(
        [f"{_line(text)} ({format_case_names(cases, _cell)})" for text, cases in found], MAX_ITEMS
    )


def _cell(text: str) -> str:
    return escape.flatten_line(truncate.ends(text, MAX_CELL))


def _line(text: str, width: int = MAX_WIDTH) -> str:
    return escape.flatten_line(truncate.middle(text, width))
