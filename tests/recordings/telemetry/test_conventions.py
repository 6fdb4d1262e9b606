"""What single conventions record, where the recordings of frameworks have no example."""

import json
from typing import Any

import pytest

from agentci.recordings.telemetry.conventions.registry import (
    CONVENTIONS,
    READ_SPAN_ATTRIBUTES,
    find_conventions,
    is_agent_activity,
    is_model_call,
)
from agentci.recordings.telemetry.messages import MAX_MESSAGES_CHARS
from agentci.recordings.telemetry.semconv import MAX_KNOWN_NAMES, AttributeNames
from agentci.recordings.telemetry.spans import Span
from tests.recordings.telemetry.recorder import event, span, trace, turn

USER = {"role": "user", "content": "hi"}
ANSWER = {"role": "assistant", "content": "done"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}}],
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "42"}


def text(value: Any) -> str:
    return json.dumps(value)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openinference.span.kind", "llm"),
        ("langsmith.span.kind", "LLM"),
        ("langfuse.observation.type", "GENERATION"),
    ],
)
def test_kind_of_a_model_call_is_recognised_in_any_case(name: str, kind: str) -> None:
    assert is_model_call(span("call", {name: kind}))


def logfire_call(name: str, inputs: Any, output: Any, at: tuple[int, int]) -> Span:
    """A span of `logfire.instrument_openai`."""
    attributes = {
        "request_data": text({"model": "m", "messages": inputs}),
        "response_data": text({"message": output, "usage": {"prompt_tokens": 5}}),
    }
    return span(name, attributes, under="root", at=at, scope="logfire.openai")


def mlflow_call(name: str, inputs: Any, output: Any, at: tuple[int, int]) -> Span:
    attributes = {
        "mlflow.spanType": text("CHAT_MODEL"),
        "mlflow.spanInputs": text({"model": "m", "messages": inputs}),
        "mlflow.spanOutputs": text({"choices": [{"message": output}]}),
        "mlflow.chat.tokenUsage": text({"input_tokens": 5}),
    }
    return span(name, attributes, under="root", at=at)


def langfuse_call(name: str, inputs: Any, output: Any, at: tuple[int, int]) -> Span:
    attributes = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": text({"messages": inputs, "tools": []}),
        "langfuse.observation.output": text(output),
        "langfuse.observation.usage_details": text({"input": 5}),
    }
    return span(name, attributes, under="root", at=at)


def langsmith_call(name: str, inputs: Any, output: Any, at: tuple[int, int]) -> Span:
    attributes = {
        "langsmith.span.kind": "llm",
        "gen_ai.prompt": text({"messages": inputs}),
        "gen_ai.completion": text({"choices": [{"message": output}]}),
        "gen_ai.usage.input_tokens": 5,
    }
    return span(name, attributes, under="root", at=at)


def vercel_call(name: str, inputs: Any, output: Any, at: tuple[int, int]) -> Span:
    """A model call of version 4."""
    calls = [
        {"toolCallId": one["id"], "toolName": "f", "args": one["function"]["arguments"]}
        for one in output.get("tool_calls", [])
    ]
    attributes = {
        "ai.operationId": "ai.streamText.doStream",
        "ai.prompt.messages": text(inputs),
        "ai.response.text": output["content"] or "",
        "ai.response.toolCalls": text(calls),
        "ai.usage.promptTokens": 5,
    }
    return span(name, attributes, under="root", at=at)


@pytest.mark.parametrize(
    "call", [logfire_call, mlflow_call, langfuse_call, langsmith_call, vercel_call]
)
def test_model_calls_below_any_span_are_one_turn(call: Any) -> None:
    found = trace(
        span("root", at=(0, 100)),
        call("a", [USER], CALL, (10, 20)),
        call("b", [USER, CALL, RESULT], ANSWER, (30, 40)),
    )
    (only,) = found.turns
    assert (only.user_text, only.final_text) == ("hi", "done")
    assert [(one.name, one.args) for one in only.tool_calls] == [("f", {"a": 1})]
    assert [one.output for one in only.tool_responses] == [42]
    performance: Any = found.performance
    assert performance["counts"]["llm_calls"] == 2
    assert performance["tokens"]["total_prompt"] == 10


@pytest.mark.parametrize(
    "around", [{}, {"openinference.span.kind": "CHAIN"}, {"mlflow.spanType": text("CHAIN")}]
)
def test_agents_below_a_span_without_messages_are_turns(around: Any) -> None:
    agents = [
        span(
            name,
            {"openinference.span.kind": "AGENT", "input.value": name, "output.value": "done"},
            under="root",
            at=at,
        )
        for name, at in (("first", (0, 10)), ("second", (20, 30)))
    ]
    found = trace(span("root", around), *agents)
    assert [one.user_text for one in found.turns] == ["first", "second"]


def test_agents_below_a_workflow_are_one_turn() -> None:
    around = {"openinference.span.kind": "CHAIN", "input.value": "hi", "output.value": "done"}
    inner = span("a", {"openinference.span.kind": "AGENT", "input.value": "x"}, under="root")
    found = turn(span("root", around), inner)
    assert (found.user_text, found.final_text) == ("hi", "done")


def test_openllmetry_tool_without_a_name_is_named_by_its_span() -> None:
    found = turn(
        span("w", {"traceloop.span.kind": "workflow"}),
        span(
            "t",
            {
                "traceloop.span.kind": "tool",
                "traceloop.entity.input": text({"args": [], "kwargs": {"a": 1}}),
                "traceloop.entity.output": text("42"),
            },
            name="f.tool",
            under="w",
        ),
    )
    assert [(one.name, one.args) for one in found.tool_calls] == [("f", {"a": 1})]
    assert [one.output for one in found.tool_responses] == [42]


def test_openllmetry_workflow_gives_question_and_answer() -> None:
    attributes = {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.input": text({"inputs": {"messages": [USER]}, "tags": []}),
        "traceloop.entity.output": text({"outputs": {"messages": [USER, ANSWER]}}),
    }
    found = turn(span("w", attributes))
    assert (found.user_text, found.final_text) == ("hi", "done")


@pytest.mark.parametrize(
    ("attributes", "failed"),
    [({"gen_ai.tool.status": "error"}, True), ({"gen_ai.tool.status": "success"}, False)],
)
def test_strands_says_whether_a_tool_failed(attributes: Any, *, failed: bool) -> None:
    run = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f", **attributes}
    found = turn(
        span("a", {"gen_ai.operation.name": "invoke_agent"}, scope="strands.telemetry.tracer"),
        span(
            "t",
            {**run, "gen_ai.tool.call.result": text([{"text": "42"}])},
            under="a",
            scope="strands.telemetry.tracer",
        ),
    )
    assert [(one.output, one.failed) for one in found.tool_responses] == [(42, failed)]


def test_strands_tool_events_of_other_kinds_are_ignored() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"}
    events = (
        event("gen_ai.tool.message", {"content": text({"n": 1})}),
        event("exception", {"message": "no"}),
        event("gen_ai.choice", {"message": text([{"text": "42"}])}),
    )
    found = turn(
        span("a", {"gen_ai.operation.name": "invoke_agent"}, scope="strands.telemetry.tracer"),
        span("t", tool, under="a", scope="strands.telemetry.tracer", events=events),
    )
    assert [call.args for call in found.tool_calls] == [{"n": 1}]
    assert [one.output for one in found.tool_responses] == [42]


def test_helper_that_calls_no_model_is_no_model_call() -> None:
    """LlamaIndex records functions that prepare a request as LLM, too."""
    helper = {"openinference.span.kind": "LLM", "output.value": text({"tools": ["<Tool object>"]})}
    found = trace(
        span("root", {"openinference.span.kind": "CHAIN", "input.value": "hi"}),
        span("h", {**helper, "llm.model_name": "m"}, under="root"),
        span(
            "c",
            {
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": "hi",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.contents.0.message_content.text": "done",
            },
            under="root",
        ),
    )
    performance: Any = found.performance
    assert performance["counts"]["llm_calls"] == 1
    assert [one.final_text for one in found.turns] == ["done"]


def test_function_call_of_openinference_is_read() -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.function_call_name": "f",
        "llm.output_messages.0.message.function_call_arguments_json": text({"a": 1}),
        "llm.output_messages.x.message.role": "assistant",
    }
    (call,) = turn(span("root"), span("c", attributes, under="root")).tool_calls
    assert (call.name, call.args) == ("f", {"a": 1})


def test_names_beyond_those_remembered_are_still_found() -> None:
    names = AttributeNames(frozenset({"a"}))
    assert not any(names.has(f"b{number}") for number in range(MAX_KNOWN_NAMES + 1))
    assert names.has("a")


def test_message_that_is_too_long_is_reported() -> None:
    attributes = {"openinference.span.kind": "CHAIN", "input.value": "x" * (MAX_MESSAGES_CHARS + 1)}
    found = trace(span("root", attributes), span("c", {"openinference.span.kind": "LLM"}))
    assert "span root: input.value is longer than 4 MiB and was not read" in found.warnings


@pytest.mark.parametrize(
    ("attributes", "active"),
    [
        ({"openinference.span.kind": "LLM"}, True),
        ({"gen_ai.operation.name": "chat"}, True),
        ({"gen_ai.operation.name": "create_agent"}, False),
        ({"lmnr.span.type": "LLM"}, True),
        ({"genkit:type": "action"}, True),
        ({"langwatch.span.type": "llm"}, True),
        ({}, False),
    ],
)
def test_agent_activity_is_recognised_in_every_convention(attributes: Any, *, active: bool) -> None:
    assert is_agent_activity(span("s", attributes)) is active


def test_every_convention_reads_its_own_attributes() -> None:
    for one in CONVENTIONS:
        names = [
            *one.attributes,
            *(one.read_attributes.exact if one.read_attributes is not None else ()),
        ]
        assert all(map(READ_SPAN_ATTRIBUTES.has, names))
        for prefix in one.prefixes:
            assert one in find_conventions(span("s", {f"{prefix}x": 1}))
