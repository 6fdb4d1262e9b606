"""The registry of file writers."""

from agentci.model.values import JUNIT_FORMATS
from agentci.reports.comment import CommentReport
from agentci.reports.job_summary import SummaryReport
from agentci.reports.junit import JUnitReport
from agentci.reports.registry import REPORT_WRITERS, make_report_writers


def test_every_report_has_the_name_of_its_output() -> None:
    assert [writer.name for writer in REPORT_WRITERS.values()] == [*REPORT_WRITERS]


def test_report_file_names_are_stable() -> None:
    made = make_report_writers(
        junit=JUnitReport(), summary=SummaryReport(), comment=CommentReport()
    )
    assert [writer.file_name for writer in made] == [
        "results.json",
        "junit.xml",
        "summary.md",
        "report.html",
        "comment.md",
    ]


def test_junit_report_has_given_settings() -> None:
    for dialect in JUNIT_FORMATS:
        junit = JUnitReport(dialect=dialect, attachment="results/report.html")
        assert junit in make_report_writers(
            junit=junit, summary=SummaryReport(), comment=CommentReport()
        )


def test_comment_links_to_given_run() -> None:
    comment = CommentReport(run_url="https://github.example/octo/agent/actions/runs/3")
    assert comment in make_report_writers(
        junit=JUnitReport(), summary=SummaryReport(), comment=comment
    )
