"""Builds spans as instrumentation records them, and converts them to turns."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from agentci._util.files import SpooledChunks
from agentci.model.trace import ToolCall, Trace, Turn
from agentci.recordings.telemetry.conversion import convert_to_trace
from agentci.recordings.telemetry.grouping import GroupBy, group_traces
from agentci.recordings.telemetry.spans import LogRecord, Span, SpanEvent, SpanTree, TelemetryRecord
from agentci.recordings.telemetry.stored_trace import (
    StoredTrace,
    load_tree,
    pack_trace,
    store_traces,
    unpack_trace,
)

Attributes: TypeAlias = Mapping[str, Any]
Message: TypeAlias = dict[str, Any]

MILLISECOND = 1_000_000


def span(
    span_id: str,
    attributes: Attributes | None = None,
    *,
    under: str | None = None,
    at: tuple[int, int] = (0, 100),
    trace: str = "t1",
    name: str = "",
    **more: Any,
) -> Span:
    """A span; ``at`` in milliseconds."""
    return Span(
        trace_id=trace,
        id=span_id,
        parent_id=under,
        name=name,
        start=at[0] * MILLISECOND,
        end=at[1] * MILLISECOND,
        attributes=attributes or {},
        **more,
    )


def agent(
    span_id: str = "agent",
    attributes: Attributes | None = None,
    *,
    at: tuple[int, int] = (0, 1000),
    **more: Any,
) -> Span:
    return span(
        span_id, {"gen_ai.operation.name": "invoke_agent", **(attributes or {})}, at=at, **more
    )


def chat(
    span_id: str = "chat",
    inputs: Sequence[Message] = (),
    outputs: Sequence[Message] = (),
    attributes: Attributes | None = None,
    **more: Any,
) -> Span:
    """A model call, with its messages as JSON text."""
    recorded = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    if inputs:
        recorded["gen_ai.input.messages"] = json.dumps(inputs)
    if outputs:
        recorded["gen_ai.output.messages"] = json.dumps(outputs)
    return span(span_id, {**recorded, **(attributes or {})}, **more)


def tool(
    span_id: str = "tool",
    tool_name: str | None = "f",
    *,
    call: str | None = None,
    args: Any = None,
    result: Any = None,
    **more: Any,
) -> Span:
    """A tool's span, with arguments and result as JSON text."""
    recorded = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool_name,
        "gen_ai.tool.call.id": call,
        "gen_ai.tool.call.arguments": None if args is None else json.dumps(args),
        "gen_ai.tool.call.result": None if result is None else json.dumps(result),
    }
    return span(span_id, {key: value for key, value in recorded.items() if value}, **more)


def event(name: str, payload: Attributes, *, at: int = 0) -> SpanEvent:
    return SpanEvent(name=name, time=at * MILLISECOND, payload=payload)


def log(span_id: str | None, name: str, payload: Attributes, *, at: int = 0) -> LogRecord:
    return LogRecord(trace_id="t1", span_id=span_id, event=event(name, payload, at=at))


def user(text: str) -> Message:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def assistant(text: str) -> Message:
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


def calls(name: str, args: Any = None, call: str | None = None) -> Message:
    part = {"type": "tool_call", "id": call, "name": name, "arguments": args}
    return {"role": "assistant", "parts": [part]}


def answers(result: Any, call: str | None = None, name: str | None = None) -> Message:
    part = {"type": "tool_call_response", "id": call, "name": name, "response": result}
    return {"role": "tool", "parts": [part]}


# One spool for all traces: chunks are found by number. Most of them are in its file.
SPOOL = SpooledChunks(memory_bytes=1000)


HI, DONE = user("hi"), assistant("done")


def asking(*outputs: Message) -> Any:
    """A model call of the agent ``a`` that asks for tools."""
    return chat("c", [HI], outputs, under="a", at=(0, 100))


def shown(*answered: Message) -> Any:
    """A later model call of ``a`` that sees the tools' answers."""
    return chat("d", [HI, *answered], [DONE], under="a", at=(500, 600))


def read(*records: TelemetryRecord, file: str = "run.json") -> tuple[StoredTrace, ...]:
    return store_traces([(1, records)], file=file, spool=SPOOL)[0]


def trees(*records: TelemetryRecord, file: str = "run.json") -> tuple[SpanTree, ...]:
    return tuple(load_tree(one, SPOOL) for one in read(*records, file=file))


def traces(
    *recordings: Sequence[StoredTrace],
    group_by: GroupBy = "auto",
    multi_turn_eval_cases: bool = False,
) -> tuple[Trace, ...]:
    groups = group_traces(
        [one for recording in recordings for one in recording],
        SPOOL,
        group_by=group_by,
        multi_turn_eval_cases=multi_turn_eval_cases,
    )
    return tuple(_repack(convert_to_trace(group, SPOOL)) for group in groups)


def _repack(trace: Trace) -> Trace:
    """The trace after packing and unpacking."""
    return unpack_trace(pack_trace(trace), place=trace.place, warnings=trace.warnings)


def trace(*records: TelemetryRecord) -> Trace:
    """The only trace in the records."""
    (only,) = traces(read(*records))
    return only


def turn(*records: TelemetryRecord) -> Turn:
    """The only turn in the records."""
    (only,) = trace(*records).turns
    return only


def requested(turn: Turn) -> tuple[ToolCall, ...]:
    """The tool calls of a turn, without what is known of their execution."""
    return tuple(ToolCall(name=each.name, args=each.args, id=each.id) for each in turn.tool_calls)
