"""The report for a terminal or a log: plain lines, in colour only where asked."""

from collections.abc import Iterable, Iterator, Sequence

from agentci.model.result import Report, Result
from agentci.reporters.base import (
    Tally,
    by_reason,
    case_names,
    findings,
    headline,
    of_status,
    tallies,
    tally_line,
    warnings,
    worst_first,
)
from agentci.text import clip, escape
from agentci.text.words import number

MAX_CASES = 10
MAX_LINES = 12
MAX_ITEMS = 20
MAX_WIDTH = 500
MAX_CELL = 60

COLUMNS = ("evaluator", "checks", "passed", "failed", "errored", "skipped", "score", "bar")


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
    for title, lines in () if quiet else _sections(report, verbose=verbose):
        if body := "".join(f"  {line}\n" for line in lines):
            text += f"\n{_painted(title, _BOLD, colour=colour)}\n{body}"
    return escape.inert(text)


def _verdict(report: Report, *, colour: bool) -> str:
    word, paint = ("open", _GREEN) if report.decision.open else ("shut", _RED)
    first, *others = report.decision.why or ("",)
    title = _painted(f"Gate {word}", paint, colour=colour)
    lines = (_line(line) for line in (*others, tally_line(report.totals)))
    return "\n  ".join((f"{title}{first and f': {_line(first)}'}", *lines)) + "\n"


_BOLD, _RED, _GREEN = "1", "1;31", "1;32"


def _painted(text: str, paint: str, *, colour: bool) -> str:
    return f"\x1b[{paint}m{text}\x1b[0m" if colour else text


def _sections(report: Report, *, verbose: bool) -> Iterator[tuple[str, Iterable[str]]]:
    if verbose:
        yield "Checks", map(_check, report.results)
    yield "Evaluators", _table(tallies(report.results))
    yield "Worst cases", _worst(of_status(report.results, "failed"))
    yield "Could not be judged", _grouped(of_status(report.results, "errored"))
    yield "Nothing to judge", _grouped(of_status(report.results, "skipped"))
    yield "Warnings", _warnings(report.results)
    yield (
        "Problems",
        clip.listed([_line(f"{each.severity}: {each}") for each in report.problems], MAX_ITEMS),
    )


def _check(result: Result) -> str:
    return _line(f"{result.status}: {result.case.id} > {result.evaluator}: {headline(result)}")


def _table(found: Sequence[Tally]) -> Iterator[str]:
    if not found:
        return
    rows = [COLUMNS, *(_row(tally) for tally in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    for row in rows:
        name, *numbers, bar = row
        cells = (cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True))
        yield f"{name.ljust(widths[0])}  {'  '.join(cells)}  {bar}"


def _row(tally: Tally) -> tuple[str, ...]:
    totals, result = tally.totals, tally.any
    counts = (totals.checks, totals.passed, totals.failed, totals.errored, totals.skipped)
    advisory = "" if result.required else " (advisory)"
    return (
        f"{_cell(result.evaluator)}{advisory}",
        *(f"{each:,}" for each in counts),
        "-" if totals.score is None else number(totals.score),
        _cell(result.bar),
    )


def _worst(failed: Sequence[Result]) -> Iterator[str]:
    for result in worst_first(failed)[:MAX_CASES]:
        yield _line(f"{result.case.id} > {result.evaluator}: {headline(result)}")
        yield f"  {_line(str(result.place))}"
        yield from (f"  {_line(line)}" for line in clip.listed(findings(result), MAX_LINES))
    if len(failed) > MAX_CASES:
        yield clip.more(len(failed) - MAX_CASES)


def _grouped(results: Sequence[Result]) -> Sequence[str]:
    """What befell cases, by evaluator and reason."""
    lines = [
        f"{_cell(evaluator)} ({case_names(cases, _cell)}): {_line(reason)}"
        for (_, evaluator, reason), cases in by_reason(results).items()
    ]
    return clip.listed(lines, MAX_ITEMS)


def _warnings(results: Sequence[Result]) -> Sequence[str]:
    found = warnings(results).items()
    return clip.listed(
        [f"{_line(text)} ({case_names(cases, _cell)})" for text, cases in found], MAX_ITEMS
    )


def _cell(text: str) -> str:
    return _line(text, MAX_CELL)


def _line(text: str, width: int = MAX_WIDTH) -> str:
    return escape.plain_line(clip.characters(text, width))
