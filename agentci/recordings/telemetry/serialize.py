"""Spans, log records and traces as bytes, for this process alone to read again.

``marshal`` is several times as quick as ``pickle`` here, and brings nothing to life but plain data.
"""

import marshal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from agentci.model.json import Json
from agentci.model.place import Place
from agentci.model.trace import ToolCall, ToolResponse, Trace, Turn
from agentci.recordings.telemetry.span import Event, LogRecord, Span

_Fields: TypeAlias = tuple[Any, ...]


def pack(records: Iterable[Span | LogRecord]) -> bytes:
    """What ``unpack`` takes."""
    return marshal.dumps([_span(one) if isinstance(one, Span) else _log(one) for one in records])


def unpack(packed: bytes) -> Iterator[Span | LogRecord]:
    """The records that were packed."""
    for fields in marshal.loads(packed):  # noqa: S302 (our own)
        yield _as_log(fields) if len(fields) == _LOG_FIELDS else _as_span(fields)


def pack_trace(trace: Trace) -> bytes:
    """What ``unpack_trace`` takes: all but ``place`` and ``warnings``."""
    turns = [_turn(turn) for turn in trace.turns]
    performance = None if trace.performance is None else _plain(trace.performance)
    shared = (trace.key, trace.conversation, trace.golden_id)
    return marshal.dumps((trace.id, shared, performance, turns))


def unpack_trace(packed: bytes, *, place: Place, warnings: tuple[str, ...]) -> Trace:
    """The trace that was packed."""
    trace_id, shared, performance, turns = marshal.loads(packed)  # noqa: S302 (our own)
    key, conversation, golden_id = shared
    return Trace(
        id=trace_id,
        key=key,
        conversation=conversation,
        turns=tuple(map(_as_turn, turns)),
        place=place,
        golden_id=golden_id,
        performance=performance,
        warnings=warnings,
    )


def _span(span: Span) -> _Fields:
    return (
        *(span.trace_id, span.id, span.parent_id, span.name, span.start, span.end),
        *(_plain(span.attributes), _plain(span.resource), span.failed, span.adk),
        [_event(event) for event in span.events],
    )


def _as_span(fields: _Fields) -> Span:
    trace_id, span_id, parent_id, name, start, end, own, resource, failed, adk, events = fields
    return Span(
        trace_id=trace_id,
        id=span_id,
        parent_id=parent_id,
        name=name,
        start=start,
        end=end,
        attributes=own,
        resource=resource,
        failed=failed,
        adk=adk,
        events=tuple(map(_as_event, events)),
    )


_LOG_FIELDS = 3


def _log(log: LogRecord) -> _Fields:
    return (log.trace_id, log.span_id, _event(log.event))


def _as_log(fields: _Fields) -> LogRecord:
    trace_id, span_id, event = fields
    return LogRecord(trace_id=trace_id, span_id=span_id, event=_as_event(event))


def _event(event: Event) -> _Fields:
    return (event.name, event.time, _plain(event.payload))


def _as_event(fields: _Fields) -> Event:
    name, time, payload = fields
    return Event(name=name, time=time, payload=payload)


def _turn(turn: Turn) -> _Fields:
    return (
        *(turn.id, turn.user_text, turn.answer_parts),
        [(call.name, call.args, call.id) for call in turn.tool_calls],
        [(one.name, one.output, one.id, one.failed, one.call) for one in turn.tool_responses],
        *(turn.intermediate_texts, turn.trace_id, turn.span_id),
    )


def _as_turn(fields: _Fields) -> Turn:
    turn_id, asked, answer_parts, calls, responses, texts, trace_id, span_id = fields
    return Turn(
        id=turn_id,
        user_text=asked,
        answer_parts=answer_parts,
        tool_calls=tuple(ToolCall(name=name, args=args, id=id_) for name, args, id_ in calls),
        tool_responses=tuple(
            ToolResponse(name=name, output=output, id=id_, failed=failed, call=call)
            for name, output, id_, failed, call in responses
        ),
        intermediate_texts=texts,
        trace_id=trace_id,
        span_id=span_id,
    )


def _plain(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """The attributes as a dictionary, which those that are none are not."""
    return attributes if isinstance(attributes, dict) else dict(attributes)
