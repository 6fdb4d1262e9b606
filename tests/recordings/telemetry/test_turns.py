"""Which spans make a turn, and its question and answer."""

from typing import Any

import pytest

from agentci.recordings.telemetry.spans import Span
from tests.recordings.telemetry.recorder import (
    agent,
    answers,
    assistant,
    calls,
    chat,
    span,
    tool,
    trace,
    turn,
    user,
)

HI, HELLO = [user("hi")], [assistant("hello")]


def workflow(span_id: str, **more: Any) -> Span:
    return span(span_id, {"gen_ai.operation.name": "invoke_workflow"}, **more)


class TestTurnAnchors:
    def test_lone_model_call_is_a_turn(self) -> None:
        only = turn(chat("c", HI, HELLO))
        assert (only.id, only.span_id, only.trace_id) == ("c", "c", "t1")

    def test_agent_anchors_turn_of_its_calls(self) -> None:
        assert turn(agent("a"), chat("c", HI, HELLO, under="a")).id == "a"

    def test_nested_agent_belongs_to_outer_turn(self) -> None:
        only = turn(agent("a"), agent("b", under="a"), chat("c", HI, HELLO, under="b"))
        assert only.id == "a"

    def test_workflow_anchors_turn_of_its_agents(self) -> None:
        only = turn(workflow("w"), agent("a", under="w"), chat("c", HI, HELLO, under="a"))
        assert only.id == "w"

    def test_sibling_agents_are_separate_turns(self) -> None:
        turns = trace(
            span("http"),
            agent("b", under="http", at=(500, 600)),
            chat("d", HI, HELLO, under="b", at=(500, 600)),
            agent("a", under="http", at=(0, 100)),
            chat("c", HI, HELLO, under="a"),
        ).turns
        assert [turn.id for turn in turns] == ["a", "b"]

    def test_sibling_calls_are_one_turn(self) -> None:
        only = turn(
            span("http"),
            chat("c", HI, [assistant("one")], under="http", at=(0, 10)),
            chat("d", HI, [assistant("two")], under="http", at=(20, 30)),
        )
        assert (only.id, only.final_text) == ("http", "two")

    def test_agent_below_tool_is_no_anchor(self) -> None:
        only = turn(tool("t"), agent("a", under="t"), chat("c", HI, HELLO, under="a"))
        assert only.id == "t"

    def test_tool_without_model_call_is_no_turn(self) -> None:
        assert trace(tool("t")).turns == ()

    def test_span_name_does_not_make_an_agent(self) -> None:
        found = trace(span("a", name="invoke_agent x"), chat("c", HI, HELLO, under="a"))
        assert [turn.id for turn in found.turns] == ["a"]
        assert trace(span("a", name="invoke_agent x"), tool("t", under="a")).turns == ()

    def test_empty_agent_is_a_warning(self) -> None:
        found = trace(agent("a"))
        assert found.turns == ()
        assert found.warnings == (
            "agent span a has no model calls, tool calls or messages; it is not a turn",
        )

    @pytest.mark.parametrize(
        "spans",
        [
            pytest.param([agent("a"), tool("t", under="a")], id="tool"),
            pytest.param([agent("a", {"gen_ai.input.messages": HI})], id="question"),
            pytest.param([agent("a", {"gen_ai.output.messages": HELLO})], id="answer"),
            pytest.param([agent("a", failed=True)], id="failure"),
        ],
    )
    def test_agent_with_content_is_a_turn(self, spans: list[Span]) -> None:
        assert turn(*spans).id == "a"

    @pytest.mark.parametrize(
        "merged",
        [
            pytest.param(tool("m", under="a", name="execute_tool (merged)"), id="span name"),
            pytest.param(tool("m", "(merged tools)", under="a"), id="tool name"),
        ],
    )
    def test_merged_tool_span_is_ignored(self, merged: Span) -> None:
        only = turn(agent("a"), chat("c", HI, HELLO, under="a"), merged, tool("t", under="m"))
        assert [call.name for call in only.tool_calls] == ["f"]

    def test_deeply_nested_spans_are_one_turn(self) -> None:
        wrappers = [span(str(n), under=str(n - 1)) for n in range(5000)]
        assert turn(*wrappers, chat("c", HI, HELLO, under="4999")).final_text == "hello"


class TestQuestion:
    def test_question_joins_last_user_messages(self) -> None:
        inputs = [user("old"), assistant("done"), user("new one."), user("and more")]
        assert turn(chat("c", inputs)).user_text == "new one.and more"

    def test_question_is_found_before_tool_messages(self) -> None:
        inputs = [user("hi"), calls("f"), answers(1)]
        assert turn(chat("c", inputs)).user_text == "hi"

    def test_question_of_agent_precedes_question_of_its_calls(self) -> None:
        outputs = {"gen_ai.input.messages": [user("asked")]}
        assert turn(agent("a", outputs), chat("c", [user("inner")], under="a")).user_text == "asked"

    def test_question_without_user_message_uses_anchor_input(self) -> None:
        system = {"role": "system", "content": "S."}
        developer = {"role": "developer", "content": "D."}
        assert turn(chat("c", [system, developer])).user_text == "S.D."

    def test_question_of_inner_call_needs_user_message(self) -> None:
        system = {"role": "system", "content": "S."}
        assert turn(agent("a"), chat("c", [system], under="a")).user_text == ""

    def test_question_comes_from_first_call_with_messages(self) -> None:
        only = turn(
            agent("a"),
            chat("c", under="a", at=(0, 10)),
            chat("d", [user("first")], under="a", at=(20, 30)),
            chat("e", [user("second")], under="a", at=(40, 50)),
        )
        assert only.user_text == "first"


class TestAnswer:
    def test_answer_of_anchor_precedes_answer_of_its_calls(self) -> None:
        outputs = {"gen_ai.output.messages": [assistant("agent says")]}
        only = turn(agent("a", outputs), chat("c", HI, [assistant("inner")], under="a"))
        assert only.answer_parts == ("agent says",)
        assert only.intermediate_texts == ("inner",)

    def test_anchor_output_without_text_has_no_answer(self) -> None:
        outputs = {"gen_ai.output.messages": [calls("f")]}
        assert turn(agent("a", outputs), chat("c", HI, HELLO, under="a")).answer_parts == ()

    def test_answer_comes_from_call_that_ended_last(self) -> None:
        only = turn(
            agent("a"),
            chat("c", HI, [assistant("long")], under="a", at=(0, 90)),
            chat("d", HI, [assistant("short")], under="a", at=(10, 20)),
        )
        assert (only.final_text, only.intermediate_texts) == ("long", ("short",))

    def test_answer_of_sub_agent_behind_tool_is_not_used(self) -> None:
        only = turn(
            agent("a"),
            chat("c", HI, HELLO, under="a", at=(0, 10)),
            tool("t", under="a", at=(20, 90)),
            chat("d", HI, [assistant("sub")], under="t", at=(30, 80)),
        )
        assert (only.final_text, only.intermediate_texts) == ("hello", ())

    def test_sub_agent_answer_is_used_without_other_answer(self) -> None:
        only = turn(agent("a"), tool("t", under="a"), chat("d", HI, HELLO, under="t"))
        assert only.final_text == "hello"

    def test_turn_without_output_has_no_answer(self) -> None:
        assert turn(chat("c", HI)).answer_parts == ()

    def test_anchor_answer_is_not_an_intermediate_text(self) -> None:
        assert turn(chat("c", HI, HELLO)).intermediate_texts == ()
