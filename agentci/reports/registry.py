"""The reporters whose text is a file in the output folder: a new one is one line here."""

from agentci.model.choices import JUnitDialect
from agentci.reports.comment import Comment
from agentci.reports.html.page import HtmlReport
from agentci.reports.json_report import JsonReport
from agentci.reports.junit import JUnit
from agentci.reports.report_format import Reporter
from agentci.reports.summary.page import Summary

# By name, the weightiest first: where the disk fills up, the later ones are lost.
REPORTERS: dict[str, Reporter] = {
    "results": JsonReport(),
    "junit": JUnit(),
    "summary": Summary(),
    "report": HtmlReport(),
    "comment": Comment(),
}


def reporters(*, junit_dialect: JUnitDialect, comment: Comment) -> tuple[Reporter, ...]:
    """All of them, set up as the user asked."""
    made = {**REPORTERS, "junit": JUnit(dialect=junit_dialect), "comment": comment}
    return tuple(made.values())
