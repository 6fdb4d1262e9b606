"""What is looser than the base, in each report."""

import re
from typing import Any

import pytest

from agentci.model.gate import PolicyChange, PolicyComparison
from agentci.model.result import Report
from agentci.model.values import replace
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.html.page import HtmlReport
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from agentci.reports.merge.read import read_report
from tests.helpers.reports import CONFIG, make_report, make_result, text_of

THRESHOLD = PolicyChange(
    config=CONFIG, kind="loosened", subject="threshold of tone", before="0.8", after="0.1"
)
CASES = PolicyChange(
    config=CONFIG, kind="removed", subject="2 eval cases", after="removed", names=("a", "b")
)
EDIT = PolicyChange(config=CONFIG, kind="edited", subject="code of tone", after="edited")
HEADING = "### Policy is looser than on the base branch\n\n"


def report_of(*changes: PolicyChange, **others: Any) -> Report:
    policy = PolicyComparison(base="8c1f, git", loosened=changes)
    return replace(make_report([make_result()]), policy=replace(policy, **others))


def console(report: Report) -> str:
    return render_console(report, quiet=False, verbose=False, colour=False)


@pytest.mark.parametrize("writer", [CommentReport(), SummaryReport()], ids=["comment", "summary"])
class TestMarkdown:
    def test_changes_are_a_table(self, writer: CommentReport | SummaryReport) -> None:
        text = text_of(writer, report_of(THRESHOLD, CASES))
        assert (
            f"{HEADING}| Change | Base | This run |\n| --- | --- | --- |\n"
            "| threshold of tone | 0\\.8 | 0\\.1 |\n| 2 eval cases: a, b |  | removed |\n"
        ) in text

    def test_several_configs_have_a_column(self, writer: CommentReport | SummaryReport) -> None:
        text = text_of(writer, report_of(THRESHOLD, replace(CASES, config="b.yaml")))
        assert "| Config | Change | Base | This run |\n" in text
        assert "| b.yaml | 2 eval cases: a, b |  | removed |\n" in text

    def test_remarks_follow_the_table(self, writer: CommentReport | SummaryReport) -> None:
        text = text_of(writer, report_of(THRESHOLD, decided_by_base=(CONFIG,), notes=("n",)))
        assert "0\\.1 |\n\n- evaluated by the policy of the base (8c1f, git): " in text
        assert "\n- n\n" in text

    def test_edits_are_not_called_looser(self, writer: CommentReport | SummaryReport) -> None:
        text = text_of(writer, report_of(EDIT))
        assert "### Policy was edited and may be looser than on the base branch\n" in text
        assert HEADING in text_of(writer, report_of(EDIT, THRESHOLD))

    def test_remarks_alone_have_another_title(self, writer: CommentReport | SummaryReport) -> None:
        text = text_of(writer, report_of(notes=("not compared",)))
        assert "### Policy of the base\n\n- not compared\n" in text

    def test_without_changes_there_is_no_section(
        self, writer: CommentReport | SummaryReport
    ) -> None:
        assert text_of(writer, report_of()) == text_of(writer, make_report([make_result()]))


def test_changes_are_lines_where_the_comment_has_little_room() -> None:
    results = [
        make_result("failed", 0.1, case=f"c{n}", evaluator=f"e{n}", reason=f"{n} " * 99)
        for n in range(9)
    ]
    results += [make_result("errored", case=f"d{n}", reason=f"exit code {n}") for n in range(9)]
    policy = PolicyComparison(base="b", loosened=(THRESHOLD, CASES))
    text = text_of(CommentReport(), replace(make_report(results), policy=policy))
    changes = "threshold of tone: 0.8 \N{RIGHTWARDS ARROW} 0.1; 2 eval cases removed: a, b"
    assert f"- **looser policy:** {changes}\n" in text
    assert HEADING not in text
    edited = replace(policy, loosened=(EDIT,) * 7)
    text = text_of(CommentReport(), replace(make_report(results), policy=edited))
    assert text.count("code of tone edited") == 7
    [more] = re.findall(r"\n<summary>(\d) more policy changes</summary>", text)
    shown, _, folded = text.partition("more policy changes</summary>")
    assert shown.count("code of tone edited") == 7 - int(more)
    assert folded.count("- **edited policy:**") == int(more)


def test_page_is_equal_without_changes() -> None:
    assert text_of(HtmlReport(), report_of()) == text_of(HtmlReport(), make_report([make_result()]))


class TestConsole:
    def test_each_change_is_a_line(self) -> None:
        assert (
            "\nWarning: the policy is looser than the base's (2 changes)\n"
            "  threshold of tone: 0.8 → 0.1\n  2 eval cases removed: a, b\n"
        ) in console(report_of(THRESHOLD, CASES))

    def test_edits_are_counted_apart(self) -> None:
        edited = "\nWarning: the policy was edited, and may be looser than the base's (1 edit)\n"
        assert edited in console(report_of(EDIT))
        both = "\nWarning: the policy is looser than the base's (1 change, 1 edit)\n"
        assert both in console(report_of(THRESHOLD, EDIT))

    def test_several_configs_are_named(self) -> None:
        text = console(report_of(THRESHOLD, replace(CASES, config="b.yaml")))
        assert "\n  b.yaml: 2 eval cases removed: a, b\n" in text


def test_results_are_read_as_written() -> None:
    report = report_of(
        THRESHOLD, CASES, decided_by_base=(CONFIG,), missing=("m",), unavailable="u", required=True
    )
    read = read_report(text_of(JsonReport(), report).encode(), file="results.json")
    assert read.policy == report.policy
