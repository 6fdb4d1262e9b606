"""Jaeger JSON: what Jaeger's user interface and API export."""

from collections.abc import Iterator, Mapping
from typing import Final

from agentci.model.json import Json, JsonObject
from agentci.recordings.telemetry import hex_ids, semconv
from agentci.recordings.telemetry.attributes import interned, plain
from agentci.recordings.telemetry.json_input import objects_in, real, whole
from agentci.recordings.telemetry.semconv import Names
from agentci.recordings.telemetry.span import NOTHING, Event, Record, Rejection, Span, is_adk
from agentci.recordings.trace_format import ShapeError

name: Final = "jaeger-json"

NANOSECONDS_PER_MICROSECOND: Final = 1000

_SCOPES: Final = ("otel.scope.name", "otel.library.name")
_SPAN_NAMES: Final = Names(
    semconv.SPAN_NAMES.exact | {*_SCOPES, "otel.status_code", "error"},
    semconv.SPAN_NAMES.prefixes,
)
_EVENT_NAMES: Final = Names(semconv.EVENT_NAMES.exact | {"event"})


def recognises(document: Json) -> bool:
    """Whether it is an object with ``data``."""
    return isinstance(document, dict) and "data" in document


def read(document: Json) -> Iterator[Record]:
    """The spans of one document."""
    traces = document.get("data") if isinstance(document, dict) else None
    if not isinstance(traces, list):
        raise ShapeError("is not Jaeger JSON: it has no list 'data' at the top")
    for trace in objects_in(traces):
        resources = _resources(trace.get("processes"))
        for raw in objects_in(trace.get("spans")):
            yield _span(raw, trace.get("traceID"), resources)


def _resources(processes: Json) -> dict[str, Mapping[str, Json]]:
    if not isinstance(processes, dict):
        return {}
    return {
        key: _tags(process.get("tags"), semconv.RESOURCE_NAMES)
        for key, process in processes.items()
        if isinstance(process, dict)
    }


def _span(
    raw: JsonObject, trace: Json, resources: Mapping[str, Mapping[str, Json]]
) -> Span | Rejection:
    trace = raw.get("traceID") or trace
    trace_id, span_id = hex_ids.trace_id(trace), hex_ids.span_id(raw.get("spanID"))
    if trace_id is None or span_id is None:
        return Rejection(reason=hex_ids.why_rejected(trace, raw.get("spanID")))
    tags = _tags(raw.get("tags"), _SPAN_NAMES)
    title, process = raw.get("operationName"), raw.get("processID")
    start = (whole(raw.get("startTime")) or 0) * NANOSECONDS_PER_MICROSECOND
    return Span(
        trace_id=trace_id,
        id=span_id,
        parent_id=_parent(raw.get("references")),
        name=interned(title) if isinstance(title, str) else "",
        start=start,
        end=start + (whole(raw.get("duration")) or 0) * NANOSECONDS_PER_MICROSECOND,
        attributes={key: value for key, value in tags.items() if semconv.SPAN_NAMES.has(key)},
        resource=resources.get(process, NOTHING) if isinstance(process, str) else NOTHING,
        failed=_failed(tags),
        adk=is_adk(next((tags[key] for key in _SCOPES if key in tags), None), tags),
        events=tuple(_events(raw.get("logs"))),
    )


def _parent(references: Json) -> str | None:
    """The first span that this one is a child of; a ``parentSpanID`` beside it is not read."""
    parents = (one for one in objects_in(references) if one.get("refType") == "CHILD_OF")
    return hex_ids.span_id(next(parents, NOTHING).get("spanID"))


def _failed(tags: Mapping[str, Json]) -> bool:
    if tags.get(semconv.ERROR_TYPE):
        return True
    status = tags.get("otel.status_code")
    return tags.get("error") is True if status is None else status == "ERROR"


def _events(logs: Json) -> Iterator[Event]:
    for log in objects_in(logs):
        fields = _tags(log.get("fields"), _EVENT_NAMES)
        title = fields.get("event")
        if isinstance(title, str) and title in semconv.READ_EVENTS:
            time = (whole(log.get("timestamp")) or 0) * NANOSECONDS_PER_MICROSECOND
            yield Event(name=title, time=time, payload=fields)


def _tags(raw: Json, names: Names) -> dict[str, Json]:
    return {
        interned(key): _value(tag.get("value"), tag.get("type"))
        for tag in objects_in(raw)
        if isinstance(key := tag.get("key"), str) and names.has(key)
    }


def _value(value: Json, kind: Json) -> Json:
    if isinstance(value, str) and kind in ("int64", "float64"):
        number = whole(value) if kind == "int64" else real(value)
        return value if number is None else number
    return plain(value)
