"""Tool calls of a turn: from spans, from messages, and from both."""

from typing import Any

import pytest

from agentci.model.trace import ToolCall, ToolResponse
from tests.recordings.telemetry.recorder import (
    Message,
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

HI, DONE = user("hi"), assistant("done")


def asking(*said: Message) -> Any:
    return chat("c", [HI], said, under="a", at=(0, 100))


def shown(*answered: Message) -> Any:
    return chat("d", [HI, *answered], [DONE], under="a", at=(500, 600))


class TestFromSpans:
    def test_in_the_order_of_their_start(self) -> None:
        found = turn(
            agent("a"),
            asking(DONE),
            tool("t2", "second", under="a", at=(90, 110)),
            tool("t1", "first", under="a", at=(50, 70)),
        )
        assert [call.name for call in found.tool_calls] == ["first", "second"]

    def test_arguments_and_result_are_read_as_json(self) -> None:
        found = turn(
            agent("a"), asking(DONE), tool("t", "f", call="x", args={"a": 1}, result=[2], under="a")
        )
        assert found.tool_calls == (ToolCall(name="f", args={"a": 1}, id="x"),)
        assert found.tool_responses == (ToolResponse(name="f", output=[2], id="x", call_index=0),)

    def test_text_that_is_no_json_is_kept(self) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "f",
            "gen_ai.tool.call.arguments": "plain",
            "gen_ai.tool.call.result": "{broken",
        }
        found = turn(agent("a"), asking(DONE), span("t", attributes, under="a"))
        assert found.tool_calls[0].args == "plain"
        assert found.tool_responses[0].output == "{broken"

    @pytest.mark.parametrize("result", [[], "", 0, False, {}])
    def test_an_empty_result_is_a_result(self, result: Any) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "f",
            "gen_ai.tool.call.result": result,
        }
        found = turn(agent("a"), asking(DONE), span("t", attributes, under="a"))
        assert [response.output for response in found.tool_responses] == [result]

    def test_text_that_says_null_is_text(self) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "f",
            "gen_ai.tool.call.result": "null",
        }
        found = turn(agent("a"), asking(DONE), span("t", attributes, under="a"))
        assert found.tool_responses[0].output == "null"

    def test_a_failed_tool_answers_even_without_a_result(self) -> None:
        found = turn(agent("a"), asking(DONE), tool("t", "f", under="a", failed=True))
        assert found.tool_responses == (ToolResponse(name="f", failed=True, call_index=0),)

    def test_a_tool_without_a_result_does_not_answer(self) -> None:
        assert turn(agent("a"), asking(DONE), tool("t", under="a")).tool_responses == ()

    @pytest.mark.parametrize(
        ("name", "guessed"),
        [
            pytest.param("execute_tool lookup now", "lookup", id="second word"),
            pytest.param("execute_tool", "execute_tool", id="no second word"),
            pytest.param("my lookup", "my lookup", id="another span name"),
        ],
    )
    def test_a_tool_without_a_name_is_named_after_its_span(self, name: str, guessed: str) -> None:
        found = trace(agent("a"), asking(DONE), tool("t", None, name=name, under="a"))
        assert found.turns[0].tool_calls == (ToolCall(name=guessed),)
        assert found.warnings == (
            f"tool span t has no gen_ai.tool.name; used span name token '{guessed}'",
        )

    def test_a_name_that_is_not_specified_is_none(self) -> None:
        found = turn(
            agent("a"), asking(DONE), tool("t", "<not specified>", name="execute_tool f", under="a")
        )
        assert found.tool_calls == (ToolCall(name="f"),)

    @pytest.mark.parametrize(
        "inner",
        [
            pytest.param({"tool_name": "f", "call": "rpc-1"}, id="same name"),
            pytest.param({"tool_name": "mcp.f", "call": "x"}, id="same id"),
        ],
    )
    def test_nested_spans_of_one_call_are_one(self, inner: dict[str, str]) -> None:
        found = turn(
            agent("a"),
            asking(DONE),
            tool("t", "f", call="x", args={"a": 1}, under="a"),
            span("between", under="t"),
            tool("u", **inner, result=7, under="between"),
        )
        assert found.tool_calls == (ToolCall(name="f", args={"a": 1}, id="x"),)
        assert found.tool_responses == (ToolResponse(name="f", output=7, id="x", call_index=0),)

    def test_a_different_tool_inside_a_tool_is_a_call_of_its_own(self) -> None:
        found = turn(agent("a"), asking(DONE), tool("t", "f", under="a"), tool("u", "g", under="t"))
        assert [call.name for call in found.tool_calls] == ["f", "g"]

    def test_a_tool_of_a_sub_agent_is_a_call_of_its_own(self) -> None:
        found = turn(
            agent("a"),
            asking(DONE),
            tool("t", "f", under="a"),
            agent("b", under="t"),
            tool("u", "f", under="b"),
        )
        assert [call.name for call in found.tool_calls] == ["f", "f"]


class TestFromMessages:
    def test_calls_and_answers_are_joined_by_id(self) -> None:
        found = trace(
            agent("a"),
            asking(calls("f", {"a": 1}, "t1"), calls("g", {}, "t2")),
            shown(answers(2, "t2"), answers(1, "t1")),
        )
        assert found.turns[0].tool_calls == (
            ToolCall(name="f", args={"a": 1}, id="t1"),
            ToolCall(name="g", args={}, id="t2"),
        )
        assert [(one.output, one.call_index) for one in found.turns[0].tool_responses] == [
            (1, 0),
            (2, 1),
        ]
        assert found.warnings == ()

    @pytest.mark.parametrize(
        ("arguments", "read"),
        [
            pytest.param('{"a": 1}', {"a": 1}, id="json text"),
            pytest.param("[1]", [1], id="not an object"),
            pytest.param("{broken", None, id="no json"),
            pytest.param('{"a": NaN}', {"a": None}, id="not a number"),
            pytest.param("[" * 100 + "]" * 100, None, id="nested too deeply"),
        ],
    )
    def test_arguments_as_text(self, arguments: str, read: Any) -> None:
        assert turn(agent("a"), asking(calls("f", arguments))).tool_calls[0].args == read

    def test_an_answer_cannot_come_before_its_call_is_made(self) -> None:
        found = turn(chat("c", [HI, answers(1)], [calls("f")]))
        assert found.tool_responses == ()

    def test_an_answer_serves_one_call(self) -> None:
        found = turn(
            agent("a"), asking(calls("f", {}, "x"), calls("g", {}, "x")), shown(answers(1, "x"))
        )
        assert [response.call_index for response in found.tool_responses] == [0]

    def test_an_answer_without_an_id_goes_to_the_first_call_that_fits(self) -> None:
        found = trace(agent("a"), asking(calls("f"), calls("g")), shown(answers(1, name="g")))
        assert found.turns[0].tool_responses == (ToolResponse(name="g", output=1, call_index=1),)
        assert found.warnings == ()

    def test_an_answer_with_a_foreign_id_is_joined_by_order_and_said_so(self) -> None:
        found = trace(agent("a"), asking(calls("f", {}, "t1")), shown(answers(1, "zz")))
        assert found.turns[0].tool_responses == (
            ToolResponse(name="f", output=1, id="t1", call_index=0),
        )
        assert found.warnings == (
            "tool f result joined by order (response id 'zz' matches no call)",
        )

    def test_a_repeated_history_answers_once(self) -> None:
        history = [answers(1)]
        found = turn(
            agent("a"),
            asking(calls("f"), calls("f")),
            shown(*history),
            chat("e", [HI, *history], [DONE], under="a", at=(700, 800)),
        )
        assert [one.call_index for one in found.tool_responses] == [0]

    def test_calls_on_the_providers_side_are_none_of_the_agents(self) -> None:
        part = {"type": "server_tool_call", "name": "search"}
        assert turn(chat("c", [HI], [{"role": "assistant", "parts": [part]}])).tool_calls == ()
