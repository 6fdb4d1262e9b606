"""Outputs of the GitHub action, and the text of the file that the runner reads."""

from collections.abc import Mapping

from agentci._util.text.escape import replace_surrogates
from agentci._util.text.format import format_number
from agentci.model.result import Report
from agentci.reports.report_format import Verdict, get_verdict

# Outputs with the path of a report file, named after what writes them.
REPORT_PATH_OUTPUTS = ("results", "junit", "summary", "report", "comment")


def make_outputs(report: Report, paths: Mapping[str, str]) -> dict[str, str]:
    """Make the outputs that later steps of a workflow read.

    Args:
        paths: report files by name, relative to the workspace; a file that was not written
            is "" or absent.
    """
    totals = report.totals
    return {
        "passed": "true" if report.decision.passed else "false",
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
    """Make the outputs of a run without a report: invalid input or an internal error."""
    counts = ("checks", "passed-count", "failed-count", "errored-count", "skipped-count")
    return {
        "passed": "false",
        "verdict": reason,
        "score": "",
        **dict.fromkeys(counts, "0"),
        **dict.fromkeys(REPORT_PATH_OUTPUTS, ""),
    }


def render_outputs(values: Mapping[str, str], delimiter: str) -> str:
    """Render the lines to append to the file named in ``GITHUB_OUTPUT``.

    Every value uses the form with a delimiter: in the form ``name=value`` a line break in a value
    would start another output.

    Args:
        values: by name.
        delimiter: random, so that no value contains it.

    Raises:
        ValueError: if a name or a value contains the delimiter.
    """
    if any(delimiter in text for item in values.items() for text in item):
        raise ValueError("an output contains the delimiter")
    return "".join(
        f"{name}<<{delimiter}\n{replace_surrogates(value)}\n{delimiter}\n"
        for name, value in values.items()
    )
