"""Serializes and stores traces while files are read, because they may not fit into memory.

``marshal`` is several times as fast as ``pickle`` here, and loads only plain data.
"""

import marshal
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from agentci.model.json import Json
from agentci.model.problem import Place
from agentci.model.trace import SubagentRun, ToolCall, ToolResponse, Trace, Turn
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions.registry import is_agent_activity, is_model_call
from agentci.recordings.telemetry.spans import (
    LogRecord,
    RejectedSpan,
    Span,
    SpanEvent,
    TelemetryRecord,
    find_identifier,
)
from agentci.recordings.telemetry.trace_tree import SpanTree, assemble_tree, format_span_count

_PackedFields: TypeAlias = tuple[Any, ...]


def pack_records(records: Iterable[Span | LogRecord]) -> bytes:
    """Serialize records for ``unpack_records``."""
    return marshal.dumps(
        [_pack_span(one) if isinstance(one, Span) else _pack_log(one) for one in records]
    )


def unpack_records(packed: bytes) -> Iterator[Span | LogRecord]:
    """Deserialize packed records."""
    for fields in marshal.loads(packed):  # noqa: S302 (our own)
        yield _unpack_log(fields) if len(fields) == _LOG_FIELDS else _unpack_span(fields)


def pack_trace(trace: Trace) -> bytes:
    """Serialize a trace for ``unpack_trace``, without ``place`` and ``warnings``."""
    turns = [_pack_turn(turn) for turn in trace.turns]
    performance = None if trace.performance is None else _as_dict(trace.performance)
    shared = (trace.key, trace.conversation, trace.eval_case_id, trace.not_captured)
    subagents = [
        (run.name, run.call_id, list(map(_pack_turn, run.turns))) for run in trace.subagents
    ]
    return marshal.dumps((trace.id, shared, performance, turns, subagents))


def unpack_trace(packed: bytes, *, place: Place, warnings: tuple[str, ...]) -> Trace:
    """Deserialize a packed trace."""
    trace_id, shared, performance, turns, subagents = marshal.loads(packed)  # noqa: S302 (our own)
    key, conversation, eval_case_id, not_captured = shared
    return Trace(
        id=trace_id,
        key=key,
        conversation=conversation,
        turns=tuple(map(_unpack_turn, turns)),
        place=place,
        eval_case_id=eval_case_id,
        performance=performance,
        subagents=tuple(
            SubagentRun(name=name, call_id=call_id, turns=tuple(map(_unpack_turn, own)))
            for name, call_id, own in subagents
        ),
        warnings=warnings,
        not_captured=not_captured,
    )


def _pack_span(span: Span) -> _PackedFields:
    return (
        *(span.trace_id, span.id, span.parent_id, span.name, span.start, span.end),
        *(
            _as_dict(span.attributes),
            _as_dict(span.resource),
            span.failed,
            span.scope,
            span.scope_version,
        ),
        [_pack_event(event) for event in span.events],
    )


def _unpack_span(fields: _PackedFields) -> Span:
    trace_id, span_id, parent_id, name, start, end, own, resource, *rest = fields
    failed, scope, scope_version, events = rest
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
        scope=scope,
        scope_version=scope_version,
        events=tuple(map(_unpack_event, events)),
    )


_LOG_FIELDS = 3


def _pack_log(log: LogRecord) -> _PackedFields:
    return (log.trace_id, log.span_id, _pack_event(log.event))


def _unpack_log(fields: _PackedFields) -> LogRecord:
    trace_id, span_id, event = fields
    return LogRecord(trace_id=trace_id, span_id=span_id, event=_unpack_event(event))


def _pack_event(event: SpanEvent) -> _PackedFields:
    return (event.name, event.time, _as_dict(event.payload))


def _unpack_event(fields: _PackedFields) -> SpanEvent:
    name, time, payload = fields
    return SpanEvent(name=name, time=time, payload=payload)


def _pack_turn(turn: Turn) -> _PackedFields:
    return (
        *(turn.id, turn.user_text, turn.answer_parts),
        [(call.name, call.args, call.id) for call in turn.tool_calls],
        [(one.name, one.output, one.id, one.failed, one.call_index) for one in turn.tool_responses],
        *(turn.intermediate_texts, turn.trace_id, turn.span_id, turn.user_text_recorded),
    )


def _unpack_turn(fields: _PackedFields) -> Turn:
    turn_id, user_text, answer_parts, calls, responses, texts, trace_id, span_id, known = fields
    return Turn(
        id=turn_id,
        user_text=user_text,
        answer_parts=answer_parts,
        tool_calls=tuple(ToolCall(name=name, args=args, id=id_) for name, args, id_ in calls),
        tool_responses=tuple(
            ToolResponse(name=name, output=output, id=id_, failed=failed, call_index=call)
            for name, output, id_, failed, call in responses
        ),
        intermediate_texts=texts,
        trace_id=trace_id,
        span_id=span_id,
        user_text_recorded=known,
    )


def _as_dict(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Return the attributes as a ``dict``, which ``marshal`` requires."""
    return attributes if isinstance(attributes, dict) else dict(attributes)


class TraceSpool(Protocol):
    """Storage for chunks of bytes."""

    def append(self, chunk: bytes) -> int:
        """Store ``chunk``; return its number."""

    def read(self, number: int) -> bytes:
        """Return the chunk with this number."""


class StoredTrace(Struct, frozen=True, kw_only=True):
    """The part of a file's trace that is kept in memory.

    Attributes:
        chunks: numbers of its chunks of spans and log records, in the file's order.
        warnings: about spans of the file that were rejected.
        may_have_session: whether one of its spans names a session.
        has_activity: whether one of its spans records work of an agent.
        is_model_call: whether its roots are model calls, without a span around them.
    """

    id: str
    file: str
    chunks: tuple[int, ...]
    warnings: tuple[str, ...]
    may_have_session: bool
    has_activity: bool = True
    is_model_call: bool = False


def store_traces(
    records: Iterable[TelemetryRecord], *, file: str, spool: TraceSpool
) -> tuple[tuple[StoredTrace, ...], tuple[str, ...]]:
    """Group the records of a file by trace.

    Returns:
        The traces with spans, in first-seen order, and warnings about rejected spans.
    """
    chunks: defaultdict[str, list[int]] = defaultdict(list)
    sessions: dict[str, bool] = {}
    active: set[str] = set()
    model_calls: dict[str, bool] = {}
    rejected: Counter[str] = Counter()
    # Spans of one trace are mostly adjacent, so only one trace is held in memory at a time.
    for trace_id, run in groupby(_drop_rejected(records, rejected), key=attrgetter("trace_id")):
        read = list(run)
        chunks[trace_id].append(spool.append(pack_records(read)))
        if spans := [one for one in read if isinstance(one, Span)]:
            named = (
                find_identifier((span.resource for span in spans), semconv.SESSION_NAME) is not None
            )
            sessions[trace_id] = named or sessions.get(trace_id, False)
            if trace_id not in active and any(map(is_agent_activity, spans)):
                active.add(trace_id)
            model_calls[trace_id] = model_calls.get(trace_id, True) and all(
                is_model_call(span) for span in spans if span.parent_id is None
            )
    rejections = tuple(_format_rejection(why, count) for why, count in sorted(rejected.items()))
    return tuple(
        StoredTrace(
            id=trace_id,
            file=file,
            chunks=tuple(chunks[trace_id]),
            warnings=rejections,
            may_have_session=may_have_session,
            has_activity=trace_id in active,
            is_model_call=model_calls[trace_id],
        )
        for trace_id, may_have_session in sessions.items()
    ), rejections


def load_tree(recorded: StoredTrace, spool: TraceSpool) -> SpanTree:
    """Load all spans and log records of a trace."""
    records = [record for chunk in recorded.chunks for record in unpack_records(spool.read(chunk))]
    return assemble_tree(
        records, trace_id=recorded.id, rejections=recorded.warnings, file=recorded.file
    )


def _drop_rejected(
    records: Iterable[TelemetryRecord], rejected: Counter[str]
) -> Iterator[Span | LogRecord]:
    """Drop rejected spans, and count them by reason."""
    for record in records:
        if isinstance(record, RejectedSpan):
            rejected[record.reason] += 1
        else:
            yield record


def _format_rejection(reason: str, count: int) -> str:
    return f"{format_span_count(count)} rejected: {reason}"
