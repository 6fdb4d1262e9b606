"""Prompts of metrics with a judge model, and the scores of its verdicts."""

from collections.abc import Mapping

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.judged_metrics import (
    JUDGED_METRICS,
    SENTENCE_LABELS,
    JudgedMetric,
    JudgedTurn,
    JudgedTurnScore,
    format_steps,
)
from agentci.evaluators.metrics import JUDGED_METRIC_PURPOSES, METRICS, UNSUPPORTED_METRICS
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


def test_every_judged_metric_is_registered() -> None:
    assert list(JUDGED_METRIC_PURPOSES) == list(JUDGED_METRICS)
    assert not set(JUDGED_METRIC_PURPOSES) & {*METRICS, *UNSUPPORTED_METRICS}


def test_steps_pair_tool_calls_with_responses() -> None:
    assert format_steps(TURN) == (
        '{"steps": [{"step": 0, "tool": "track", "args": {"id": 7}, "result": {"at": "Lyon"},'
        ' "failed": false}, {"step": 1, "tool": "mail", "args_recorded": false},'
        ' {"tool": "other", "result": "x", "failed": true}]}'
    )
    assert format_steps(EXPECTED) == "No tools were used."


class TestFinalResponseMatch:
    def test_prompt_has_both_answers_and_expected_question(self) -> None:
        asked = prompt_of(MATCH, JudgedTurn(turn=TURN, expected=EXPECTED)).user
        assert "Where is it?" in asked
        assert "It is in Lyon.\nAnything else?" in asked
        assert "In Lyon" in asked
        assert "Where is my parcel?" not in asked

    def test_score_is_one_or_zero(self) -> None:
        form = "is_the_agent_response_valid"
        judged_turn = JudgedTurn(turn=TURN, expected=EXPECTED)
        assert MATCH.grade(verdict({form: True}), judged_turn) == JudgedTurnScore(score=1.0)
        failed = MATCH.grade(verdict({form: False}, overall="wrong town"), judged_turn)
        assert failed == JudgedTurnScore(
            score=0.0, misses=("the answer does not match the expected answer: wrong town",)
        )


class TestRubrics:
    JUDGED = JudgedTurn(turn=TURN, rubrics=RUBRICS)

    def test_quality_prompt_includes_tool_results(self) -> None:
        asked = prompt_of(QUALITY, self.JUDGED)
        assert asked.schema == ChecklistSchema(names=("a", "b"))
        assert "- [a] is polite\n- [b] is short" in asked.system
        assert '"at": "Lyon"' in asked.user
        assert "It is in Lyon." in asked.user

    def test_tool_use_prompt_omits_answer(self) -> None:
        asked = prompt_of(TOOL_USE, self.JUDGED)
        assert '"at": "Lyon"' in asked.user
        assert "It is in Lyon." not in asked.user

    def test_score_is_share_of_fulfilled_rubrics(self) -> None:
        grade = QUALITY.grade(verdict({"a": True, "b": False}, b="long"), self.JUDGED)
        assert grade == JudgedTurnScore(score=0.5, weight=2, misses=("[b] is short: long",))

    def test_failed_rubric_without_reason_is_reported(self) -> None:
        grade = TOOL_USE.grade(verdict({"a": False, "b": True}), self.JUDGED)
        assert grade.misses == ("[a] is polite: not fulfilled",)

    def test_rubric_missing_from_verdict_is_an_error(self) -> None:
        with pytest.raises(
            EvaluatorError, match="the judge's response has no result for rubric `b`"
        ):
            TOOL_USE.grade(verdict({"a": True}), self.JUDGED)


class TestHallucinations:
    JUDGED = JudgedTurn(turn=TURN)

    def test_prompt_requests_label_for_each_sentence(self) -> None:
        asked = prompt_of(HALLUCINATIONS, self.JUDGED)
        assert asked.schema == ChecklistSchema(
            names=("1", "2"), kind="label", labels=SENTENCE_LABELS
        )
        assert "[1] It is in Lyon.\n[2] Anything else?" in asked.user

    def test_score_is_share_of_supported_sentences(self) -> None:
        grade = HALLUCINATIONS.grade(
            verdict({"1": "contradictory", "2": "not_applicable"}), self.JUDGED
        )
        assert grade == JudgedTurnScore(score=0.5, misses=("contradictory: It is in Lyon.",))

    def test_missing_answer_makes_no_prompt(self) -> None:
        assert HALLUCINATIONS.make_prompt(JudgedTurn(turn=Turn(id="t", user_text="q"))) is None
