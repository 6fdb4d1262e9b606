"""Traces and spans are equal after packing and unpacking."""

from hypothesis import given
from hypothesis import strategies as st

from agentci.model.trace import ToolCall, ToolResponse, Trace, Turn
from agentci.model.values import Place
from agentci.recordings.telemetry.spans import LogRecord, Span
from agentci.recordings.telemetry.stored_trace import (
    pack_records,
    pack_trace,
    store_traces,
    unpack_records,
    unpack_trace,
)
from tests.helpers.building import values
from tests.recordings.telemetry.recorder import SPOOL, log, span
from tests.recordings.telemetry.test_conversion_any_attributes import JSON, LOGS, SPANS

TEXT = st.text(st.characters(codec=None), max_size=6)  # halves of surrogate pairs, too
NAMES = st.none() | TEXT
TURNS = values(
    Turn,
    id=TEXT,
    user_text=TEXT,
    answer_parts=st.lists(TEXT, max_size=2).map(tuple),
    tool_calls=st.lists(values(ToolCall, name=TEXT, args=JSON, id=NAMES), max_size=2).map(tuple),
    tool_responses=st.lists(
        values(
            ToolResponse,
            name=TEXT,
            output=JSON,
            id=NAMES,
            failed=st.booleans(),
            call_index=st.none() | st.integers(0, 9),
        ),
        max_size=2,
    ).map(tuple),
    intermediate_texts=st.lists(TEXT, max_size=2).map(tuple),
    trace_id=NAMES,
    span_id=NAMES,
)
TRACES = values(
    Trace,
    id=TEXT,
    key=TEXT,
    turns=st.lists(TURNS, max_size=2).map(tuple),
    place=st.just(Place(file="run.json")),
    eval_case_id=NAMES,
    performance=st.none() | st.dictionaries(TEXT, JSON, max_size=2),
    warnings=st.lists(TEXT, max_size=2).map(tuple),
)


@given(st.lists(SPANS | LOGS, max_size=4))
def test_packed_records_are_equal_after_unpacking(records: list[Span | LogRecord]) -> None:
    assert list(unpack_records(pack_records(records))) == records


def test_empty_span_is_equal_after_unpacking() -> None:
    bare = Span(trace_id="t", id="a", parent_id=None, name="", start=0, end=0)
    assert list(unpack_records(pack_records([bare]))) == [bare]


@given(TRACES)
def test_packed_traces_are_equal_after_unpacking(trace: Trace) -> None:
    packed = pack_trace(trace)
    assert unpack_trace(packed, place=trace.place, warnings=trace.warnings) == trace


def test_selecting_attribute_keeps_log_records() -> None:
    records = (span("a", {"k": 1}, resource={"service.name": "s"}), log("a", "message", {}))
    [stored], _ = store_traces(
        [(1, records)], file="run.json", spool=SPOOL, label_names={"k", "service.name", "missing"}
    )
    assert stored.labels == {"k": {"1"}, "service.name": {"s"}}
    [chunk] = stored.chunks
    assert [type(one) for one in unpack_records(SPOOL.read(chunk))] == [Span, LogRecord]
