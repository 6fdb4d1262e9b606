"""The outputs of the action, and the text of the file that hands them to the runner."""

from collections.abc import Mapping

from agentci._util.text.escape import replace_surrogates
from agentci._util.text.format import format_number
from agentci.model.result import Report
from agentci.reports.report_format import Verdict, get_verdict

# Outputs that hold the path of a report; each is named after its reporter.
REPORT_PATH_OUTPUTS = ("results", "junit", "summary", "report", "comment")


def make_outputs(report: Report, paths: Mapping[str, str]) -> dict[str, str]:
    """What later steps of a workflow read.

    Args:
        report: what was found.
        paths: by reporter's name, relative to the workspace; "" stands for a file not written.
    """
    totals = report.totals
    return {
        "passed": "true" if report.decision.open else "false",
        "verdict": get_verdict(report.decision),
        "score": "" if totals.score is None else format_number(totals.score, digits=6),
        "checks": str(totals.checks),
        "passed-count": str(totals.passed),
        "failed-count": str(totals.failed),
        "errored-count": str(totals.errored),
        "skipped-count": str(totals.skipped),
        **{name: paths.get(name, "") for name in REPORT_PATH_OUTPUTS},
    }


def make_outputs_without_report(reason: Verdict) -> dict[str, str]:
    """The outputs of a run that came to no report: its input was wrong, or we crashed."""
    counts = ("checks", "passed-count", "failed-count", "errored-count", "skipped-count")
    return {
        "passed": "false",
        "verdict": reason,
        "score": "",
        **dict.fromkeys(counts, "0"),
        **dict.fromkeys(REPORT_PATH_OUTPUTS, ""),
    }


def render_outputs(values: Mapping[str, str], delimiter: str) -> str:
    """The lines to append to the file named in ``GITHUB_OUTPUT``.

    The form with a delimiter is used for every value: in the form ``name=value`` a line end in a
    value would begin another output.

    Args:
        values: by name.
        delimiter: random, so that no value can hold it.

    Raises:
        ValueError: one holds it nevertheless.
    """
    if any(delimiter in text for item in values.items() for text in item):
        raise ValueError("the delimiter of the outputs stands in one of them")
    return "".join(
        f"{name}<<{delimiter}\n{replace_surrogates(value)}\n{delimiter}\n"
        for name, value in values.items()
    )
