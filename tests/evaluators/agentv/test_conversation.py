"""Conversations: the input of evaluators of one turn and of the whole conversation."""

import json
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.agentv.conversation import (
    Conversation,
    ConversationEvaluator,
    ConversationTurn,
    split_rounds,
)
from agentci.model.requests import ConstantJudgement, RunCommand
from agentci.model.trace import Message, ToolUse, Transcript
from agentci.model.values import JsonObject
from tests.evaluators.agentv.agentv_cases import case, suite_of

SYSTEM = {"role": "system", "content": "s"}


def _turn(asked: str, *expected: JsonObject) -> ConversationTurn:
    return ConversationTurn(
        input_messages=({"role": "user", "content": asked},), expected_messages=expected
    )


def _run(*messages: str) -> Transcript:
    """Messages such as ``user: q``; one that uses a tool ends in ``+``."""
    return Transcript(messages=tuple(_message(*each.split(": ")) for each in messages))


def _message(role: str, text: str) -> Message:
    uses = (ToolUse(tool="t"),) if text.endswith("+") else ()
    return Message(role=role, content=text.removesuffix("+") or None, tool_calls=uses)


TALK = Conversation(
    preamble=(SYSTEM,), turns=(_turn("q1", {"role": "assistant", "content": "a"}), _turn("q2"))
)
RUN = _run("system: s", "user: q1", "assistant: a1", "user: q2", "assistant: +", "assistant: a2")


def _judge(turn: int | None, talk: Conversation = TALK, **entry: Any) -> ConversationEvaluator:
    [judge] = suite_of({"name": "e", **entry}, key="tests").evaluators
    return ConversationEvaluator(
        identity=judge.identity,
        evaluator=judge,  # type: ignore[arg-type] # every evaluator of an eval file is one
        conversation=talk,
        turn=turn,
    )


def _given(turn: int | None, talk: Conversation = TALK, run: Transcript = RUN) -> Any:
    judge = _judge(turn, talk, type="code_judge", script=["x"])
    request = judge.ask(case(run))
    assert isinstance(request, RunCommand)
    return json.loads(request.stdin)


class TestTurn:
    def test_turn_input_includes_conversation_up_to_answer(self) -> None:
        given = _given(0)
        assert [each["content"] for each in given["input"]] == ["s", "q1", "a1"]
        assert given["output"] == "a1"
        assert given["expected_output"] == [{"role": "assistant", "content": "a"}]
        assert [each.get("content") for each in given["output_messages"]] == ["a1"]

    def test_turn_has_only_its_own_tool_calls(self) -> None:
        assert _given(0)["trace_summary"]["event_count"] == 0
        given = _given(1)
        assert given["trace_summary"]["event_count"] == 1
        assert (given["output"], given["expected_output"]) == ("a2", [])

    def test_window_limits_turn_input_to_last_rounds(self) -> None:
        talk = Conversation(preamble=TALK.preamble, turns=TALK.turns, window=1)
        assert [each["content"] for each in _given(1, talk)["input"]] == ["s", "q2", "a2"]

    def test_turn_is_evaluated_like_any_run(self) -> None:
        judge = _judge(1, type="equals", value="a2")
        response = judge.ask(case(RUN))
        assert isinstance(response, ConstantJudgement)
        assert judge.read(response).score == 1
        assert judge.needs == ()


class TestConversation:
    def test_conversation_output_contains_all_messages(self) -> None:
        given = _given(None)
        assert (
            given["output"] == "system: s\n\nuser: q1\n\nassistant: a1\n\nuser: q2\n\nassistant: a2"
        )
        assert [each["role"] for each in given["input"]] == [
            "system", "user", "assistant", "user", "assistant",
        ]  # fmt: skip
        assert given["trace_summary"]["event_count"] == 1

    def test_structured_content_is_formatted_as_json(self) -> None:
        data: JsonObject = {"role": "user", "content": {"k": 1}}
        turn = ConversationTurn(input_messages=(data,), expected_messages=())
        given = _given(None, Conversation(preamble=(), turns=(turn,)), _run("assistant: a"))
        assert given["output"] == 'user: {"k":1}\n\nassistant: a'

    @pytest.mark.parametrize("turn", [None, 0])
    def test_run_with_fewer_turns_is_an_error(self, turn: int | None) -> None:
        with pytest.raises(EvaluatorError, match="run has 1 turn, but the conversation has 2"):
            _judge(turn, type="is_json").ask(case(_run("user: q", "assistant: a")))

    def test_scripted_opening_may_be_missing_from_run(self) -> None:
        opening = ({"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"})
        talk = Conversation(preamble=opening, turns=(_turn("q1"),))
        whole = _run("user: hi", "assistant: ho", "user: q1", "assistant: a1")
        for run in (whole, _run("user: q1", "assistant: a1")):
            assert _given(0, talk, run)["output"] == "a1"
        assert [each["content"] for each in talk.first_input] == ["hi", "ho", "q1"]
        assert Conversation(preamble=opening, turns=()).first_input == opening


class TestRounds:
    @pytest.mark.parametrize(
        ("messages", "sizes"),
        [
            ((), []),
            (("user: q", "assistant: a", "user: q", "assistant: a"), [2, 2]),
            (("system: s", "user: q", "user: q", "assistant: a", "tool: x", "assistant: b"), [6]),
            (("assistant: hello", "user: q", "assistant: a"), [1, 2]),
            (("user: q", "assistant: a", "user: q"), [2, 1]),
            (("assistant: a", "assistant: b"), [1, 1]),
            (("assistant: +", "tool: x", "assistant: a", "assistant: +", "assistant: b"), [3, 2]),
        ],
    )
    def test_rounds_begin_with_user_or_after_answer(
        self, messages: tuple[str, ...], sizes: list[int]
    ) -> None:
        assert [len(each) for each in split_rounds(_run(*messages))] == sizes
