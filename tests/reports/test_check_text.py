"""One check in words."""

from typing import Any

import pytest

from agentci.model.judgement import Judgement
from agentci.model.result import CheckResult, Status
from agentci.model.trace import Turn
from agentci.model.values import replace
from agentci.reports.case_summary import MAX_EXCERPT_CHARACTERS, excerpt_turn
from agentci.reports.check_text import (
    MAX_TURNS,
    format_headline,
    format_outcome,
    list_findings,
    split_lines,
)
from tests.helpers.reports import make_result

TURNS = (
    Turn(id="t1", user_text="Hello", answer_parts=("Hi, ", "there")),
    Turn(id="t2", user_text="Book\nit", answer_parts=("Done.",)),
    Turn(id="t3", user_text=""),
)
CALLS = {"expected": [{"name": "a"}], "actual": [], "matched": False}


def _with_turns(
    scores: tuple[float | None, ...],
    *,
    score: float | None = 0.5,
    turns: tuple[Turn, ...] = TURNS,
    threshold: float | None = 0.7,
    **judged: Any,
) -> CheckResult:
    """A failed check of some turns."""
    result = make_result("failed", threshold=threshold)
    dialogue = tuple(excerpt_turn(turn.user_text, turn.final_text) for turn in turns)
    return replace(
        result,
        case=replace(result.case, dialogue=dialogue),
        judgement=Judgement(score=score, passed=False, turn_scores=scores, **judged),
    )


@pytest.mark.parametrize(
    ("status", "score", "reason", "expected"),
    [
        pytest.param("passed", 0.9, None, "score 0.9", id="passed"),
        pytest.param("passed", None, None, "no score", id="passed without a score"),
        pytest.param(
            "passed",
            0.69999,
            "the evaluator returned status PASSED",
            "the evaluator returned status PASSED (score 0.69999)",
            id="passed in spite of its score",
        ),
        pytest.param("failed", 0.5, None, "score 0.5, threshold 0.7", id="failed"),
        pytest.param("failed", 0.69999, None, "score 0.69999, threshold 0.7", id="barely"),
        pytest.param("failed", None, None, "no score, threshold 0.7", id="no score"),
        pytest.param(
            "failed", 1.0, "1 turn missing", "1 turn missing (score 1)", id="in spite of its score"
        ),
        pytest.param(
            "failed", 0.7, "1 turn missing", "1 turn missing (score 0.7)", id="just good enough"
        ),
        pytest.param(
            "failed",
            0.5,
            "1 turn missing",
            "1 turn missing; score 0.5, threshold 0.7",
            id="for a reason and its score",
        ),
        pytest.param("errored", None, "exit code 1", "exit code 1", id="errored"),
        pytest.param("errored", None, None, "no reason given", id="errored for no reason"),
        pytest.param("skipped", None, "no case", "no case", id="skipped"),
        pytest.param("skipped", None, None, "no reason given", id="skipped, no reason"),
    ],
)
def test_the_headline_says_what_came_of_it(
    status: Status, score: float | None, reason: str | None, expected: str
) -> None:
    assert format_headline(make_result(status, score, reason=reason)) == expected


def test_a_score_that_no_bar_is_set_for_is_told_beside_what_was_wanted() -> None:
    result = make_result("failed", 0.9, reason="no", threshold=None, criterion="label in good")
    assert format_headline(result) == "no; score 0.9, required: label in good"


def test_an_outcome_says_whether_it_is_that_of_an_earlier_run() -> None:
    assert format_outcome(make_result("failed", 0.25)) == "score 0.25, threshold 0.7"
    assert format_outcome(make_result("passed", 0.9, cached=True)) == "score 0.9 (cached)"


def test_what_cannot_be_seen_of_a_programs_words_is_left_out() -> None:
    assert split_lines("a \r\n\n  b\n\x1b[0m\n \t\n") == ("a", "  b")


class TestTurnsOfLowScores:
    def test_are_told_with_what_was_asked_and_answered(self) -> None:
        assert list_findings(_with_turns((0.0, 1.0, 0.69999))) == (
            '- turn 1: score 0; question "Hello"; answer "Hi, there"',
            "- turn 3: score 0.69999; no answer",
        )

    def test_are_told_before_the_reasoning(self) -> None:
        assert list_findings(_with_turns((1.0, 0.5), reasoning="Too short.")) == (
            '- turn 2: score 0.5; question "Book it"; answer "Done."',
            "Too short.",
        )

    @pytest.mark.parametrize(
        ("scores", "threshold", "told"),
        [
            pytest.param(
                (0.5, 0.9, 0.5), None, ["turn 1: score 0.5", "turn 3: score 0.5"], id="no threshold"
            ),
            pytest.param((0.9, 0.8), 0.7, ["turn 2: score 0.8"], id="none is below"),
            pytest.param((None, 0.9), 0.7, ["turn 2: score 0.9"], id="turns without a score"),
            pytest.param((None,), 0.7, [], id="no scores"),
            pytest.param((1.0, 1.0, 1.0, 0.0), 0.7, ["turn 4: score 0"], id="not in the recording"),
        ],
    )
    def test_are_those_below_the_threshold_else_the_lowest(
        self, scores: tuple[float | None, ...], threshold: float | None, told: list[str]
    ) -> None:
        found = list_findings(_with_turns(scores, threshold=threshold))
        assert [line.split(";")[0].removeprefix("- ") for line in found] == told

    @pytest.mark.parametrize(
        ("others", "told"),
        [
            pytest.param({"score": 0.7}, [], id="the score is not to blame"),
            pytest.param({"misses": ("no price",)}, ["- no price"], id="misses say more"),
            pytest.param(
                {"details": {"comparisons": [CALLS]}},
                ["tool calls of turn 1 (- expected, + actual, = both):", "- a"],
                id="tool calls say more",
            ),
        ],
    )
    def test_are_not_told_where(self, others: dict[str, Any], told: list[str]) -> None:
        assert list(list_findings(_with_turns((0.5,), **others))) == told

    def test_are_cut_and_counted(self) -> None:
        long = Turn(id="t", user_text="x" * 1_000, answer_parts=("y" * 1_000,))
        found = list_findings(_with_turns((0.1,) * 12, turns=(long,) * 12))
        assert len(found) == MAX_TURNS + 1
        assert found[-1] == "- … and 7 more"
        asked = "x" * (MAX_EXCERPT_CHARACTERS - 1)
        answered = "y" * (MAX_EXCERPT_CHARACTERS - 1)
        assert found[0] == f'- turn 1: score 0.1; question "{asked}…"; answer "{answered}…"'


def test_a_check_without_a_judgement_has_no_findings() -> None:
    assert list_findings(make_result("errored")) == ()
