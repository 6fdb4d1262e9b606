"""Remarks beside the lines of a pull request."""

from collections.abc import Iterable, Iterator, Sequence

from agentci._util.text import truncate
from agentci._util.text.format import count
from agentci.model.case import Synopsis
from agentci.model.problem import Severity
from agentci.model.result import Report, Result
from agentci.reports.check_text import findings, is_below_bar, lines, outcome
from agentci.reports.locations import in_a_file
from agentci.reports.report_format import (
    Tally,
    by_reason,
    case_names,
    conclusion,
    of_status,
    problem_annotation,
    tallies,
    warnings,
    worst_first,
)
from agentci.reports.workflow_commands import Annotation

MAX_CASES = 5
MAX_LINES = 8
MAX_LINE = 300


def annotations_of(report: Report) -> tuple[Annotation, ...]:
    """One annotation an evaluator that fell short, worst first; then warnings about the input.

    What falls short of an open gate, or is advisory, is a warning. A gate that is shut for
    something else says so.
    """
    found = tallies(report.results, by_place=True)
    fallen = [tally for tally in found if tally.totals.failed or tally.totals.errored]
    annotations = [
        *(
            problem_annotation(problem)
            for problem in report.problems
            if problem.severity == "error"
        ),
        *(_fallen(tally, shut=report.decision.shuts) for tally in sorted(fallen, key=_rank)),
        *(_idle(tally) for tally in found if tally.totals.skipped == tally.totals.checks),
        *(
            problem_annotation(problem)
            for problem in report.problems
            if problem.severity != "error"
        ),
        *(_warned(text, cases) for text, cases in warnings(report.results).items()),
    ]
    if report.decision.shuts and not any(each.level == "error" for each in annotations):
        annotations.append(_shut(report))
    return tuple(annotations)


def _shut(report: Report) -> Annotation:
    why = "\n".join(_line(reason) for reason in report.decision.why)
    return Annotation(level="error", title=conclusion(report), message=why)


def _rank(tally: Tally) -> tuple[float, float]:
    """The larger the share that fell short, then the lower the mean, the further to the front."""
    totals = tally.totals
    share = (totals.failed + totals.errored) / totals.checks
    return (-share, -1.0 if totals.score is None else totals.score)


def _fallen(tally: Tally, *, shut: bool) -> Annotation:
    level: Severity = "error" if tally.any.evaluator.required and shut else "warning"
    told = (
        *_failed(worst_first(of_status(tally.results, "failed"))),
        *_errored(of_status(tally.results, "errored")),
    )
    return _on_its_line(tally, level, _title(tally), told)


def _idle(tally: Tally) -> Annotation:
    """An evaluator that had nothing to judge, and so guards nothing."""
    skipped = f"{tally.totals.skipped:,} of {tally.totals.checks:,} had nothing to judge"
    told = (
        f"{_line(truncate.outline(lines(reason)))} ({case_names(cases, str)})"
        for (_, _, reason), cases in by_reason(tally.results).items()
    )
    return _on_its_line(tally, "warning", f"{tally.any.evaluator.name}: {skipped}", told)


def _on_its_line(tally: Tally, level: Severity, title: str, told: Iterable[str]) -> Annotation:
    place = in_a_file(tally.any.evaluator.place)
    return Annotation(level=level, title=title, message="\n".join(told), place=place)


def _title(tally: Tally) -> str:
    totals, bar = tally.totals, tally.any.evaluator.bar
    said = []
    if totals.failed:
        below = any(map(is_below_bar, of_status(tally.results, "failed")))
        fell = f"below {bar}" if below and bar.startswith("at least ") else "failed"
        said.append(f"{totals.failed:,} of {totals.checks:,} {fell}")
    if totals.errored:
        said.append(f"{totals.errored:,} of {totals.checks:,} could not be judged")
    return f"{tally.any.evaluator.name}: {', '.join(said)}"


def _failed(results: Sequence[Result]) -> Iterator[str]:
    """The first ones with what was found, then how many there are more."""
    for result in results[:MAX_CASES]:
        yield _line(f"{_in_recording(result.case)}: {outcome(result)}")
        found = truncate.listed(findings(result), MAX_LINES)
        yield from (f"  {_line(line)}" for line in found)
    if len(results) > MAX_CASES:
        yield truncate.more(len(results) - MAX_CASES)


def _errored(results: Sequence[Result]) -> Iterator[str]:
    """Cases by what befell them; of a long reason the first and the last lines."""
    groups = list(by_reason(results).items())
    for (_, _, reason), cases in groups[:MAX_CASES]:
        first, *others = truncate.ends(lines(reason), MAX_LINES) or ("",)
        names = _in_recording(cases[0]) if len(cases) == 1 else case_names(cases, str)
        yield _line(f"{names}: {first}")
        yield from (f"  {_line(line)}" for line in others)
    if len(groups) > MAX_CASES:
        yield truncate.more(len(groups) - MAX_CASES)


def _in_recording(case: Synopsis) -> str:
    return f"{case.id} ({case.recording.file})"


def _line(text: str) -> str:
    return truncate.middle(text, MAX_LINE)


def _warned(text: str, cases: Sequence[Synopsis]) -> Annotation:
    names = ", ".join(truncate.listed([case.id for case in cases], MAX_CASES))
    return Annotation(
        level="warning",
        title=f"{count(len(cases), 'recording')} read with a warning",
        message=f"{text}\n{names}",
        place=in_a_file(cases[0].recording),
    )
