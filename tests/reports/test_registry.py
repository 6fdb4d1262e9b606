"""The table of reporters that are files."""

from agentci.model.choices import JUNIT_FORMATS
from agentci.reports.action_outputs import REPORT_PATH_OUTPUTS
from agentci.reports.comment import CommentReport
from agentci.reports.junit import JUnitReport
from agentci.reports.registry import REPORTERS, make_reporters


def test_every_reporter_is_known_by_its_name_and_has_an_output_for_its_path() -> None:
    assert {name: reporter.name for name, reporter in REPORTERS.items()} == {
        name: name for name in REPORT_PATH_OUTPUTS
    }


def test_files_are_those_that_scripts_rely_on() -> None:
    made = make_reporters(junit_dialect="common", comment=CommentReport())
    assert [reporter.file_name for reporter in made] == [
        "results.json",
        "junit.xml",
        "summary.md",
        "report.html",
        "comment.md",
    ]


def test_the_dialect_is_the_one_that_was_asked_for() -> None:
    for dialect in JUNIT_FORMATS:
        assert JUnitReport(dialect=dialect) in make_reporters(
            junit_dialect=dialect, comment=CommentReport()
        )


def test_the_comment_leads_to_the_run_that_was_named() -> None:
    comment = CommentReport(run_url="https://github.example/octo/agent/actions/runs/3")
    assert comment in make_reporters(junit_dialect="common", comment=comment)
