"""Attributes of Google's Agent Development Kit."""

import json
from typing import Any

import pytest

from agentci.recordings.telemetry.spans import Span
from tests.recordings.telemetry.recorder import agent, span, tool, trace, turn


def adk(name: str, attributes: Any = None, **more: Any) -> Span:
    return span(more.pop("span_id", name), attributes, name=name, scope="gcp.vertex.agent", **more)


REQUEST = {"contents": [{"role": "user", "parts": [{"text": "roll"}]}]}
RESPONSE = {
    "content": {
        "role": "model",
        "parts": [
            {"text": "thinking", "thought": True},
            {"text": "You rolled "},
            {"text": "a 4."},
            {"inline_data": {"mime_type": "image/png"}},
        ],
    },
    "usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 5},
}


def model_call(**more: Any) -> Span:
    attributes = {
        "gcp.vertex.agent.llm_request": json.dumps(REQUEST),
        "gcp.vertex.agent.llm_response": json.dumps(RESPONSE),
    }
    return adk("call_llm", attributes, **more)


def test_adk_invocation_is_a_turn() -> None:
    found = trace(adk("invocation"), agent("a", under="invocation"), model_call(under="a"))
    (only,) = found.turns
    assert (only.id, only.user_text, only.final_text) == (
        "invocation",
        "roll",
        "You rolled a 4.",
    )
    assert found.performance is not None
    assert found.performance["tokens"]["total"] == 15  # type: ignore[index,call-overload]


def test_span_names_are_ignored_without_adk_scope() -> None:
    assert trace(span("invocation", name="invocation"), tool("t", under="invocation")).turns == ()


def test_adk_tool_arguments_and_response_are_read() -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "roll",
        "gcp.vertex.agent.tool_call_args": '{"sides": 6}',
        "gcp.vertex.agent.tool_response": '{"result": 4}',
    }
    found = turn(adk("invocation"), adk("execute_tool roll", attributes, under="invocation"))
    assert found.tool_calls[0].args == {"sides": 6}
    assert found.tool_responses[0].output == {"result": 4}


@pytest.mark.parametrize("nothing", ["<not specified>", '{"result": "<not specified>"}'])
def test_unspecified_adk_tool_values_are_ignored(nothing: str) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "roll",
        "gcp.vertex.agent.tool_call_args": "N/A",
        "gcp.vertex.agent.tool_response": nothing,
    }
    found = turn(adk("invocation"), adk("execute_tool roll", attributes, under="invocation"))
    assert found.tool_calls[0].args is None
    assert found.tool_responses == ()


def test_adk_function_calls_and_responses_are_read() -> None:
    inputs = {"function_call": {"id": "x", "name": "roll", "args": {"sides": 6}}}
    answered = {"function_response": {"id": "x", "name": "roll", "response": {"result": 4}}}
    first = {"content": {"role": "model", "parts": [inputs]}}
    second = {"contents": [{"role": "user", "parts": [answered]}]}
    found = turn(
        adk("invocation"),
        adk(
            "call_llm",
            {"gcp.vertex.agent.llm_response": first},
            under="invocation",
            span_id="1",
        ),
        adk(
            "call_llm",
            {"gcp.vertex.agent.llm_request": second},
            under="invocation",
            span_id="2",
            at=(200, 300),
        ),
    )
    assert (found.tool_calls[0].name, found.tool_calls[0].args) == ("roll", {"sides": 6})
    assert found.tool_responses[0].output == {"result": 4}


@pytest.mark.parametrize("broken", ["{", "7", "[]", '{"contents": 7, "content": 7}'])
def test_malformed_adk_attributes_are_ignored(broken: str) -> None:
    attributes = {
        "gcp.vertex.agent.llm_request": broken,
        "gcp.vertex.agent.llm_response": broken,
    }
    found = turn(adk("call_llm", attributes))
    assert (found.user_text, found.final_text) == ("", None)
