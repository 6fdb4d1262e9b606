"""Remarks beside the lines of a pull request: workflow commands, within GitHub's limits."""

from collections.abc import Iterator, Sequence
from itertools import chain

from agentci.github.commands import Annotation, annotate
from agentci.model.case import Case
from agentci.model.problem import Severity
from agentci.model.result import Report, Result
from agentci.reporters.base import (
    Tally,
    findings,
    headline,
    of_status,
    problem_annotation,
    tallies,
    warnings,
    worst_first,
)
from agentci.text import clip
from agentci.text.words import count

MAX_CASES = 5
MAX_LINES = 8
MAX_LINE = 300


def render_annotations(report: Report) -> str:
    """One annotation an evaluator that fell short, worst first; then warnings about the input.

    What falls short of an open gate, or is advisory, is a warning.
    """
    fallen = [
        tally for tally in tallies(report.results) if tally.totals.failed or tally.totals.errored
    ]
    annotations = chain(
        (problem_annotation(problem) for problem in report.problems if problem.severity == "error"),
        (_fallen(tally, gate_open=report.decision.open) for tally in sorted(fallen, key=_rank)),
        (problem_annotation(problem) for problem in report.problems if problem.severity != "error"),
        (_warned(text, cases) for text, cases in warnings(report.results).items()),
    )
    return annotate(tuple(annotations))


def _rank(tally: Tally) -> tuple[float, float]:
    """The larger the share that fell short, then the lower the mean, the further to the front."""
    totals = tally.totals
    share = (totals.failed + totals.errored) / totals.checks
    return (-share, -1.0 if totals.score is None else totals.score)


def _fallen(tally: Tally, *, gate_open: bool) -> Annotation:
    level: Severity = "error" if tally.any.required and not gate_open else "warning"
    failed, errored = (
        worst_first(of_status(tally.results, "failed")),
        of_status(tally.results, "errored"),
    )
    lines = [*_cases(failed), *_cases(errored)]
    return Annotation(
        level=level, title=_title(tally), message="\n".join(lines), place=tally.any.place
    )


def _title(tally: Tally) -> str:
    totals, bar = tally.totals, tally.any.bar
    said = []
    if totals.failed:
        below = any(result.reason is None for result in of_status(tally.results, "failed"))
        fell = f"below {bar}" if below and bar.startswith("at least ") else f"failed: {bar}"
        said.append(f"{totals.failed:,} of {totals.checks:,} {fell}")
    if totals.errored:
        said.append(f"{totals.errored:,} of {totals.checks:,} could not be judged")
    return f"{tally.any.evaluator}: {', '.join(said)}"


def _cases(results: Sequence[Result]) -> Iterator[str]:
    """The first ones with what was found, then how many there are more."""
    for result in results[:MAX_CASES]:
        yield clip.characters(f"{result.case.id}: {headline(result)}", MAX_LINE)
        found = clip.listed(findings(result), MAX_LINES)
        yield from (f"  {clip.characters(line, MAX_LINE)}" for line in found)
    if len(results) > MAX_CASES:
        yield clip.more(len(results) - MAX_CASES)


def _warned(text: str, cases: Sequence[Case]) -> Annotation:
    names = ", ".join(clip.listed([case.id for case in cases], MAX_CASES))
    return Annotation(
        level="warning",
        title=f"{count(len(cases), 'recording')} read with a warning",
        message=f"{text}\n{names}",
        place=cases[0].trace.place,
    )
