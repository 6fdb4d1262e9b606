"""Registry of the reporters that write files; add a new one here."""

from agentci.model.choices import JUnitFormat
from agentci.reports.comment import CommentReport
from agentci.reports.html.page import HtmlReport
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from agentci.reports.junit import JUnitReport
from agentci.reports.report_format import Reporter

# By name, the most important first: if the disk fills up, later files are lost.
REPORTERS: dict[str, Reporter] = {
    "results": JsonReport(),
    "junit": JUnitReport(),
    "summary": SummaryReport(),
    "report": HtmlReport(),
    "comment": CommentReport(),
}


def make_reporters(*, junit_dialect: JUnitFormat, comment: CommentReport) -> tuple[Reporter, ...]:
    """Return all reporters with the user's settings."""
    made = {**REPORTERS, "junit": JUnitReport(dialect=junit_dialect), "comment": comment}
    return tuple(made.values())
