"""Text of one check: headline, outcome and findings."""

from typing import Any

import pytest

from agentci.model.requests import Judgement
from agentci.model.result import CheckResult, Status
from agentci.model.trace import Turn
from agentci.model.values import replace
from agentci.reports.check_text import (
    MAX_TURNS,
    format_headline,
    format_outcome,
    format_reason,
    hide_case_values,
    list_findings,
    split_lines,
)
from agentci.reports.run_content import MAX_EXCERPT_CHARACTERS, excerpt_turn
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
    **others: Any,
) -> CheckResult:
    """A failed check with scores per turn."""
    result = make_result("failed", threshold=threshold)
    dialogue = tuple(excerpt_turn(turn.user_text, turn.final_text) for turn in turns)
    return replace(
        result,
        case=replace(result.case, dialogue=dialogue),
        judgement=Judgement(score=score, passed=False, turn_scores=scores, **others),
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
            id="passed despite its score",
        ),
        pytest.param("failed", 0.5, None, "score 0.5, threshold 0.7", id="failed"),
        pytest.param(
            "failed", 0.69999, None, "score 0.69999, threshold 0.7", id="just below the threshold"
        ),
        pytest.param("failed", None, None, "no score, threshold 0.7", id="no score"),
        pytest.param(
            "failed",
            1.0,
            "1 turn missing",
            "1 turn missing; score 1 alone would pass",
            id="failed despite its score",
        ),
        pytest.param(
            "failed",
            0.7,
            "1 turn missing",
            "1 turn missing; score 0.7 alone would pass",
            id="failed at the threshold",
        ),
        pytest.param(
            "failed",
            0.5,
            "1 turn missing",
            "1 turn missing; score 0.5, threshold 0.7",
            id="reason and low score",
        ),
        pytest.param("errored", None, "exit code 1", "exit code 1", id="errored"),
        pytest.param("errored", None, None, "no reason given", id="errored without a reason"),
        pytest.param("skipped", None, "no case", "no case", id="skipped"),
        pytest.param("skipped", None, None, "no reason given", id="skipped without a reason"),
    ],
)
def test_headline_describes_outcome(
    status: Status, score: float | None, reason: str | None, expected: str
) -> None:
    assert format_headline(make_result(status, score, reason=reason)) == expected


def test_first_miss_is_the_reason_of_a_check_that_failed_despite_its_score() -> None:
    result = _with_turns((1.0,), score=1.0, misses=("turn 1: no price", "turn 2: no price"))
    assert format_headline(result) == "turn 1: no price; score 1 alone would pass"


def test_score_without_threshold_shows_criterion() -> None:
    result = make_result("failed", 0.9, reason="no", threshold=None, criterion="label in good")
    assert format_headline(result) == "no; score 0.9, required: label in good"


def test_outcome_marks_cached_result() -> None:
    assert format_outcome(make_result("failed", 0.25)) == "score 0.25, threshold 0.7"
    assert format_outcome(make_result("passed", 0.9, cached=True)) == "score 0.9 (cached)"


def test_invisible_lines_are_dropped() -> None:
    assert split_lines("a \r\n\n  b\n\x1b[0m\n \t\n") == ("a", "  b")


class TestLowScoringTurns:
    def test_low_scoring_turns_show_question_and_answer(self) -> None:
        assert list_findings(_with_turns((0.0, 1.0, 0.69999))) == (
            '- turn 1: score 0; question "Hello"; answer "Hi, there"',
            "- turn 3: score 0.69999; no answer",
        )

    def test_low_scoring_turns_come_before_reasoning(self) -> None:
        assert list_findings(_with_turns((1.0, 0.5), reasoning="Too short.")) == (
            '- turn 2: score 0.5; question "Book it"; answer "Done."',
            "Too short.",
        )

    @pytest.mark.parametrize(
        ("scores", "threshold", "expected"),
        [
            pytest.param(
                (0.5, 0.9, 0.5), None, ["turn 1: score 0.5", "turn 3: score 0.5"], id="no threshold"
            ),
            pytest.param((0.9, 0.8), 0.7, ["turn 2: score 0.8"], id="none below the threshold"),
            pytest.param((None, 0.9), 0.7, ["turn 2: score 0.9"], id="turns without a score"),
            pytest.param((None,), 0.7, [], id="no scores"),
            pytest.param(
                (1.0, 1.0, 1.0, 0.0), 0.7, ["turn 4: score 0"], id="turn missing from the trace"
            ),
        ],
    )
    def test_turns_below_threshold_or_lowest_are_shown(
        self, scores: tuple[float | None, ...], threshold: float | None, expected: list[str]
    ) -> None:
        found = list_findings(_with_turns(scores, threshold=threshold))
        assert [line.split(";")[0].removeprefix("- ") for line in found] == expected

    @pytest.mark.parametrize(
        ("others", "expected"),
        [
            pytest.param({"score": 0.7}, [], id="score reaches the threshold"),
            pytest.param({"misses": ("no price",)}, ["- no price"], id="misses explain it"),
            pytest.param(
                {"details": {"comparisons": [CALLS]}},
                ["tool calls of turn 1 (- expected, + actual, = both):", "- a"],
                id="tool calls explain it",
            ),
        ],
    )
    def test_turns_are_hidden_if_other_findings_explain_failure(
        self, others: dict[str, Any], expected: list[str]
    ) -> None:
        assert list(list_findings(_with_turns((0.5,), **others))) == expected

    def test_long_turns_are_cut_and_counted(self) -> None:
        long = Turn(id="t", user_text="x" * 1_000, answer_parts=("y" * 1_000,))
        found = list_findings(_with_turns((0.1,) * 12, turns=(long,) * 12))
        assert len(found) == MAX_TURNS + 1
        assert found[-1] == "- … and 7 more"
        asked = "x" * (MAX_EXCERPT_CHARACTERS - 1)
        answered = "y" * (MAX_EXCERPT_CHARACTERS - 1)
        assert found[0] == f'- turn 1: score 0.1; question "{asked}…"; answer "{answered}…"'


def test_check_without_judgement_has_no_findings() -> None:
    assert list_findings(make_result("errored")) == ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"reason": "a turn\nis missing", "misses": ["m"]}, "a turn is missing"),
        ({"misses": ["first", "second"], "reasoning": "r"}, "first"),
        (
            {
                "details": {
                    "comparisons": [
                        {"matched": True, "expected": [], "actual": []},
                        {
                            "matched": False,
                            "expected": [{"name": "f"}, {"name": "g"}],
                            "actual": [{"name": "f"}],
                        },
                    ]
                }
            },
            "turn 2: missing `g`",
        ),
        (
            {
                "details": {"comparisons": [{"matched": False, "expected": [], "actual": []}]},
                "reasoning": "r",
            },
            "r",
        ),
        ({"reasoning": "too long " * 100}, "too long too long"),
        ({}, ""),
    ],
    ids=["reason", "miss", "tool call", "no difference", "reasoning", "nothing"],
)
def test_reason_is_the_first_that_says_why(fields: dict[str, Any], reason: str) -> None:
    assert format_reason(make_result("failed", 0.1, **fields)).startswith(reason)


def test_reason_names_the_first_low_turn_without_its_texts() -> None:
    result = make_result("failed", 0.1)
    assert result.judgement is not None
    low = replace(result, judgement=replace(result.judgement, turn_scores=(0.9, 0.1)))
    assert format_reason(low) == "turn 2: score 0.1"


def test_values_of_a_case_are_hidden_where_they_are_whole_words() -> None:
    case = replace(make_result(case="r-1").case, eval_case_id="r-1.1", trace_id="t")
    text = "r-1, r-1.1 and xr-1 or r-12: r-1-r-1"
    assert hide_case_values(text, case) == "\u2026, \u2026 and xr-1 or r-12: \u2026-\u2026"
