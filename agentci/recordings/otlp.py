"""OTLP JSON: what the OpenTelemetry Collector writes and Tempo exports, and spans by themselves."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeGuard

from agentci.model.json import Json, JsonObject
from agentci.recordings.telemetry import hex_ids, semconv
from agentci.recordings.telemetry.attributes import any_value, attributes, interned
from agentci.recordings.telemetry.json_input import loads_or_text, objects_in, whole
from agentci.recordings.telemetry.span import (
    NOTHING,
    Event,
    LogRecord,
    Record,
    Rejection,
    Span,
    is_adk,
)
from agentci.recordings.trace_format import ShapeError

name: Final = "otlp-json"

_SNAKE_CASE_ROOTS: Final = frozenset({"resource_spans", "resource_logs"})
_ROOTS: Final = frozenset({"resourceSpans", "resourceLogs", "batches"}) | _SNAKE_CASE_ROOTS
_ERRORS: Final = (2, "2", "STATUS_CODE_ERROR")


def recognises(document: Json) -> bool:
    """Whether it is an export, a span, or a list of spans."""
    return _is_export(document) or _is_span(document) or _is_list_of_spans(document)


def read(document: Json) -> Iterator[Record]:
    """The spans and log records of one document."""
    if _is_export(document):
        yield from _exported(document)
    elif _is_span(document):
        yield _span(document, NOTHING, None)
    elif _is_list_of_spans(document):
        yield from (_span(raw, NOTHING, None) for raw in objects_in(document))
    else:
        raise ShapeError("holds neither an OTLP export (resourceSpans, batches) nor a span")


def _is_export(document: Json) -> TypeGuard[JsonObject]:
    if not isinstance(document, dict):
        return False
    trace = document.get("trace")
    wrapped = isinstance(trace, dict) and ("resourceSpans" in trace or "batches" in trace)
    return wrapped or not _ROOTS.isdisjoint(document)


def _is_span(document: Json) -> TypeGuard[JsonObject]:
    return isinstance(document, dict) and ("spanId" in document or "traceId" in document)


def _is_list_of_spans(document: Json) -> bool:
    return isinstance(document, list) and bool(document) and all(map(_is_span, document))


def _exported(document: JsonObject) -> Iterator[Record]:
    if not _SNAKE_CASE_ROOTS.isdisjoint(document):
        document = {_camel_case(key): _renamed(value) for key, value in document.items()}
    elif _ROOTS.isdisjoint(document):
        document = _object(document.get("trace"))
    yield from _spans(document.get("resourceSpans") or document.get("batches"))
    yield from _log_records(document.get("resourceLogs"))


def _spans(batches: Json) -> Iterator[Record]:
    for batch in objects_in(batches):
        described = _object(batch.get("resource")).get("attributes")
        resource = attributes(described, semconv.RESOURCE_NAMES) or NOTHING
        for group in objects_in(
            batch.get("scopeSpans") or batch.get("instrumentationLibrarySpans")
        ):
            scope = _object(group.get("scope") or group.get("instrumentationLibrary")).get("name")
            yield from (_span(raw, resource, scope) for raw in objects_in(group.get("spans")))


def _log_records(batches: Json) -> Iterator[Record]:
    for batch in objects_in(batches):
        for group in objects_in(batch.get("scopeLogs") or batch.get("instrumentationLibraryLogs")):
            for raw in objects_in(group.get("logRecords")):
                yield from _log_record(raw)


def _span(raw: JsonObject, resource: Mapping[str, Json], scope: Json) -> Span | Rejection:
    trace_id, span_id = hex_ids.trace_id(raw.get("traceId")), hex_ids.span_id(raw.get("spanId"))
    if trace_id is None or span_id is None:
        return Rejection(reason=hex_ids.why_rejected(raw.get("traceId"), raw.get("spanId")))
    found = attributes(raw.get("attributes"), semconv.SPAN_NAMES)
    error = found.pop(semconv.ERROR_TYPE, None)
    title = raw.get("name")
    return Span(
        trace_id=trace_id,
        id=span_id,
        parent_id=hex_ids.span_id(raw.get("parentSpanId")),
        name=interned(title) if isinstance(title, str) else "",
        start=whole(raw.get("startTimeUnixNano")) or 0,
        end=whole(raw.get("endTimeUnixNano")) or 0,
        attributes=found or NOTHING,
        resource=resource,
        failed=bool(error) or _object(raw.get("status")).get("code") in _ERRORS,
        adk=is_adk(scope, found),
        events=tuple(_events(raw.get("events"))),
    )


def _events(raw: Json) -> Iterator[Event]:
    for event in objects_in(raw):
        title = event.get("name")
        if isinstance(title, str) and title in semconv.READ_EVENTS:
            yield Event(
                name=title,
                time=whole(event.get("timeUnixNano")) or 0,
                payload=attributes(event.get("attributes"), semconv.EVENT_NAMES),
            )


def _log_record(raw: JsonObject) -> Iterator[LogRecord]:
    """The record, where it has messages and belongs to a trace."""
    trace_id = hex_ids.trace_id(raw.get("traceId"))
    found = attributes(raw.get("attributes"), semconv.EVENT_NAMES)
    title = raw.get("eventName") or found.get("otel.event.name") or found.get("event.name")
    if trace_id is not None and isinstance(title, str) and title in semconv.READ_EVENTS:
        yield LogRecord(
            trace_id=trace_id,
            span_id=hex_ids.span_id(raw.get("spanId")),
            event=Event(
                name=title,
                time=whole(raw.get("timeUnixNano")) or whole(raw.get("observedTimeUnixNano")) or 0,
                payload=found if title == semconv.DETAILS_EVENT else _body(raw.get("body")),
            ),
        )


def _body(raw: Json) -> JsonObject:
    body = any_value(raw)
    said = loads_or_text(body) if isinstance(body, str) else body
    if isinstance(said, dict):
        return said
    return {"content": body} if isinstance(body, str) else NOTHING


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else NOTHING


def _renamed(value: Json) -> Json:
    """Protobuf's own names as OTLP's; attributes given as an object are the user's names."""
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _camel_case(key): inner
        if key == "attributes" and isinstance(inner, dict)
        else _renamed(inner)
        for key, inner in value.items()
    }


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)
