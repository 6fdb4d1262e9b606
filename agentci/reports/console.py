"""The report for a terminal or a log: plain lines, in colour only where asked."""

from collections.abc import Iterable, Iterator, Sequence

from agentci._util.text import escape, truncate
from agentci._util.text.format import number
from agentci.model.comparison import Comparison
from agentci.model.result import Report, Result
from agentci.reports import comparison as trends
from agentci.reports.check_text import findings, lines, outcome
from agentci.reports.locations import file_name, problem_line
from agentci.reports.report_format import (
    Tally,
    by_reason,
    case_names,
    conclusion,
    counts,
    of_status,
    several_configs,
    tallies,
    warnings,
    worst_first,
)
from agentci.reports.spending import spending_line
from agentci.reports.stability import stabilities

MAX_CASES = 10
MAX_LINES = 12
MAX_ITEMS = 20
MAX_WIDTH = 500
MAX_CELL = 60

COLUMNS = (
    *("config", "evaluator", "checks", "passed", "failed", "errored", "skipped", "score", "bar"),
)


def render_console(report: Report, *, quiet: bool, verbose: bool, colour: bool) -> str:
    """Verdict, evaluators, worst cases, errors, skips, warnings and problems.

    Nothing in it is a workflow command, and no control sequence is in it but our own colours.

    Args:
        report: what was found.
        quiet: the verdict alone, with its reasons.
        verbose: every check has a line.
        colour: for terminals.
    """
    text = _verdict(report, colour=colour)
    for heading, told in () if quiet else _sections(report, verbose=verbose):
        if body := "".join(f"  {line}\n" for line in told):
            text += f"\n{_painted(heading, _BOLD, colour=colour)}\n{body}"
    return escape.inert(text)


def _verdict(report: Report, *, colour: bool) -> str:
    paint = _RED if report.decision.shuts else _GREEN
    first, *others = report.decision.why or ("",)
    head = _painted(conclusion(report), paint, colour=colour)
    cost = spending_line(report.spending)
    told = (_line(line) for line in (*others, counts(report), *([cost] if cost else [])))
    return "\n  ".join((f"{head}{first and f': {_line(first)}'}", *told)) + "\n"


_BOLD, _RED, _GREEN = "1", "1;31", "1;32"


def _painted(text: str, paint: str, *, colour: bool) -> str:
    return f"\x1b[{paint}m{text}\x1b[0m" if colour else text


def _sections(report: Report, *, verbose: bool) -> Iterator[tuple[str, Iterable[str]]]:
    if verbose:
        yield "Checks", map(_check, report.results)
    several = several_configs(report.results)
    yield "Evaluators", _table(tallies(report.results), several=several)
    yield "Against the baseline", comparison_lines(report.comparison)
    yield "Repeats", [_line(each.line) for each in stabilities(report.results)]
    yield "Worst cases", _worst(of_status(report.results, "failed"))
    yield "Could not be judged", _grouped(of_status(report.results, "errored"), several=several)
    yield "Nothing to judge", _grouped(of_status(report.results, "skipped"), several=several)
    yield "Warnings", _warnings(report.results)
    yield (
        "Problems",
        truncate.listed(
            [_line(f"{each.severity}: {problem_line(each)}") for each in report.problems], MAX_ITEMS
        ),
    )


def _check(result: Result) -> str:
    return _line(f"{result.status}: {result.case.id} > {result.evaluator.name}: {outcome(result)}")


def _table(found: Sequence[Tally], *, several: bool) -> Iterator[str]:
    """The evaluators under one another; with several configs each says whose it is."""
    if not found:
        return
    rows = [COLUMNS, *(_row(tally) for tally in found)]
    names = 2 if several else 1
    rows = [row[2 - names :] for row in rows]
    yield from _aligned(rows, names=names)


def _aligned(rows: Sequence[Sequence[str]], *, names: int) -> Iterator[str]:
    """Rows of equal columns, of which the first ``names`` are no numbers; nor is the last."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        *cells, last = row
        padded = (
            cell.ljust(width) if column < names else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=False))
        )
        yield f"{'  '.join(padded)}  {last}"


def comparison_lines(comparison: Comparison | None) -> Iterator[str]:
    """A line an evaluator, then what is to be known of it, then what got worse."""
    if comparison is None:
        return
    if comparison.trends:
        rows = (trends.cells(trend, comparison) for trend in comparison.trends)
        yield from _aligned([trends.COLUMNS, *(list(map(_cell, row)) for row in rows)], names=1)
    yield from map(_line, trends.remarks(comparison))
    worse = [
        _line(f"worse: {case} > {evaluator}: {scores}")
        for case, evaluator, scores in trends.regressions(comparison)
    ]
    yield from truncate.listed(worse, MAX_ITEMS)


def _row(tally: Tally) -> tuple[str, ...]:
    totals, result = tally.totals, tally.any
    counts = (totals.checks, totals.passed, totals.failed, totals.errored, totals.skipped)
    advisory = "" if result.evaluator.required else " (advisory)"
    return (
        _cell(file_name(result.config)),
        f"{_cell(result.evaluator.name)}{advisory}",
        *(f"{each:,}" for each in counts),
        "-" if totals.score is None else number(totals.score),
        _cell(result.evaluator.bar),
    )


def _worst(failed: Sequence[Result]) -> Iterator[str]:
    for result in worst_first(failed)[:MAX_CASES]:
        yield _line(f"{result.case.id} > {result.evaluator.name}: {outcome(result)}")
        yield f"  {_line(f'{result.evaluator.place}, recording {result.case.recording.file}')}"
        yield from (f"  {_line(line)}" for line in truncate.listed(findings(result), MAX_LINES))
    if len(failed) > MAX_CASES:
        yield truncate.more(len(failed) - MAX_CASES)


def _grouped(results: Sequence[Result], *, several: bool) -> Iterator[str]:
    """What befell cases, by evaluator and reason; of a long reason the first and last lines."""
    groups = list(by_reason(results).items())
    for (config, evaluator, reason), cases in groups[:MAX_ITEMS]:
        name = f"{_cell(evaluator)} of {_cell(file_name(config))}" if several else _cell(evaluator)
        first, *others = truncate.ends(lines(reason), MAX_LINES) or ("",)
        yield f"{name} ({case_names(cases, _cell)}): {_line(first)}"
        yield from (f"  {truncate.middle(line, MAX_WIDTH)}" for line in others)
    if len(groups) > MAX_ITEMS:
        yield truncate.more(len(groups) - MAX_ITEMS)


def _warnings(results: Sequence[Result]) -> Sequence[str]:
    found = warnings(results).items()
    return truncate.listed(
        [f"{_line(text)} ({case_names(cases, _cell)})" for text, cases in found], MAX_ITEMS
    )


def _cell(text: str) -> str:
    return _line(text, MAX_CELL)


def _line(text: str, width: int = MAX_WIDTH) -> str:
    return escape.plain_line(truncate.middle(text, width))
