"""Invalid input is reported as its problems, each once, without counts of checks."""

from agentci.model.result import Report
from agentci.model.values import Place, Problem
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.html.page import HtmlReport
from agentci.reports.job_summary import SummaryReport
from agentci.reports.registry import ReportWriter
from tests.helpers.reports import make_report, make_result

ERROR = Problem(message="unknown key `x`", hint="did you mean `y`?", place=Place(file="a.yaml"))
WARNING = Problem(message="is empty", place=Place(file="b.yaml", line=3), severity="warning")
LINES = "a.yaml:1: error: unknown key `x`; did you mean `y`?\nb.yaml:3: warning: is empty\n"


def _print(report: Report, *, quiet: bool = False) -> str:
    return render_console(report, quiet=quiet, verbose=False, colour=True)


def _write(writer: ReportWriter, report: Report) -> str:
    return "".join(writer.render(report))


def test_terminal_shows_one_line_per_problem() -> None:
    assert _print(make_report([], problems=[ERROR])) == LINES.partition("\n")[0] + "\n"
    assert _print(make_report([], problems=[ERROR, WARNING])) == f"{LINES}1 error, 1 warning\n"


def test_quiet_terminal_shows_errors() -> None:
    expected = LINES.partition("\n")[0] + "\n"
    assert _print(make_report([], problems=[ERROR, WARNING]), quiet=True) == expected
    text = _print(make_report([make_result("passed")], problems=[ERROR, WARNING]), quiet=True)
    assert f"\n  {expected}\n" in text
    assert "warning" not in text


def test_terminal_shows_checks_and_problems_once() -> None:
    text = _print(make_report([make_result("passed")], problems=[ERROR, WARNING]))
    assert "Quality gate failed\x1b[0m: invalid input (1 error)\n" in text
    assert "1 check: 1 passed" in text
    assert text.count("unknown key") == text.count("is empty") == 1


def test_summary_and_comment_show_problems_under_heading() -> None:
    report = make_report([], problems=[ERROR, WARNING])
    for writer in (SummaryReport(), CommentReport()):
        assert _write(writer, report) == (
            "## \N{CROSS MARK} Invalid input\n\n"
            "- **error** `a.yaml:1` unknown key `x`; did you mean `y`?\n"
            "- **warning** `b.yaml:3` is empty\n"
        )


def test_page_shows_problems_once_and_hides_table() -> None:
    text = _write(HtmlReport(), make_report([], problems=[ERROR]))
    page = text.partition("<main ")[2].partition("</main>")[0]
    assert "Invalid input</h1>" in page
    assert page.count("unknown key") == 1
    assert "0 passed" not in page
