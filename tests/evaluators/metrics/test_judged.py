"""Prompts of judged metrics, and the scores of verdicts."""

from collections.abc import Mapping

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.metrics.judged import (
    JUDGED_METRICS,
    SENTENCE_LABELS,
    JudgedMetric,
    JudgedTurn,
    JudgedTurnScore,
    format_steps,
)
from agentci.evaluators.metrics.registry import JUDGED_METRIC_PURPOSES, METRICS, UNSUPPORTED_METRICS
from agentci.model.case import Rubric
from agentci.model.judges import (
    AggregateVerdict,
    ChecklistSchema,
    JudgePrompt,
    JudgeScore,
    ScoreValue,
    Verdict,
)
from agentci.model.trace import ToolCall, ToolResponse, Turn

TURN = Turn(
    id="t",
    user_text="Where is my parcel?",
    answer_parts=("It is in Lyon.", "Anything else?"),
    tool_calls=(ToolCall(name="track", args={"id": 7}), ToolCall(name="mail")),
    tool_responses=(
        ToolResponse(name="track", output={"at": "Lyon"}, call_index=0),
        ToolResponse(name="other", output="x", failed=True),
    ),
)
EXPECTED = Turn(id="g", user_text="Where is it?", answer_parts=("In Lyon",))
MATCH = JUDGED_METRICS["final_response_match_v2"]
QUALITY = JUDGED_METRICS["rubric_based_final_response_quality_v1"]
TOOL_USE = JUDGED_METRICS["rubric_based_tool_use_quality_v1"]
HALLUCINATIONS = JUDGED_METRICS["hallucinations_v1"]
RUBRICS = (Rubric(id="a", text="is polite"), Rubric(id="b", text="is short"))


def verdict(values: Mapping[str, ScoreValue], **reasons: str) -> AggregateVerdict:
    marks = {
        name: JudgeScore(value=value, reason=reasons.get(name, ""))
        for name, value in values.items()
    }
    single = Verdict(scores=marks, reason=reasons.get("overall", ""))
    return AggregateVerdict(values=values, verdicts=(single,))


def prompt_of(metric: JudgedMetric, judged_turn: JudgedTurn) -> JudgePrompt:
    prompt = metric.make_prompt(judged_turn)
    assert prompt is not None
    return prompt


def test_the_names_are_those_that_configs_know() -> None:
    assert list(JUDGED_METRIC_PURPOSES) == list(JUDGED_METRICS)
    assert not set(JUDGED_METRIC_PURPOSES) & {*METRICS, *UNSUPPORTED_METRICS}


def test_steps_are_calls_with_their_answers() -> None:
    assert format_steps(TURN) == (
        '{"steps": [{"step": 0, "tool": "track", "args": {"id": 7}, "result": {"at": "Lyon"},'
        ' "failed": false}, {"step": 1, "tool": "mail", "args": null},'
        ' {"tool": "other", "result": "x", "failed": true}]}'
    )
    assert format_steps(EXPECTED) == "No tools were used."


class TestFinalResponseMatch:
    def test_the_answers_stand_beside_each_other_under_the_golden_question(self) -> None:
        asked = prompt_of(MATCH, JudgedTurn(turn=TURN, expected=EXPECTED)).user
        assert "Where is it?" in asked
        assert "It is in Lyon.\nAnything else?" in asked
        assert "In Lyon" in asked
        assert "Where is my parcel?" not in asked

    def test_it_is_all_or_nothing(self) -> None:
        form = "is_the_agent_response_valid"
        judged_turn = JudgedTurn(turn=TURN, expected=EXPECTED)
        assert MATCH.grade(verdict({form: True}), judged_turn) == JudgedTurnScore(score=1.0)
        failed = MATCH.grade(verdict({form: False}, overall="wrong town"), judged_turn)
        assert failed == JudgedTurnScore(
            score=0.0, misses=("the answer does not match the expected answer: wrong town",)
        )


class TestRubrics:
    JUDGED = JudgedTurn(turn=TURN, rubrics=RUBRICS)

    def test_an_answer_is_judged_by_what_tools_said(self) -> None:
        asked = prompt_of(QUALITY, self.JUDGED)
        assert asked.schema == ChecklistSchema(names=("a", "b"))
        assert "- [a] is polite\n- [b] is short" in asked.system
        assert '"at": "Lyon"' in asked.user
        assert "It is in Lyon." in asked.user

    def test_the_use_of_tools_is_judged_without_the_answer(self) -> None:
        asked = prompt_of(TOOL_USE, self.JUDGED)
        assert '"at": "Lyon"' in asked.user
        assert "It is in Lyon." not in asked.user

    def test_each_rubric_counts(self) -> None:
        grade = QUALITY.grade(verdict({"a": True, "b": False}, b="long"), self.JUDGED)
        assert grade == JudgedTurnScore(score=0.5, weight=2, misses=("[b] is short: long",))

    def test_a_rubric_that_is_missed_without_a_word_is_told(self) -> None:
        grade = TOOL_USE.grade(verdict({"a": False, "b": True}), self.JUDGED)
        assert grade.misses == ("[a] is polite: not fulfilled",)

    def test_a_rubric_that_nobody_judged_is_an_error(self) -> None:
        with pytest.raises(
            EvaluatorError, match="the judge's response has no result for rubric `b`"
        ):
            TOOL_USE.grade(verdict({"a": True}), self.JUDGED)


class TestHallucinations:
    JUDGED = JudgedTurn(turn=TURN)

    def test_every_sentence_is_labelled(self) -> None:
        asked = prompt_of(HALLUCINATIONS, self.JUDGED)
        assert asked.schema == ChecklistSchema(
            names=("1", "2"), kind="label", labels=SENTENCE_LABELS
        )
        assert "[1] It is in Lyon.\n[2] Anything else?" in asked.user

    def test_what_is_supported_or_claims_nothing_is_right(self) -> None:
        grade = HALLUCINATIONS.grade(
            verdict({"1": "contradictory", "2": "not_applicable"}), self.JUDGED
        )
        assert grade == JudgedTurnScore(score=0.5, misses=("contradictory: It is in Lyon.",))

    def test_without_an_answer_nothing_is_asked(self) -> None:
        assert HALLUCINATIONS.make_prompt(JudgedTurn(turn=Turn(id="t", user_text="q"))) is None
