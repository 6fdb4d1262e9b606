"""Serializes and stores traces while files are read, because they may not fit into memory.

``marshal`` is several times as fast as ``pickle`` here, and loads only plain data.
"""

import json
import marshal
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from msgspec import Struct, structs

from agentci.model.trace import (
    ModelStep,
    SubagentRun,
    TokenUsage,
    ToolCall,
    ToolResponse,
    Trace,
    Turn,
)
from agentci.model.values import Json, Place, replace
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions.registry import (
    READ_ATTRIBUTES,
    is_agent_activity,
    is_model_call,
)
from agentci.recordings.telemetry.semconv import AttributeNames
from agentci.recordings.telemetry.spans import (
    LogRecord,
    RejectedSpan,
    SkippedInput,
    Span,
    SpanEvent,
    SpanTree,
    TelemetryRecord,
    assemble_tree,
    find_identifier,
    format_span_count,
)

T = TypeVar("T", bound=Struct)

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
    used = None if trace.usage is None else structs.astuple(trace.usage), trace.cost_usd
    shared = (
        *(trace.key, trace.conversation, trace.eval_case_id, trace.asked),
        *(trace.not_captured, trace.replayed),
    )
    subagents = [
        (run.name, run.call_id, list(map(_pack_turn, run.turns))) for run in trace.subagents
    ]
    return marshal.dumps((trace.id, shared, performance, used, turns, subagents))


def unpack_trace(packed: bytes, *, place: Place, warnings: tuple[str, ...]) -> Trace:
    """Deserialize a packed trace."""
    trace_id, shared, performance, used, turns, subagents = marshal.loads(packed)  # noqa: S302 (our own)
    key, conversation, eval_case_id, asked, not_captured, replayed = shared
    usage, cost_usd = used
    return Trace(
        id=trace_id,
        key=key,
        conversation=conversation,
        turns=tuple(map(_unpack_turn, turns)),
        place=place,
        eval_case_id=eval_case_id,
        asked=asked,
        performance=performance,
        usage=None if usage is None else _unpack(TokenUsage, usage),
        cost_usd=cost_usd,
        subagents=tuple(
            SubagentRun(name=name, call_id=call_id, turns=tuple(map(_unpack_turn, own)))
            for name, call_id, own in subagents
        ),
        warnings=warnings,
        not_captured=not_captured,
        replayed=replayed,
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


_TURN_PARTS: Final[Mapping[str, type[Struct]]] = {
    "tool_calls": ToolCall,
    "tool_responses": ToolResponse,
    "model_steps": ModelStep,
}


def _pack_turn(turn: Turn) -> dict[str, Any]:
    fields = structs.asdict(turn)
    return fields | {name: [structs.astuple(one) for one in fields[name]] for name in _TURN_PARTS}


def _unpack_turn(fields: dict[str, Any]) -> Turn:
    parts = {
        name: tuple(_unpack(kind, one) for one in fields[name])
        for name, kind in _TURN_PARTS.items()
    }
    return Turn(**(fields | parts))


def _unpack(kind: type[T], fields: _PackedFields) -> T:
    return kind(**dict(zip(kind.__struct_fields__, fields, strict=True)))


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
        line: of the document with its first span.
        chunks: numbers of its chunks of spans and log records, in the file's order.
        warnings: about what of the file was rejected or skipped.
        may_have_session: whether one of its spans names a session.
        has_activity: whether one of its spans records work of an agent.
        is_model_call: whether its roots are model calls, without a span around them.
        labels: values of the attributes that select traces, as text.
        keeps_subagents_apart: whether agents that tools run are runs of their own.
    """

    id: str
    file: str
    chunks: tuple[int, ...]
    warnings: tuple[str, ...]
    may_have_session: bool
    has_activity: bool = True
    is_model_call: bool = False
    labels: Mapping[str, frozenset[str]] = {}
    keeps_subagents_apart: bool = False
    line: int = 1


def store_traces(
    documents: Iterable[tuple[int, Iterable[TelemetryRecord]]],
    *,
    file: str,
    spool: TraceSpool,
    label_names: AbstractSet[str] = frozenset(),
    keep_subagents_apart: bool = False,
) -> tuple[tuple[StoredTrace, ...], tuple[str, ...]]:
    """Group the records of a file by trace.

    Args:
        documents: the lines of the file's documents, and their records.
        label_names: attributes that select traces.
        keep_subagents_apart: whether agents that tools run are runs of their own.

    Returns:
        The traces with spans, in first-seen order, and warnings about what was rejected or skipped.
    """
    chunks: defaultdict[str, list[int]] = defaultdict(list)
    sessions: dict[str, bool] = {}
    lines: dict[str, int] = {}
    active: set[str] = set()
    model_calls: dict[str, bool] = {}
    labels: defaultdict[str, dict[str, set[str]]] = defaultdict(dict)
    rejected: Counter[RejectedSpan | SkippedInput] = Counter()
    # Spans of one trace are mostly adjacent, so only one trace is held in memory at a time.
    records = _RecordReader(documents)
    for trace_id, run in groupby(_drop_rejected(records, rejected), key=attrgetter("trace_id")):
        line = records.line  # the run is read from its second record on
        read = list(run)
        if label_names:
            read = list(_take_labels(read, label_names, labels[trace_id]))
        chunks[trace_id].append(spool.append(pack_records(read)))
        if spans := [one for one in read if isinstance(one, Span)]:
            named = (
                find_identifier((span.resource for span in spans), semconv.SESSION_NAME) is not None
            )
            lines.setdefault(trace_id, line)
            sessions[trace_id] = named or sessions.get(trace_id, False)
            if trace_id not in active and any(map(is_agent_activity, spans)):
                active.add(trace_id)
            model_calls[trace_id] = model_calls.get(trace_id, True) and all(
                is_model_call(span) for span in spans if span.parent_id is None
            )
    rejections = tuple(sorted(_format_rejection(one, count) for one, count in rejected.items()))
    return tuple(
        StoredTrace(
            id=trace_id,
            file=file,
            line=lines[trace_id],
            chunks=tuple(chunks[trace_id]),
            warnings=rejections,
            may_have_session=may_have_session,
            has_activity=trace_id in active,
            is_model_call=model_calls[trace_id],
            keeps_subagents_apart=keep_subagents_apart,
            labels={name: frozenset(found) for name, found in labels[trace_id].items()},
        )
        for trace_id, may_have_session in sessions.items()
    ), rejections


class _RecordReader:
    """Iterates over the records of documents, and knows the line of the last one."""

    def __init__(self, documents: Iterable[tuple[int, Iterable[TelemetryRecord]]]) -> None:
        self._documents = documents
        self.line = 1

    def __iter__(self) -> Iterator[TelemetryRecord]:
        for line, records in self._documents:
            self.line = line
            yield from records


def _take_labels(
    records: Iterable[Span | LogRecord], names: AbstractSet[str], labels: dict[str, set[str]]
) -> Iterator[Span | LogRecord]:
    """Add the values of attributes to ``labels``, and drop those that are not read otherwise."""
    for one in records:
        if not isinstance(one, Span):
            yield one
            continue
        for name in names:
            value = one.attributes.get(name, one.resource.get(name))
            if value is not None:
                text = value if isinstance(value, str) else json.dumps(value)
                labels.setdefault(name, set()).add(text)
        yield replace(
            one,
            attributes=_select_read(one.attributes, READ_ATTRIBUTES.span),
            resource=_select_read(one.resource, READ_ATTRIBUTES.resource),
        )


def _select_read(attributes: Mapping[str, Json], names: AttributeNames) -> Mapping[str, Json]:
    return {name: value for name, value in attributes.items() if names.has(name)}


def load_tree(recorded: StoredTrace, spool: TraceSpool) -> SpanTree:
    """Load all spans and log records of a trace."""
    records = [record for chunk in recorded.chunks for record in unpack_records(spool.read(chunk))]
    tree = assemble_tree(
        records, trace_id=recorded.id, rejections=recorded.warnings, file=recorded.file
    )
    return replace(tree, line=recorded.line)


def _drop_rejected(
    records: Iterable[TelemetryRecord], rejected: Counter[RejectedSpan | SkippedInput]
) -> Iterator[Span | LogRecord]:
    """Drop what cannot be used, and count it by reason."""
    for record in records:
        if isinstance(record, RejectedSpan | SkippedInput):
            rejected[record] += 1
        else:
            yield record


def _format_rejection(one: RejectedSpan | SkippedInput, count: int) -> str:
    if isinstance(one, SkippedInput):
        skipped = f"1 {one.what} was" if count == 1 else f"{count} {one.plural} were"
        return f"between the spans, {skipped} skipped"
    return f"{format_span_count(count)} rejected: {one.reason}"
