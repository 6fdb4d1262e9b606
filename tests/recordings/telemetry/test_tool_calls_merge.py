"""Tool spans completed with the tool calls in model messages."""

from typing import Any

import pytest

from tests.recordings.telemetry.recorder import (
    agent,
    answers,
    asking,
    calls,
    shown,
    tool,
    trace,
    turn,
)


class TestMergedToolCalls:
    def test_message_call_completes_span_by_id(self) -> None:
        found = trace(
            agent("a"),
            asking(calls("f", {"a": 1}, "x"), calls("f", {"a": 2}, "y")),
            tool("t", "f", call="y", under="a", at=(200, 300)),
            tool("u", "f", call="x", args={}, under="a", at=(300, 400)),
            shown(answers(1, "x"), answers(2, "y")),
        )
        assert [call.args for call in found.turns[0].tool_calls] == [{"a": 2}, {"a": 1}]
        assert [one.output for one in found.turns[0].tool_responses] == [2, 1]
        assert found.warnings == ()

    def test_span_values_are_not_replaced(self) -> None:
        found = turn(
            agent("a"),
            asking(calls("f", {"a": 1}, "x")),
            tool("t", "f", call="x", args={"a": 9}, result=9, under="a"),
            shown(answers(1, "x")),
        )
        assert found.tool_calls[0].args == {"a": 9}
        assert found.tool_responses[0].output == 9

    @pytest.mark.parametrize(
        ("recorded", "filled"),
        [
            pytest.param({}, "arguments and result", id="both"),
            pytest.param({"result": 1}, "arguments", id="arguments"),
            pytest.param({"args": {"b": 1}}, "result", id="result"),
        ],
    )
    def test_match_by_name_that_completes_span_is_a_warning(
        self, recorded: dict[str, Any], filled: str
    ) -> None:
        found = trace(
            agent("a"),
            asking(calls("f", {"a": 1}, "x")),
            tool("t", "f", call="other", under="a", **recorded),
            shown(answers(1, "x")),
        )
        assert found.turns[0].tool_calls[0].id == "other"
        assert found.warnings == (
            f"tool f {filled} joined from message parts by name (call ids differ)",
        )

    def test_match_by_name_that_completes_nothing_is_silent(self) -> None:
        found = trace(
            agent("a"),
            asking(calls("f", {"a": 1}, "x")),
            tool("t", "f", call="other", args={"a": 1}, result=1, under="a"),
        )
        assert found.warnings == ()

    def test_call_without_span_keeps_its_requested_position(self) -> None:
        found = trace(
            agent("a"),
            asking(calls("zero"), calls("one", {}, "1"), calls("two"), calls("three", {}, "3")),
            tool("t3", "three", call="3", under="a", at=(10, 20)),
            tool("t1", "one", call="1", under="a", at=(30, 40)),
        )
        names = [call.name for call in found.turns[0].tool_calls]
        assert names == ["zero", "three", "one", "two"]
        assert found.warnings == (
            "tool two appears only in message parts, without a tool span",
            "tool zero appears only in message parts, without a tool span",
        )
