"""Reads Jaeger JSON, as exported by Jaeger's user interface and API."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings import otlp
from agentci.recordings.json_documents import DocumentFormatError
from agentci.recordings.otlp import clean_json_value, intern_short_text
from agentci.recordings.telemetry import semconv, spans
from agentci.recordings.telemetry.json_input import iterate_objects, parse_finite_float, parse_int64
from agentci.recordings.telemetry.semconv import AttributeNames, ReadAttributes

name: Final = "jaeger-json"

NANOSECONDS_PER_MICROSECOND: Final = 1000

_SCOPE_TAGS: Final = ("otel.scope.name", "otel.library.name")
_SCOPE_VERSION_TAGS: Final = ("otel.scope.version", "otel.library.version")
# Tags that are not attributes of the span.
_OTHER_TAGS: Final = AttributeNames(
    frozenset({*_SCOPE_TAGS, *_SCOPE_VERSION_TAGS, "otel.status_code", "error"})
)
_EVENT_FIELDS: Final = AttributeNames(semconv.EVENT_ATTRIBUTES.exact | {"event"})


def recognises(document: Json) -> bool:
    """Return whether the document is an object with a list ``data``."""
    return isinstance(document, dict) and isinstance(document.get("data"), list)


def read(document: Json, names: ReadAttributes) -> Iterator[spans.TelemetryRecord]:
    """Read the spans of one document."""
    traces = document.get("data") if isinstance(document, dict) else None
    if not isinstance(traces, list):
        raise DocumentFormatError("not Jaeger JSON: no top-level list `data`")
    for trace in iterate_objects(traces):
        resources = _read_resources(trace.get("processes"), names.resource)
        for raw in iterate_objects(trace.get("spans")):
            yield _read_span(raw, trace.get("traceID"), resources, names.span)


def _read_resources(processes: Json, names: AttributeNames) -> dict[str, Mapping[str, Json]]:
    if not isinstance(processes, dict):
        return {}
    return {
        key: _read_tags(process.get("tags"), names)
        for key, process in processes.items()
        if isinstance(process, dict)
    }


def _read_span(
    raw: JsonObject,
    trace: Json,
    resources: Mapping[str, Mapping[str, Json]],
    names: AttributeNames,
) -> spans.Span | spans.RejectedSpan:
    trace = raw.get("traceID") or trace
    trace_id, span_id = (
        otlp.parse_trace_id(trace),
        otlp.parse_span_id(raw.get("spanID")),
    )
    if trace_id is None or span_id is None:
        return spans.RejectedSpan(reason=otlp.explain_rejected_ids(trace, raw.get("spanID")))
    found = _read_tags(raw.get("tags"), names)
    tags = _read_tags(raw.get("tags"), _OTHER_TAGS)
    title, process = raw.get("operationName"), raw.get("processID")
    start = (parse_int64(raw.get("startTime")) or 0) * NANOSECONDS_PER_MICROSECOND
    return spans.Span(
        trace_id=trace_id,
        id=span_id,
        parent_id=_find_parent_id(raw.get("references")),
        name=intern_short_text(title) if isinstance(title, str) else "",
        start=start,
        end=start + (parse_int64(raw.get("duration")) or 0) * NANOSECONDS_PER_MICROSECOND,
        attributes=found,
        resource=resources.get(process, spans.NO_ATTRIBUTES)
        if isinstance(process, str)
        else spans.NO_ATTRIBUTES,
        failed=_has_failed(found, tags),
        scope=_find_scope(tags, _SCOPE_TAGS),
        scope_version=_find_scope(tags, _SCOPE_VERSION_TAGS),
        events=tuple(_read_events(raw.get("logs"))),
    )


def _find_scope(tags: Mapping[str, Json], names: Sequence[str]) -> str:
    return spans.make_scope_text(next((tags[one] for one in names if one in tags), None))


def _find_parent_id(references: Json) -> str | None:
    """Return the first ``CHILD_OF`` reference; ``parentSpanID`` is not read."""
    parents = (one for one in iterate_objects(references) if one.get("refType") == "CHILD_OF")
    return otlp.parse_span_id(next(parents, spans.NO_ATTRIBUTES).get("spanID"))


def _has_failed(attributes: Mapping[str, Json], tags: Mapping[str, Json]) -> bool:
    if attributes.get(semconv.ERROR_TYPE):
        return True
    status = tags.get("otel.status_code")
    return tags.get("error") is True if status is None else status == "ERROR"


def _read_events(logs: Json) -> Iterator[spans.SpanEvent]:
    for log in iterate_objects(logs):
        fields = _read_tags(log.get("fields"), _EVENT_FIELDS)
        title = fields.get("event")
        if isinstance(title, str) and title in semconv.READ_EVENTS:
            time = (parse_int64(log.get("timestamp")) or 0) * NANOSECONDS_PER_MICROSECOND
            yield spans.SpanEvent(name=title, time=time, payload=fields)


def _read_tags(raw: Json, names: AttributeNames) -> dict[str, Json]:
    return {
        intern_short_text(key): _decode_tag_value(tag.get("value"), tag.get("type"))
        for tag in iterate_objects(raw)
        if isinstance(key := tag.get("key"), str) and names.has(key)
    }


def _decode_tag_value(value: Json, kind: Json) -> Json:
    if isinstance(value, str) and kind in ("int64", "float64"):
        number = parse_int64(value) if kind == "int64" else parse_finite_float(value)
        return value if number is None else number
    return clean_json_value(value)
