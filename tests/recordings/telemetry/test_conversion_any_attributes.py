"""Conversion of arbitrary attributes and events: the turns can always be written as JSON."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from agentci.recordings.telemetry import semconv
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
        *sorted(semconv.SPAN_ATTRIBUTES.exact),
        semconv.ADK_REQUEST,
        semconv.ADK_RESPONSE,
        semconv.ADK_TOOL_ARGUMENTS,
        semconv.ADK_TOOL_RESULT,
        "gen_ai.prompt.0.content",
        "gen_ai.completion.0.tool_calls.0.name",
    ]
)
OPERATIONS = st.sampled_from(["chat", "invoke_agent", "invoke_workflow", "execute_tool"])
ATTRIBUTES = st.builds(
    lambda operation, values: {**values, semconv.OPERATION_NAME: operation},
    OPERATIONS | VALUES,
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
    adk=st.booleans(),
    events=st.lists(EVENTS, max_size=2).map(tuple),
)
LOGS = values(LogRecord, trace_id=st.sampled_from(["t", "u"]), span_id=IDS, event=EVENTS)


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
