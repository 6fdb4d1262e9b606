"""Reads OTLP JSON (exports of the OpenTelemetry Collector and Tempo, bare spans) and its values."""

import binascii
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, TypeGuard

from agentci._util.text.json_text import is_shallow
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import DocumentFormatError
from agentci.recordings.telemetry import json_input, semconv, spans
from agentci.recordings.telemetry.json_input import iterate_objects, parse_int64, parse_json_or_text
from agentci.recordings.telemetry.semconv import AttributeNames, ReadAttributes

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
_HEX: Final = re.compile(r"[0-9a-f]+")


def parse_trace_id(raw: Json) -> str | None:
    """Return the trace id in lower case; None if it is missing or invalid."""
    return _parse_id(raw, TRACE_ID_BYTES) if isinstance(raw, str) else None


def parse_span_id(raw: Json) -> str | None:
    """Return the span id in lower case; None if it is missing or invalid."""
    return _parse_id(raw, SPAN_ID_BYTES) if isinstance(raw, str) else None


def explain_rejected_ids(trace: Json, span: Json) -> str:
    """Explain why a span is rejected that has a missing or invalid id."""
    if trace in (None, "") or span in (None, ""):
        return "no traceId or spanId field"
    return "invalid trace or span id"


# Neighbouring spans share ids: the cache saves work, and all of them share one string.
@lru_cache(maxsize=1024)
def _parse_id(raw: str, size: int) -> str | None:
    text = raw.strip()
    lower = text.lower()
    if len(text) == 2 * size and _HEX.fullmatch(lower):
        return lower if lower.strip("0") else None
    return _base64_to_hex(text, size) or lower or None


def _base64_to_hex(text: str, size: int) -> str | None:
    try:
        decoded = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None
    return decoded.hex() if len(decoded) == size and any(decoded) else None


MAX_INTERNED_CHARS: Final = 40


def decode_attributes(raw: Json, names: AttributeNames) -> dict[str, Json]:
    """Decode the attributes that agentci reads, by name.

    Args:
        raw: OTLP's list of keys and values, where the last value of a key wins and
            ``REPEATED_ATTRIBUTE`` names one with two values, or a (nested) object, which is
            flattened to dotted names.
        names: the attributes to decode; others are skipped.
    """
    if isinstance(raw, list):
        found: dict[str, Json] = {}
        is_read = names.has
        for entry in raw:
            if not isinstance(entry, dict):
                continue
            name, value = entry.get("key"), entry.get("value")
            if isinstance(name, str) and is_read(name) and isinstance(value, dict):
                text = value.get("stringValue")
                if isinstance(text, str):
                    decoded: Json = intern_short_text(text)
                elif (kind := _find_value_type(value)) is not None:
                    decoded = _DECODERS[kind](value[kind], 0)
                else:
                    continue
                if name in found and found[name] != decoded:
                    found[semconv.REPEATED_ATTRIBUTE] = name
                found[intern_short_text(name)] = decoded
        return found
    return dict(_flatten_attributes(raw, names, "", 0)) if isinstance(raw, dict) else {}


def decode_any_value(raw: Json, depth: int = 0) -> Json:
    """Decode an OTLP AnyValue; None if it is empty or nested too deeply."""
    if depth > json_input.MAX_DEPTH or not isinstance(raw, dict):
        return None
    kind = _find_value_type(raw)
    return None if kind is None else _DECODERS[kind](raw[kind], depth)


def intern_short_text(value: str) -> str:
    """Return the same text, interned if it is short and so likely repeated."""
    return sys.intern(value) if len(value) <= MAX_INTERNED_CHARS else value


def _flatten_attributes(
    raw: Mapping[str, Json], names: AttributeNames, prefix: str, depth: int
) -> Iterator[tuple[str, Json]]:
    for key, value in raw.items():
        name = prefix + key
        # Tool arguments given as an object are a value, so they are not flattened.
        if isinstance(value, dict) and name not in names.exact and depth < json_input.MAX_DEPTH:
            yield from _flatten_attributes(value, names, f"{name}.", depth + 1)
        elif names.has(name):
            yield intern_short_text(name), clean_json_value(value)


def clean_json_value(value: Json) -> Json:
    """Return a plain JSON value; None if it is nested too deeply."""
    if isinstance(value, str):
        return intern_short_text(value)
    return value if is_shallow(value, json_input.MAX_DEPTH) else None


def _find_value_type(raw: Mapping[str, Json]) -> str | None:
    for kind in _DECODERS:
        if raw.get(kind) is not None:
            return kind
    return None


def _decode_string(raw: Json, _: int) -> Json:
    return raw if isinstance(raw, str) else str(raw)


def _decode_array(raw: Json, depth: int) -> Json:
    values = raw.get("values") if isinstance(raw, dict) else None
    return [decode_any_value(value, depth + 1) for value in json_input.iterate_objects(values)]


def _decode_object(raw: Json, depth: int) -> Json:
    values = raw.get("values") if isinstance(raw, dict) else None
    return {
        key: decode_any_value(entry.get("value"), depth + 1)
        for entry in json_input.iterate_objects(values)
        if isinstance(key := entry.get("key"), str)
    }


# In order of precedence. Bytes stay base64: no rule reads them, and JSON has no bytes.
_DECODERS: Final[Mapping[str, Callable[[Json, int], Json]]] = {
    "stringValue": _decode_string,
    "boolValue": lambda raw, _: bool(raw),
    "intValue": lambda raw, _: json_input.parse_int64(raw) or 0,
    "doubleValue": lambda raw, _: json_input.parse_finite_float(raw),
    "bytesValue": _decode_string,
    "arrayValue": _decode_array,
    "kvlistValue": _decode_object,
}


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers below are seconds, milliseconds and microseconds since 1970 of years before 5000.
_UNITS: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))


def parse_timestamp(value: Json) -> int:
    """Return the nanoseconds since 1970; 0 if it is not a point in time.

    Args:
        value: an ISO 8601 text, by default in UTC, or a number of seconds, milliseconds,
            microseconds or nanoseconds.
    """
    if isinstance(value, str) and not value.isdigit():
        return _parse_text(value)
    number = parse_int64(value) or 0
    return number * next((factor for limit, factor in _UNITS if number < limit), 1)


def _parse_text(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        passed = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    except ValueError:
        return 0
    return passed // timedelta(microseconds=1) * 1000


name: Final = "otlp-json"

_SNAKE_CASE_EXPORT_KEYS: Final = frozenset({"resource_spans", "resource_logs"})
_EXPORT_KEYS: Final = (
    frozenset({"resourceSpans", "resourceLogs", "batches"}) | _SNAKE_CASE_EXPORT_KEYS
)
_ERROR_STATUS_CODES: Final = (2, "2", "STATUS_CODE_ERROR")


def recognises(document: Json) -> bool:
    """Return whether the document is an export, a span or a list of spans."""
    return _is_export(document) or is_span(document) or _is_list_of_spans(document)


def read(document: Json, names: ReadAttributes) -> Iterator[spans.TelemetryRecord]:
    """Read the spans and log records of one document."""
    if _is_export(document):
        yield from _read_export(document, names)
    elif is_span(document):
        yield read_span(document, spans.NO_ATTRIBUTES, spans.NO_ATTRIBUTES, names)
    elif _is_list_of_spans(document):
        for raw in iterate_objects(document):
            yield read_span(raw, spans.NO_ATTRIBUTES, spans.NO_ATTRIBUTES, names)
    else:
        raise DocumentFormatError("neither an OTLP export (`resourceSpans`, `batches`) nor a span")


def _is_export(document: Json) -> TypeGuard[JsonObject]:
    if not isinstance(document, dict):
        return False
    trace = document.get("trace")
    wrapped = isinstance(trace, dict) and ("resourceSpans" in trace or "batches" in trace)
    return wrapped or not _EXPORT_KEYS.isdisjoint(document)


def is_span(document: Json) -> TypeGuard[JsonObject]:
    """Return whether the document is a span by itself, without an export around it."""
    return isinstance(document, dict) and ("spanId" in document or "traceId" in document)


def _is_list_of_spans(document: Json) -> bool:
    return isinstance(document, list) and bool(document) and all(map(is_span, document))


def _read_export(document: JsonObject, names: ReadAttributes) -> Iterator[spans.TelemetryRecord]:
    if not _SNAKE_CASE_EXPORT_KEYS.isdisjoint(document):
        document = {_to_camel_case(key): _rename_keys(value) for key, value in document.items()}
    elif _EXPORT_KEYS.isdisjoint(document):
        document = _as_object(document.get("trace"))
    batches = document.get("resourceSpans") or document.get("batches")
    for batch in iterate_objects(batches):
        described = _as_object(batch.get("resource")).get("attributes")
        resource = decode_attributes(described, names.resource) or spans.NO_ATTRIBUTES
        for group in iterate_objects(
            batch.get("scopeSpans") or batch.get("instrumentationLibrarySpans")
        ):
            library = group.get("scope") or group.get("instrumentationLibrary")
            scope = _as_object(library)
            yield from (
                read_span(raw, resource, scope, names)
                for raw in iterate_objects(group.get("spans"))
            )
    yield from _read_log_records(document.get("resourceLogs"))


def _read_log_records(batches: Json) -> Iterator[spans.TelemetryRecord]:
    for batch in iterate_objects(batches):
        groups = batch.get("scopeLogs") or batch.get("instrumentationLibraryLogs")
        for group in iterate_objects(groups):
            for raw in iterate_objects(group.get("logRecords")):
                yield from read_log_record(raw, decode_any_value)


def read_span(
    raw: JsonObject, resource: Mapping[str, Json], scope: JsonObject, names: ReadAttributes
) -> spans.Span | spans.RejectedSpan:
    """Read a span of OTLP JSON.

    Args:
        resource: the attributes of its resource.
        scope: the name and version of its instrumentation scope.
    """
    trace_id, span_id = (
        parse_trace_id(raw.get("traceId")),
        parse_span_id(raw.get("spanId")),
    )
    if trace_id is None or span_id is None:
        return spans.RejectedSpan(
            reason=explain_rejected_ids(raw.get("traceId"), raw.get("spanId"))
        )
    found = decode_attributes(raw.get("attributes"), names.span)
    error = found.pop(semconv.ERROR_TYPE, None)
    title = raw.get("name")
    return spans.Span(
        trace_id=trace_id,
        id=span_id,
        parent_id=parse_span_id(raw.get("parentSpanId")),
        name=intern_short_text(title) if isinstance(title, str) else "",
        start=parse_int64(raw.get("startTimeUnixNano")) or 0,
        end=parse_int64(raw.get("endTimeUnixNano")) or 0,
        attributes=found or spans.NO_ATTRIBUTES,
        resource=resource,
        failed=bool(error) or _as_object(raw.get("status")).get("code") in _ERROR_STATUS_CODES,
        scope=spans.make_scope_text(scope.get("name")),
        scope_version=spans.make_scope_text(scope.get("version")),
        events=tuple(_read_events(raw.get("events"))),
    )


def _read_events(raw: Json) -> Iterator[spans.SpanEvent]:
    for event in iterate_objects(raw):
        title = event.get("name")
        if isinstance(title, str) and title in semconv.READ_EVENTS:
            yield spans.SpanEvent(
                name=title,
                time=parse_int64(event.get("timeUnixNano")) or 0,
                payload=decode_attributes(event.get("attributes"), semconv.EVENT_ATTRIBUTES),
            )


def read_log_record(
    raw: JsonObject, decode_body: Callable[[Json], Json]
) -> Iterator[spans.LogRecord]:
    """Read a log record of OTLP JSON if it has messages and belongs to a trace.

    Args:
        decode_body: decodes its body, which may have another form than in OTLP JSON.
    """
    trace_id = parse_trace_id(raw.get("traceId"))
    found = decode_attributes(raw.get("attributes"), semconv.EVENT_ATTRIBUTES)
    title = raw.get("eventName") or found.get("otel.event.name") or found.get("event.name")
    if trace_id is not None and isinstance(title, str) and title in semconv.READ_EVENTS:
        yield spans.LogRecord(
            trace_id=trace_id,
            span_id=parse_span_id(raw.get("spanId")),
            event=spans.SpanEvent(
                name=title,
                time=parse_int64(raw.get("timeUnixNano"))
                or parse_int64(raw.get("observedTimeUnixNano"))
                or 0,
                payload=found
                if title == semconv.DETAILS_EVENT
                else _make_payload(decode_body(raw.get("body"))),
            ),
        )


def _make_payload(body: Json) -> JsonObject:
    payload = parse_json_or_text(body) if isinstance(body, str) else body
    if isinstance(payload, dict):
        return payload
    return {"content": body} if isinstance(body, str) else spans.NO_ATTRIBUTES


def _as_object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else spans.NO_ATTRIBUTES


def _rename_keys(value: Json) -> Json:
    """Convert protobuf's snake_case keys to OTLP's camelCase.

    Attributes given as an object keep their keys, because users choose those names.
    """
    if isinstance(value, list):
        return [_rename_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _to_camel_case(key): inner
        if key == "attributes" and isinstance(inner, dict)
        else _rename_keys(inner)
        for key, inner in value.items()
    }


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)
