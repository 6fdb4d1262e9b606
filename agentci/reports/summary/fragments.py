"""What the page and the comment say alike."""

from collections.abc import Sequence

from agentci._util.text.markdown import code, prose
from agentci.model.problem import Problem
from agentci.model.result import Report
from agentci.reports.locations import file_name
from agentci.reports.report_format import Tally, Verdict, conclusion, verdict
from agentci.reports.summary.section import Section

_ICONS: dict[Verdict, str] = {
    "open": "\N{WHITE HEAVY CHECK MARK}",
    "partial": "\N{WHITE HEAVY CHECK MARK}",
    "shut": "\N{CROSS MARK}",
    "error": "\N{COLLISION SYMBOL}",
    "invalid": "\N{NO ENTRY SIGN}",
}


def headline(report: Report) -> str:
    """The verdict with its weightiest reason."""
    why = f": {prose(report.decision.why[0])}" if report.decision.why else ""
    return f"## {_ICONS[verdict(report.decision)]} {conclusion(report)}{why}\n\n"


def reasons(report: Report) -> Section:
    """The other reasons for the verdict."""
    others = report.decision.why[1:]
    return Section(
        title="",
        noun="reason",
        blocks=(f"- {prose(why)}\n" for why in others),
        total=len(others),
    )


def icon(tally: Tally, *, shut: bool) -> str:
    """A cross is for what keeps the gate shut, not for what an open one bears with."""
    if tally.totals.failed or tally.totals.errored:
        minded = tally.any.evaluator.required and shut
        return "\N{CROSS MARK}" if minded else "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}"
    return "\N{WHITE HEAVY CHECK MARK}" if tally.totals.passed else "\N{HEAVY MINUS SIGN}"


def evaluator_name(config: str, evaluator: str, *, several: bool) -> str:
    """An evaluator, with its config where there are several."""
    where_from = f" of {code(file_name(config))}" if several else ""
    return f"{code(evaluator)}{where_from}"


def problems(found: Sequence[Problem]) -> Section:
    """What is wrong with the input, and what is worth knowing of it."""
    return Section(
        title="### Problems\n\n", noun="problem", blocks=map(_problem, found), total=len(found)
    )


def _problem(problem: Problem) -> str:
    place = "" if problem.place is None else f"{code(str(problem.place))} "
    hint = "" if problem.hint is None else f" ({prose(problem.hint)})"
    return f"- **{problem.severity}** {place}{prose(problem.message)}{hint}\n"
