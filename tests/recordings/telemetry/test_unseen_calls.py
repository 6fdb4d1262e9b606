"""No tool call of a trace is left out: it is read, or the trace cannot be evaluated."""

from typing import Any

import pytest

from agentci.recordings.otlp import decode_attributes
from agentci.recordings.telemetry import semconv
from tests.recordings.telemetry.recorder import (
    DONE,
    HI,
    agent,
    answers,
    asking,
    calls,
    chat,
    shown,
    span,
    tool,
    trace,
    user,
)

OUT = "gen_ai.output.messages"


def names(*spans: Any) -> list[list[str]]:
    found = trace(*spans)
    assert found.not_captured == ""
    return [[call.name for call in turn.tool_calls] for turn in found.turns]


def reason(*spans: Any) -> str:
    return trace(*spans).not_captured


class TestToolsWithoutTheirParent:
    def test_tool_belongs_to_the_only_turn(self) -> None:
        assert names(agent("a"), asking(DONE), tool("t", "f", under="lost")) == [["f"]]
        assert names(agent("a"), asking(DONE), tool("t", "f")) == [["f"]]

    def test_tool_belongs_to_the_turn_at_its_time(self) -> None:
        assert names(
            agent("a", at=(0, 100)),
            chat("c", [HI], [DONE], under="a", at=(0, 10)),
            agent("b", at=(200, 300)),
            chat("d", [user("and?")], [DONE], under="b", at=(200, 210)),
            tool("t", "f", under="lost", at=(220, 230)),
        ) == [[], ["f"]]

    def test_tool_that_a_message_requests_counts_once(self) -> None:
        spans = (
            agent("a"),
            asking(calls("f", {"a": 1}, "x")),
            shown(answers(1, "x")),
        )
        stray = tool("t", "f", call="x", under="lost")
        assert names(*spans, stray) == [["f"]]
        failed = trace(*spans, tool("t", "f", call="x", under="lost", failed=True))
        assert [call.failed for call in failed.turns[0].tool_calls] == [True]

    def test_tool_between_turns_is_an_error(self) -> None:
        assert reason(
            agent("a", at=(0, 100)),
            chat("c", [HI], [DONE], under="a", at=(0, 10)),
            agent("b", at=(200, 300)),
            chat("d", [user("and?")], [DONE], under="b", at=(200, 210)),
            tool("t", "refund", under="lost", at=(120, 130)),
        ) == (
            "The tool call `refund` (span t) belongs to none of 2 turns, as a span above it was not"
            " recorded; export all spans of the trace"
        )


class TestKindsOfToolSpans:
    @pytest.mark.parametrize(
        "attributes",
        [
            pytest.param({"gen_ai.tool.name": "f"}, id="no operation"),
            pytest.param(
                {"gen_ai.operation.name": "tool_call", "gen_ai.tool.name": "f"}, id="other name"
            ),
            pytest.param(
                {"gen_ai.operation.name": "Execute_Tool", "gen_ai.tool.name": "f"}, id="other case"
            ),
            pytest.param({"mcp.method.name": "tools/call", "gen_ai.tool.name": "f"}, id="MCP"),
            pytest.param({"mcp.method.name": "tools/call", "mcp.tool.name": "f"}, id="older MCP"),
        ],
    )
    def test_span_that_names_a_tool_is_a_call(self, attributes: Any) -> None:
        assert names(agent("a"), asking(DONE), span("t", attributes, under="a")) == [["f"]]

    def test_mcp_call_without_a_name_is_named_after_its_span(self) -> None:
        mcp = span("t", {"mcp.method.name": "tools/call"}, name="tools/call f", under="a")
        assert names(agent("a"), asking(DONE), mcp) == [["f"]]

    @pytest.mark.parametrize(
        "attributes",
        [
            pytest.param({"mcp.method.name": "tools/list", "gen_ai.tool.name": "f"}, id="listing"),
            pytest.param(
                {"gen_ai.operation.name": "create_agent", "gen_ai.tool.name": "f"}, id="set-up"
            ),
            pytest.param({"gen_ai.tool.name": ""}, id="no name"),
        ],
    )
    def test_other_span_is_not_a_call(self, attributes: Any) -> None:
        assert names(agent("a"), asking(DONE), span("t", attributes, under="a")) == [[]]

    @pytest.mark.parametrize(
        ("inner", "expected"),
        [
            ("f", ["f"]),
            ("weather.f", ["f"]),
            (None, ["f"]),
            ("other", ["f", "other"]),
            ("leaf", ["f", "leaf"]),
        ],
    )
    def test_mcp_call_inside_its_tool_counts_once(
        self, inner: str | None, expected: list[str]
    ) -> None:
        attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": inner}
        recorded = {key: value for key, value in attributes.items() if value}
        mcp = span("m", recorded, under="t", at=(50, 60))
        assert names(agent("a"), asking(DONE), tool("t", "f", under="a"), mcp) == [expected]


class TestUnreadOutputs:
    @pytest.mark.parametrize(
        ("part", "named"),
        [
            ({"type": "skill_run", "name": "f"}, "part of type `skill_run`"),
            ({"type": "tool_call", "arguments": {}}, "part of type `tool_call` without a name"),
            ({"invoke": "f"}, "part with `invoke`"),
            ({"type": 7}, "part of type `7`"),
        ],
    )
    def test_unknown_part_is_an_error(self, part: Any, named: str) -> None:
        parts = [{"type": "text", "content": "done"}, part]
        found = reason(chat("c", [HI], [{"role": "assistant", "parts": parts}]))
        assert found.startswith(f"The output of model call c has a {named}, which agentci does not")

    def test_nameless_call_is_an_error(self) -> None:
        message = {"role": "assistant", "content": "x", "tool_calls": [{"function": {}}]}
        assert "has a tool call without a name" in reason(chat("c", [HI], [message]))

    @pytest.mark.parametrize(
        "part",
        [{"type": "reasoning", "content": "hm"}, {"type": "image-url"}, {"inlineData": {}}],
    )
    def test_other_content_is_no_error(self, part: Any) -> None:
        parts = [{"type": "text", "content": "done"}, part]
        assert reason(chat("c", [HI], [{"role": "assistant", "parts": parts}])) == ""

    @pytest.mark.parametrize(
        "output",
        [
            pytest.param("[{'role': 'assistant'}]", id="Python"),
            pytest.param("It is sunny.", id="text"),
            pytest.param('[{"answer": "x"}, 7]', id="no messages"),
        ],
    )
    def test_output_that_holds_no_messages_is_an_error(self, output: str) -> None:
        spans = (
            agent("a"),
            chat("c", [HI], [DONE], under="a", at=(0, 1)),
            chat("d", [HI], (), {OUT: output}, under="a", at=(2, 3)),
        )
        assert reason(*spans).startswith(f"{OUT} of span d holds no messages that agentci reads")

    def test_output_that_is_too_long_is_an_error(self) -> None:
        long = {OUT: f'["{"x" * 4 * 2**20}"]'}
        spans = agent("a"), asking(DONE), chat("d", [HI], (), long, under="a")
        assert reason(*spans) == f"{OUT} of span d is too long to be read"

    @pytest.mark.parametrize("output", ["[]", '""', "null", [{"role": "assistant"}], "<elided>"])
    def test_empty_output_is_no_error(self, output: Any) -> None:
        assert reason(agent("a"), asking(DONE), chat("d", [HI], (), {OUT: output}, under="a")) == ""


class TestCallsThatOnlyInputsShow:
    def test_call_without_an_id_is_not_another_call_without_one(self) -> None:
        given = [HI, calls("refund", {}), answers(1, name="refund")]
        later = chat("d", given, [calls("convert", {})], under="a", at=(500, 600))
        assert "was given a call of `refund`" in reason(agent("a"), later)

    def test_call_in_a_later_input_is_an_error(self) -> None:
        later = chat(
            "d", [HI, calls("refund", {}, "x"), answers(1, "x")], [DONE], under="a", at=(500, 600)
        )
        assert reason(agent("a"), chat("c", [HI], under="a"), later) == (
            "Model call d was given a call of `refund` that no span and no output records; record "
            "the output of all model calls"
        )

    def test_call_of_an_earlier_turn_is_no_error(self) -> None:
        given = [HI, calls("f", {}, "x"), answers(1, "x"), DONE, user("and?")]
        assert names(agent("a"), chat("c", given, [DONE], under="a")) == [[]]

    @pytest.mark.parametrize(
        ("reasons", "ended"),
        [
            ({"gen_ai.response.finish_reasons": ["tool_calls"]}, {}),
            ({}, {"finish_reason": "tool_call"}),
        ],
    )
    def test_finish_reason_without_a_call_is_an_error(self, reasons: Any, ended: Any) -> None:
        parts = [{"type": "text", "content": "I will look."}]
        text = {"role": "assistant", "parts": parts, **ended}
        assert reason(chat("c", [HI], [text], reasons)) == (
            "Model call c ended with a tool call that was not recorded; record the output of model "
            "calls, or spans of tools"
        )

    def test_finish_reason_with_a_span_of_a_tool_is_no_error(self) -> None:
        reasons = {"gen_ai.response.finish_reasons": ["tool_calls"]}
        asked = chat("c", [HI], [DONE], reasons, under="a")
        assert names(agent("a"), asked, tool("t", "f", under="a")) == [["f"]]


def test_span_with_only_the_id_of_a_call_is_a_call() -> None:
    attributes = {"gen_ai.tool.call.id": "x"}
    nameless = span("t", under="a", attributes=attributes, name="execute_tool refund")
    assert names(agent("a"), asking(DONE), nameless) == [["refund"]]


def test_attribute_with_two_values_is_an_error() -> None:
    names_read = semconv.SPAN_ATTRIBUTES
    raw: list[Any] = [{"key": OUT, "value": {"stringValue": text}} for text in ("[]", "[1]", "[1]")]
    assert decode_attributes(raw[1:], names_read) == {OUT: "[1]"}
    found = decode_attributes(raw, names_read)
    assert reason(agent("a"), chat("c", [HI], [DONE], found, under="a")) == (
        f"{OUT} of span c is recorded twice, with different values"
    )
