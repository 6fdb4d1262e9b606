"""The table of reporters that are files."""

from agentci.model.choices import JUNIT_DIALECTS
from agentci.reports.action_outputs import PATHS
from agentci.reports.comment import Comment
from agentci.reports.junit import JUnit
from agentci.reports.registry import REPORTERS, reporters


def test_every_reporter_is_known_by_its_name_and_has_an_output_for_its_path() -> None:
    assert {name: reporter.name for name, reporter in REPORTERS.items()} == {
        name: name for name in PATHS
    }


def test_files_are_those_that_scripts_rely_on() -> None:
    made = reporters(junit_dialect="common", comment=Comment())
    assert [reporter.file_name for reporter in made] == [
        "results.json",
        "junit.xml",
        "summary.md",
        "report.html",
        "comment.md",
    ]


def test_the_dialect_is_the_one_that_was_asked_for() -> None:
    for dialect in JUNIT_DIALECTS:
        assert JUnit(dialect=dialect) in reporters(junit_dialect=dialect, comment=Comment())


def test_the_comment_leads_to_the_run_that_was_named() -> None:
    comment = Comment(run_url="https://github.example/octo/agent/actions/runs/3")
    assert comment in reporters(junit_dialect="common", comment=comment)
