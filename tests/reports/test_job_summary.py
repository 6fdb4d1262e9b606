"""The job summary of a workflow run."""

import re

import pytest

from agentci.gate.comparison import compare_runs
from agentci.model.gate import Comparison, GateThresholds
from agentci.model.requests import Judgement
from agentci.model.result import BaselineCheck, Report, Status
from agentci.model.values import COMMAND_LINE, Problem, replace
from agentci.reports import job_summary
from agentci.reports.job_summary import MAX_BYTES, MAX_CASES, SummaryReport
from agentci.reports.workflow_commands import SUMMARY_BYTES
from tests.conftest import Golden
from tests.helpers.reports import make_report, make_result, mixed_report, shard_report, text_of

STATUSES: list[Status] = ["passed", "failed", "failed", "errored", "skipped"]
PASSED = make_report([make_result("passed", 0.9), make_result("passed", evaluator="tone")])


def _render(report: Report) -> str:
    return text_of(SummaryReport(), report)


def test_summary_matches_snapshot(golden: Golden) -> None:
    golden("summary.md", _render(mixed_report()))


def test_tables_have_a_ruler_for_every_column() -> None:
    """GitHub shows a table as text otherwise."""
    same = compare_runs(PASSED.results, PASSED.results, (), baseline="base")
    lines = _render(replace(PASSED, comparison=same)).splitlines()
    rulers = [index for index, line in enumerate(lines) if line.startswith("| ---")]
    assert len(rulers) == 2
    for index in rulers:
        header, ruler, row = lines[index - 1 : index + 2]
        assert header.count("|") == ruler.count("|") == row.count("|")


def test_comparison_shows_change_and_classes_as_words() -> None:
    before, after = (
        [
            make_result("passed", score, case=f"case {n}", evaluator="tone")
            if score
            else make_result("skipped", case=f"case {n}", evaluator="tone")
            for n, score in enumerate(scores)
        ]
        for scores in ((*[0.9] * 6, None, None), (0.8, 0.8, *[0.9] * 4, None, 0.9))
    )
    before, after = (
        [replace(each, id=f"{n:016x}") for n, each in enumerate(results)]
        for results in (before, after)
    )
    compared = compare_runs(before, after, (), baseline="base")
    text = _render(replace(make_report(after), comparison=compared))
    [row] = [line for line in text.splitlines() if line.startswith("| `tone` | 6 |")]
    assert "| 0.87 (\u22120.03) |" in row.replace("\\", "")
    assert "6 compared, 1 evaluated only now, 1 evaluated in neither run" in text


def test_failed_check_without_judgement_shows_only_places() -> None:
    block = job_summary.render_failed_check(replace(make_result("failed"), judgement=None))
    assert "Trace" in block
    assert "- " not in block


def test_cached_checks_are_counted_and_marked() -> None:
    text = _render(make_report([make_result("failed", 0.25, cached=True)]))
    assert "; mean score 0.25; 1 cached\n" in text
    assert "score 0.25, threshold 0.7 (cached)" in text


def test_summary_of_passed_gate_matches_snapshot(golden: Golden) -> None:
    golden("summary-passed.md", _render(PASSED))


@pytest.mark.parametrize(
    ("report", "line"),
    [
        pytest.param(PASSED, "## ✅ Quality gate passed: 2 checks passed", id="passed"),
        pytest.param(
            make_report([make_result("failed")]),
            "## ❌ Quality gate failed: 1 of 1 check failed (pass rate 0%, required 100%)",
            id="failed",
        ),
        pytest.param(
            make_report([make_result("errored", evaluator="tone")]),
            "## 💥 Quality gate failed: 1 check errored (tone)",
            id="errored",
        ),
        pytest.param(
            make_report([], problems=[Problem(message="no config")]),
            "## ❌ Invalid input",
            id="invalid",
        ),
        pytest.param(
            make_report(
                [make_result("failed"), make_result("passed")],
                thresholds=GateThresholds(min_pass_rate=0.5),
            ),
            "## ✅ Quality gate passed: 1 of 2 checks passed",
            id="passed despite a failure",
        ),
    ],
)
def test_heading_states_verdict_and_main_reason(report: Report, line: str) -> None:
    assert _render(report).splitlines()[0] == line


def test_shard_verdict_names_its_shard() -> None:
    text = _render(shard_report([make_result("passed"), make_result("skipped")]))
    assert text.startswith("## \u2705 Shard 2 of 3 passed: 1 check passed\n")
    assert "results of shard 2 of 3 only" in text
    text = _render(shard_report([make_result("errored")]))
    assert text.startswith("## \U0001f4a5 Quality gate failed in shard 2 of 3: 1 check errored")


def test_table_names_configs_if_several() -> None:
    results = [make_result("passed", config=config) for config in ("a.yaml", "b.yaml")]
    lines = _render(make_report(results)).splitlines()
    assert "| Config | Evaluator | Passed |" in lines[4]
    assert lines[6].startswith("| `a.yaml` | ✅ `response_quality` | 1 of 1 |")


@pytest.mark.parametrize(
    ("status", "required", "icon"),
    [("skipped", True, "\N{CROSS MARK}"), ("errored", True, "⚠️"), ("failed", False, "⚠️")],
)
def test_evaluator_status_has_icon(status: Status, required: bool, icon: str) -> None:
    result = make_result(status, evaluator="tone", required=required)
    assert f"| {icon} `tone`" in _render(make_report([result]))


@pytest.mark.parametrize(
    ("status", "thresholds"),
    [("errored", GateThresholds(on_error="warn")), ("failed", GateThresholds(min_pass_rate=0.5))],
)
def test_tolerated_failure_of_passed_gate_is_warning(
    status: Status, thresholds: GateThresholds
) -> None:
    results = [make_result(status, evaluator="tone"), make_result("passed", evaluator="other")]
    text = _render(make_report(results, thresholds=thresholds))
    assert "| ⚠️ `tone`" in text
    assert "❌" not in text


def test_errors_and_skips_name_configs_if_several() -> None:
    statuses: tuple[Status, ...] = ("errored", "skipped")
    results = [make_result(each, config=c) for c in ("a.yaml", "b.yaml") for each in statuses]
    text = _render(make_report(results))
    for config in ("a.yaml", "b.yaml"):
        assert f"\n`response_quality` (`{config}`): 1 case: `books_a_flight`\n" in text
        assert f"\n- `response_quality` (`{config}`): no reason given (1 " in text


def test_long_error_keeps_its_beginning_and_end() -> None:
    reason = "exit code 1: Traceback:\n" + "  File\n" * 5_000 + "KeyError: 'x'"
    text = _render(make_report([make_result("errored", reason=reason)]))
    assert "```\nexit code 1: Traceback:\n" in text
    assert "\nKeyError: 'x'\n```\n" in text
    assert len(text) < 6_000


def test_low_scoring_turns_are_shown_without_other_findings() -> None:
    result = make_result("failed", 0.5)
    judgement = Judgement(score=0.5, passed=False, turn_scores=(1.0, 0.0))
    block = job_summary.render_failed_check(replace(result, judgement=judgement))
    assert '\n- turn 2: score 0; question "Book it"; no answer\n' in block


def test_command_line_is_not_shown_as_file() -> None:
    results = [make_result("failed", 0.1, place=COMMAND_LINE, config=COMMAND_LINE.file)]
    results += [make_result("passed", 1.0)]
    problem = Problem(message="is odd", place=COMMAND_LINE, severity="note")
    text = _render(make_report(results, problems=[problem]))
    assert "config `command line`\n" in text
    assert "| `command line` | ❌ `response_quality` |" in text
    assert "- **note** `command line` is odd\n" in text


def test_worst_required_checks_come_first() -> None:
    results = [
        *(make_result("failed", n / 10, case=f"c{n}", evaluator=f"e{n}") for n in (3, 1, 2, 4)),
        make_result("failed", 0.0, case="advisory", required=False),
    ]
    text = _render(make_report(results))
    found = re.findall(r"\n\*\*`(\w+)`\*\*", text)
    assert found == ["c1", "c2", "c3", "c4", "advisory"]


def test_mean_scores_say_which_checks_count_as_0() -> None:
    """Not removed ones, which are left out of them."""
    before = [replace(make_result("passed", 1.0), id=f"{n:016x}") for n in range(3)]
    after = [*before[:2], replace(before[2], status="skipped", judgement=None, reason="none")]
    compared = compare_runs(before, after, (), baseline="base")
    remark = (
        "\n- in the tested mean scores, skipped checks that passed in the baseline count as 0\n"
    )
    assert remark in _render(replace(make_report(after), comparison=compared))
    for kept in (before, before[:2]):
        same = compare_runs(before, kept, (), baseline="base")
        assert "count as 0" not in _render(replace(make_report(kept), comparison=same))


def test_outcome_in_a_table_is_that_of_the_mean_scores_beside_it() -> None:
    """Of checks that both runs have, although a skipped one counts in what is tested."""
    scores = [0.8] * 11, [0.82] * 10
    before, after = (
        [replace(make_result("passed", s, case=f"c{n}"), id=f"{n:016x}") for n, s in enumerate(own)]
        for own in scores
    )
    after.append(replace(before[10], status="skipped", judgement=None, reason="none"))
    compared = compare_runs(before, after, (), baseline="base")
    [evaluator] = compared.evaluators
    assert (evaluator.after or 0) < (evaluator.before or 0)
    evaluator = replace(evaluator, outcome="pass", no_longer_evaluated=())
    compared = replace(compared, evaluators=(evaluator,))
    text = _render(replace(make_report(after), comparison=compared))
    assert "0\\.8 | 0\\.82 (+0.02) | improved |" in text


def test_evaluator_with_removed_cases_is_compared_over_the_common_ones() -> None:
    before = [replace(make_result("passed", 1.0, case=f"c{n}"), id=f"{n:016x}") for n in range(12)]
    kept = before[:10]
    compared = compare_runs(before, kept, (), baseline="base")
    text = _render(replace(make_report(kept), comparison=compared))
    means = "mean score 1 \N{RIGHTWARDS ARROW} 1 (10 cases), but 2 checks that passed were removed"
    assert f"response_quality has no drop in common cases: {means}" in text
    assert "10 compared, 2 only in the baseline" in text
    assert "not comparable" not in text


def test_removed_checks_that_passed_are_counted_apart() -> None:
    passed = [make_result("passed", 1.0, case=f"c{n}") for n in range(10)]
    others = [make_result("skipped", case="skipped"), make_result("failed", 0.1, case="failed")]
    before = [replace(each, id=f"{n:016x}") for n, each in enumerate([*passed, *others])]
    kept = before[:8]
    compared = compare_runs(before, kept, (), baseline="base")
    text = _render(replace(make_report(kept), comparison=compared))
    count = "4 only in the baseline, of which 2 count as no longer evaluated"
    assert f"checks of both runs: 8 compared, {count}\n" in text


def test_evaluator_that_evaluates_nothing_is_in_the_chart_without_a_detectable_drop() -> None:
    before = [
        replace(make_result("passed", 1.0, case=f"c{n}", evaluator=name), id=f"{name}{n}")
        for name in ("kept", "lost", "gone")
        for n in range(12)
    ]
    after = [
        replace(each, status="skipped", judgement=None, reason="none")
        if each.evaluator.name == "lost"
        else each
        for each in before
        if each.evaluator.name != "gone"
    ]
    compared = compare_runs(before, after, (), baseline="base")
    text = _render(replace(make_report(after), comparison=compared))
    assert 'x-axis ["kept", "lost (skipped)", "gone (removed)"]' in text
    assert "\nbar [1, 0, 0]\nline [1, 1, 1]\n" in text
    assert re.search(r"with 80% probability: 0\.\d+ \(kept\)\n", text)
    # A smaller drop than those that two decimals show is not 0.
    small = tuple(replace(each, detectable_drop=0.004) for each in compared.evaluators)
    text = _render(replace(make_report(after), comparison=replace(compared, evaluators=small)))
    assert "with 80% probability: 0.004 (kept)\n" in text
    assert "`lost` | none evaluated: 12 skipped |  | skipped | score" in text


def test_failures_are_shown_once_and_new_ones_come_first() -> None:
    results = [
        make_result("failed", 0.1, case="known", evaluator="tone", misses=["a miss"]),
        make_result("failed", 0.3, case="new", misses=["another miss"]),
    ]
    before = {results[0].id: BaselineCheck(status="failed", score=0.1)}
    report = replace(make_report(results), baseline=before, comparison=Comparison(baseline="b"))
    text = _render(report)
    assert text.index("**`new`**") < text.index("Still failing") < text.index("**`known`**")
    assert [text.count(f"**`{case}`**") for case in ("known", "new")] == [1, 1]
    assert text.count("<summary><code>") == 2


def test_oversized_check_is_shortened() -> None:
    calls = [{"name": "|" * 300, "args": None}] * 40
    turn = {"invocation_id": "t", "expected": calls, "actual": [], "matched": False}
    result = make_result("failed", details={"comparisons": [turn] * 5})
    block = job_summary.render_failed_check(result)
    assert "Too long to show here" in block
    assert len(block.encode()) <= job_summary.MAX_CHECK_BYTES


def test_calls_and_misses_above_limit_are_counted() -> None:
    calls = [{"name": "a", "args": None}] * 50
    turn = {"invocation_id": "t", "expected": calls, "actual": [], "matched": False}
    misses = [f"miss {number}" for number in range(30)]
    result = make_result("failed", details={"comparisons": [turn]}, misses=misses)
    block = job_summary.render_failed_check(result)
    assert "| 10 more |  |  |" in block
    assert "- … and 10 more" in block


class TestLargeReport:
    REPORT = make_report(
        [
            make_result(
                status,
                0.1 if status == "failed" else None,
                case=f"case {number}",
                evaluator=f"evaluator {number % 300}",
                reason=f"reason {number}" if status in {"errored", "skipped"} else None,
                misses=["a miss " + "<|>" * 60] * 30,
                reasoning="```\n" * 2_000,
                warnings=[f"warning {number}"],
            )
            if status != "errored"
            else make_result("errored", case=f"case {number}", reason=f"<b>{number}" * 1_000)
            for number, status in enumerate(STATUSES * 400)
        ],
        problems=[Problem(message=f"problem {number}") for number in range(500)],
    )

    def test_large_summary_fits_github_limit(self) -> None:
        text = _render(self.REPORT)
        assert len(text.encode()) <= MAX_BYTES < SUMMARY_BYTES

    def test_hidden_entries_are_counted(self) -> None:
        text = _render(self.REPORT)
        last = text.splitlines()[-1]
        assert last.startswith("_Not shown: ")
        shown = text.count("<summary><code>")
        assert 0 < shown <= MAX_CASES
        assert "failure causes" in last
        assert "400 problems" in last
        assert last.endswith("See `results.json` for the full list._")

    def test_cut_summary_has_only_complete_blocks(self) -> None:
        text = text_of(SummaryReport(max_bytes=60_000), self.REPORT)
        assert len(text.encode()) <= 60_000
        assert text.count("<details") == text.count("</details>") > 0
        assert _find_unclosed_fence(text) is None


def _find_unclosed_fence(text: str) -> str | None:
    """The code fence that is not closed at the end of ``text``."""
    fence = None
    for line in text.splitlines():
        if fence is None and line.startswith("```"):
            fence = line
        elif line == fence:
            fence = None
    return fence
