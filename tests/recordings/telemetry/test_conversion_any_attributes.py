"""Conversion of arbitrary attributes and events: the turns can always be written as JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions.registry import CONVENTIONS, READ_SPAN_ATTRIBUTES
from agentci.recordings.telemetry.spans import LogRecord, Span, SpanEvent, TelemetryRecord
from tests.helpers.building import values
from tests.recordings.telemetry.recorder import read, traces

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
WORDS = st.sampled_from(
    [
        "role",
        "user",
        "human",
        "tool",
        "parts",
        "type",
        "text",
        "content",
        "tool_call",
        "tool_call_response",
        "id",
        "name",
        "arguments",
        "response",
        "tool_calls",
        "function",
        "args",
        "tool_call_id",
        "contents",
        "function_call",
        "f",
        "1",
        "0",
        *("messages", "input", "output", "kwargs", "data", "ai", "model", "blocks", "message"),
        *("toolUse", "toolResult", "toolCallId", "tool-call", "tool_use", "function_call_output"),
        *("call_id", "event.name", "additional_kwargs", "constructor", "raw_output", "usage"),
    ]
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | TEXT, inner, max_size=5),
    max_leaves=15,
)
VALUES = JSON | JSON.map(json.dumps)
NAMES = st.sampled_from(
    [
        *sorted(READ_SPAN_ATTRIBUTES.exact),
        semconv.ADK_REQUEST,
        semconv.ADK_RESPONSE,
        semconv.ADK_TOOL_ARGUMENTS,
        semconv.ADK_TOOL_RESULT,
        "gen_ai.prompt.0.content",
        "llm.input_messages.0.message.content",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name",
        "ai.response.toolCalls",
        "langfuse.observation.input",
        "langfuse.observation.output",
        "mlflow.spanInputs",
        "mlflow.spanOutputs",
        "traceloop.entity.output",
        "gen_ai.completion.0.tool_calls.0.name",
    ]
)
OPERATIONS = st.sampled_from(["chat", "invoke_agent", "invoke_workflow", "execute_tool"])
KINDS = [
    {},
    *({"openinference.span.kind": kind} for kind in ("LLM", "TOOL", "AGENT", "CHAIN")),
    *({"langfuse.observation.type": kind} for kind in ("generation", "tool", "agent")),
    *({"mlflow.spanType": f'"{kind}"'} for kind in ("CHAT_MODEL", "TOOL", "AGENT")),
    *({"langsmith.span.kind": kind} for kind in ("llm", "tool", "chain")),
    *({"ai.operationId": f"ai.{kind}"} for kind in ("toolCall", "generateText.doGenerate")),
]
ATTRIBUTES = st.builds(
    lambda operation, kinds, values: {**values, semconv.OPERATION_NAME: operation, **kinds},
    OPERATIONS | VALUES,
    st.sampled_from(KINDS),
    st.dictionaries(NAMES, VALUES, max_size=6),
)
EVENTS = values(
    SpanEvent,
    name=st.sampled_from(sorted(semconv.READ_EVENTS)),
    time=st.integers(0, 9),
    payload=st.dictionaries(WORDS, VALUES, max_size=4),
)
IDS = st.sampled_from("abcdef")
SPANS = values(
    Span,
    trace_id=st.sampled_from(["t", "u"]),
    id=IDS,
    parent_id=st.none() | IDS,
    name=TEXT,
    start=st.integers(0, 9),
    end=st.integers(0, 9),
    attributes=ATTRIBUTES,
    failed=st.booleans(),
    scope=st.sampled_from(["", *sorted({scope for one in CONVENTIONS for scope in one.scopes})]),
    events=st.lists(EVENTS, max_size=2).map(tuple),
)
LOGS = values(LogRecord, trace_id=st.sampled_from(["t", "u"]), span_id=IDS, event=EVENTS)


@pytest.mark.slow
@given(st.lists(SPANS, min_size=1, max_size=7), st.lists(LOGS, max_size=3), st.booleans())
def test_arbitrary_records_convert_to_valid_turns(
    spans: list[Span], logs: list[LogRecord], together: bool
) -> None:
    records: list[TelemetryRecord] = [*spans, *logs]
    recording = read(*records)
    found = traces(recording, recording[:1], multi_turn_eval_cases=together)
    assert found
    json.dumps([to_builtins(trace) for trace in found], allow_nan=False)
    for turn in (turn for trace in found for turn in trace.turns):
        assert all(part for part in turn.answer_parts)
        assert all(response.call_index is not None for response in turn.tool_responses)
