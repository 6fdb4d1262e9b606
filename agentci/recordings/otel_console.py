"""Reads what the console exporters of OpenTelemetry's SDKs print: spans as JSON, log records, too.

Python's ``ConsoleSpanExporter`` prints ``span.to_json()``, and its log exporters a similar object.
Node's prints spans with ``util.inspect``, from which ``node_inspect`` makes objects. Python's leave
out instrumentation scopes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from agentci.model.values import Json, JsonObject
from agentci.recordings import otlp
from agentci.recordings.foreign import is_metrics
from agentci.recordings.node_inspect import is_left_out
from agentci.recordings.otlp import decode_attributes, parse_timestamp
from agentci.recordings.telemetry import spans
from agentci.recordings.telemetry.json_input import iterate_objects, parse_finite_float, parse_int64
from agentci.recordings.telemetry.semconv import ReadAttributes
from agentci.recordings.trace_format import DocumentFormatError

name: Final = "otel-console"

_Reader: TypeAlias = Callable[[JsonObject, ReadAttributes], Iterator[spans.TelemetryRecord]]

_STRANDS: Final = "strands-agents"
_HEX_PREFIX: Final = "0x"
_NODE_ERROR: Final = 2
_PAIR: Final = 2


def recognises(document: Json) -> bool:
    """Return whether the document is a span or a log record of a console exporter."""
    return isinstance(document, dict) and _find_reader(document) is not None


def read(document: Json, names: ReadAttributes) -> Iterator[spans.TelemetryRecord]:
    """Read the span or log record of one document; what the program printed itself is skipped."""
    fields = _as_object(document)
    if (reader := _find_reader(fields)) is not None:
        yield from reader(fields, names)
    elif otlp.recognises(document):
        raise DocumentFormatError("OTLP JSON among the spans of a console exporter")
    elif not (is_metrics(document) or "descriptor" in fields):
        yield spans.SkippedInput(what="other JSON values")


def _find_reader(document: JsonObject) -> _Reader | None:
    return next((read_one for matches, read_one in _KINDS if matches(document)), None)


def _is_python_span(document: JsonObject) -> bool:
    context, kind = document.get("context"), document.get("kind")
    return (
        isinstance(context, dict)
        and "trace_id" in context
        and isinstance(kind, str)
        and kind.startswith("SpanKind.")
    )


def _is_python_log(document: JsonObject) -> bool:
    return "severity_number" in document and "body" in document and "trace_id" in document


def _is_node_span(document: JsonObject) -> bool:
    return {"traceId", "id", "timestamp", "duration", "kind"} <= document.keys()


def _is_node_log(document: JsonObject) -> bool:
    return {"traceId", "severityNumber", "body", "timestamp"} <= document.keys()


def _read_python_span(
    document: JsonObject, names: ReadAttributes
) -> Iterator[spans.TelemetryRecord]:
    yield _read_span(document, _convert_python_span(document), names)


def _read_python_log(document: JsonObject, _: ReadAttributes) -> Iterator[spans.TelemetryRecord]:
    yield from otlp.read_log_record(_convert_python_log(document), _keep_body)


def _read_node_span(document: JsonObject, names: ReadAttributes) -> Iterator[spans.TelemetryRecord]:
    span = _read_span(document, _convert_node_span(document), names)
    if isinstance(span, spans.Span):
        for values in (span.attributes, *(event.payload for event in span.events)):
            _check_node_values(values)
    yield span


def _read_node_log(document: JsonObject, _: ReadAttributes) -> Iterator[spans.TelemetryRecord]:
    for log in otlp.read_log_record(_convert_node_log(document), _keep_body):
        _check_node_values(log.event.payload)
        yield log


def _keep_body(body: Json) -> Json:
    return body


def _read_span(
    document: JsonObject, raw: JsonObject, names: ReadAttributes
) -> spans.Span | spans.RejectedSpan:
    described = _as_object(document.get("resource"))
    # Early versions print the attributes of the resource without a name.
    inner = described.get("attributes")
    resource = decode_attributes(inner if isinstance(inner, dict) else described, names.resource)
    scope = _as_object(
        document.get("instrumentationScope") or document.get("instrumentationLibrary")
    ) or {"name": _guess_scope(_as_object(raw.get("attributes")))}
    return otlp.read_span(raw, resource or spans.NO_ATTRIBUTES, scope, names)


def _guess_scope(attributes: JsonObject) -> str:
    """Return the scope of instrumentations whose spans are read differently; "" for others."""
    if _STRANDS in (attributes.get("gen_ai.system"), attributes.get("gen_ai.provider.name")):
        return "strands.telemetry.tracer"
    if not any(key.startswith("logfire.") for key in attributes):
        return ""
    is_agents_sdk = "agent_trace_id" in attributes or (
        "logfire.msg_template" in attributes and "request_data" not in attributes
    )
    return "logfire.openai_agents" if is_agents_sdk else "logfire.console"


def _check_node_values(values: Mapping[str, Json]) -> None:
    """Check that no value that is read was left out.

    Raises:
        DocumentFormatError: if one was.
    """
    for key, value in values.items():
        if is_left_out(value):
            raise DocumentFormatError(
                f"Node's console exporter left out a part of `{key}`",
                hint="export with OTLP instead (@opentelemetry/exporter-trace-otlp-http)",
            )
        if isinstance(value, dict):
            _check_node_values(value)


def _convert_python_span(document: JsonObject) -> JsonObject:
    """Convert the span to OTLP JSON."""
    context = _as_object(document.get("context"))
    status = _as_object(document.get("status")).get("status_code")
    return {
        "traceId": _strip_prefix(context.get("trace_id")),
        "spanId": _strip_prefix(context.get("span_id")),
        "parentSpanId": _strip_prefix(document.get("parent_id")),
        "name": document.get("name"),
        "startTimeUnixNano": parse_timestamp(document.get("start_time")),
        "endTimeUnixNano": parse_timestamp(document.get("end_time")),
        "attributes": document.get("attributes"),
        "status": {"code": "STATUS_CODE_ERROR" if status == "ERROR" else None},
        "events": [
            {**event, "timeUnixNano": parse_timestamp(event.get("timestamp"))}
            for event in iterate_objects(document.get("events"))
        ],
    }


def _convert_python_log(document: JsonObject) -> JsonObject:
    """Convert the log record to OTLP JSON, except for its body."""
    return {
        "traceId": _strip_prefix(document.get("trace_id")),
        "spanId": _strip_prefix(document.get("span_id")),
        "timeUnixNano": parse_timestamp(document.get("timestamp")),
        "observedTimeUnixNano": parse_timestamp(document.get("observed_timestamp")),
        "eventName": document.get("event_name"),
        "attributes": document.get("attributes"),
        "body": document.get("body"),
    }


def _convert_node_span(document: JsonObject) -> JsonObject:
    """Convert the span to OTLP JSON: version 2 names the parent's context, version 1 its id."""
    parent = _as_object(document.get("parentSpanContext")).get("spanId") or document.get("parentId")
    start = (parse_int64(document.get("timestamp")) or 0) * 1000
    duration = parse_finite_float(document.get("duration")) or 0.0
    code = _as_object(document.get("status")).get("code")
    return {
        "traceId": document.get("traceId"),
        "spanId": document.get("id"),
        "parentSpanId": parent,
        "name": document.get("name"),
        "startTimeUnixNano": start,
        "endTimeUnixNano": start + int(duration * 1000),
        "attributes": document.get("attributes"),
        "status": {"code": _NODE_ERROR if code == _NODE_ERROR else None},
        "events": [
            {**event, "timeUnixNano": _join_time(event.get("time"))}
            for event in iterate_objects(document.get("events"))
        ],
    }


def _convert_node_log(document: JsonObject) -> JsonObject:
    """Convert the log record to OTLP JSON, except for its body."""
    time = (parse_int64(document.get("timestamp")) or 0) * 1000
    return {**document, "timeUnixNano": time}


def _join_time(pair: Json) -> int:
    """Return the nanoseconds of a time as seconds and nanoseconds."""
    if not isinstance(pair, list) or len(pair) != _PAIR:
        return 0
    seconds, nanoseconds = (parse_int64(each) or 0 for each in pair)
    return seconds * 1_000_000_000 + nanoseconds


def _strip_prefix(identifier: Json) -> Json:
    return identifier.removeprefix(_HEX_PREFIX) if isinstance(identifier, str) else identifier


def _as_object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else spans.NO_ATTRIBUTES


_KINDS: Final[tuple[tuple[Callable[[JsonObject], bool], _Reader], ...]] = (
    (_is_python_span, _read_python_span),
    (_is_python_log, _read_python_log),
    (_is_node_span, _read_node_span),
    (_is_node_log, _read_node_log),
)
