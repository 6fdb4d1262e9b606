"""Places, paths and warnings of runs as reports show them."""

from agentci.gate.decision import decide
from agentci.model.gate import CheckClasses, Gate, GatePolicy, GateThresholds
from agentci.model.result import BaselineCheck, Report
from agentci.model.values import COMMAND_LINE, Place, replace
from agentci.reports import groups_and_totals
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.job_summary import SummaryReport
from tests.helpers.reports import CONFIG, make_report, make_result, text_of
from tests.reports.html.pages import compared, data_of, make_change, make_trend


def test_file_place_keeps_line_and_column() -> None:
    place = Place(file="a.yaml", line=3, column=2)
    assert groups_and_totals.place_in_file(place) is place
    assert str(place) == "a.yaml:3:2"


def test_command_line_is_not_a_file() -> None:
    assert groups_and_totals.place_in_file(COMMAND_LINE) is None
    assert str(COMMAND_LINE) == groups_and_totals.format_path(COMMAND_LINE.file) == "command line"


def test_warnings_are_grouped_without_answers_that_ended_as_early_in_the_baseline() -> None:
    ended, guessed = "the model ended its answer early", "a span without a name"
    results = [
        make_result(case="a", warnings=[ended, guessed]),
        make_result(case="a", evaluator="tone", warnings=[ended, guessed]),
        make_result(case="b", warnings=[ended]),
    ]
    report = make_report(results)
    found = groups_and_totals.group_warnings(report)
    names = {text: [case.id for case in cases] for text, cases in found.items()}
    assert names == {ended: ["a", "b"], guessed: ["a"]}
    before = BaselineCheck(status="passed", score=1.0, early_ends=(ended,))
    report = replace(report, baseline={results[2].id: before})
    found = groups_and_totals.group_warnings(report)
    names = {text: [case.id for case in cases] for text, cases in found.items()}
    assert names == {ended: ["a"], guessed: ["a"]}


class TestPopulations:
    """Every number of checks names the checks that it counts, or those of all parts add up."""

    @staticmethod
    def _report() -> Report:
        """Required checks, advisory ones, and an evaluator with a threshold of its own."""
        results = [
            *(make_result("passed", 1.0, case=case) for case in "abc"),
            make_result("failed", 0.1, case="d"),
            make_result("skipped", case="e"),
            make_result("passed", 1.0, case="a", evaluator="tone"),
            make_result("failed", 0.2, case="b", evaluator="tone"),
            make_result("passed", 1.0, case="a", evaluator="style", required=False),
            *(
                make_result("failed", 0.5, case=case, evaluator="style", required=False)
                for case in "bc"
            ),
        ]
        own = {"tone": GateThresholds(min_pass_rate=0.9)}
        policy = GatePolicy(overall=GateThresholds(), evaluators=own)
        gate = Gate(config=CONFIG, policy=policy, evaluators=("response_quality", "tone", "style"))
        decision = decide([(policy, results)], problems=(), complete=True, fail_on="failed")
        trends = [
            make_trend(newly_failing=(make_change("d", 1.0, 0.1, "failed"),)),
            make_trend(
                evaluator="style",
                required=False,
                newly_failing=(make_change("b", 1.0, 0.5, "failed"),),
            ),
        ]
        before = {each.id: BaselineCheck(status="passed", score=1.0) for each in results}
        report = replace(make_report(results), gates=(gate,), decision=decision, baseline=before)
        return compared(report, *trends, classes=CheckClasses(compared=9, not_evaluated=1))

    COUNTS = (
        "7 required checks: 4 passed, 2 failed, 1 skipped; mean score 0.72; "
        "3 advisory checks: 1 passed, 2 failed; mean score 0.67"
    )

    def test_text(self) -> None:
        report = self._report()
        comment = text_of(CommentReport(), report)
        summary, terminal = (
            text_of(SummaryReport(), report),
            render_console(report, quiet=False, verbose=False, colour=False),
        )
        title = "2 cases newly failing, 2 of 6 evaluated required checks failed"
        overall = "overall pass rate 75%, required 100%: 1 of 4 evaluated checks failed"
        for text in (comment, summary, terminal):
            assert f"Quality gate failed: {title}\n" in text
            assert f"{overall} (of evaluators without their own min_pass_rate)" in text
            assert "tone: 1 of 2 checks failed (pass rate 50%, required 90%)" in text
            assert "0.7; min_pass_rate 0.9" in text
            assert "required and advisory checks of both runs: " in text
        assert "The title counts required checks only." in comment
        assert self.COUNTS in summary
        assert self.COUNTS in terminal

    def test_page(self) -> None:
        verdict = data_of(self._report())["verdict"]
        assert verdict["counts"] == self.COUNTS
        # The tile is of all required checks, and no threshold is.
        assert verdict["required"] is None
