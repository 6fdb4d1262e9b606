"""Reads what the console exporters of OpenTelemetry's SDKs print: spans as JSON, log records, too.

Python's ``ConsoleSpanExporter`` prints ``span.to_json()``, and its log exporters a similar object.
Python's leave out instrumentation scopes. Node's prints spans with ``util.inspect``, documented at
https://nodejs.org/api/util.html#utilinspectobject-options. Its text is not meant for reading back:
deep, long and many values are left out, which ``is_left_out`` finds.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NoReturn, TypeAlias

from agentci.model.values import Json, JsonObject
from agentci.recordings import otlp
from agentci.recordings.foreign import is_metrics
from agentci.recordings.json_documents import DocumentFormatError
from agentci.recordings.otlp import decode_attributes, parse_timestamp
from agentci.recordings.telemetry import spans
from agentci.recordings.telemetry.json_input import (
    MAX_DEPTH,
    iterate_objects,
    parse_finite_float,
    parse_int64,
)
from agentci.recordings.telemetry.semconv import ReadAttributes

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
        yield spans.SkippedInput(what="other JSON value", plural="other JSON values")


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


# What begins an object of an exporter for spans, log records or metrics.
NODE_OBJECT: Final = re.compile(r"\{\s*(?:resource: [{A-Z]|traceId: '|descriptor: \{)")

_SPACE: Final = re.compile(r"\s*")
# A class name, a reference or a prototype before an object or a list.
_PREFIX: Final = re.compile(
    r"(?:<ref \*\d+> )?"
    r"(?:(?:\[[A-Za-z]+(?:\(\d+\))?: null prototype\]|[A-Za-z_$][\w$]*(?:\(\d+\))?)"
    r"(?: \[[^\]\n]*\])? )?(?=[\[{])"
)
_KEY: Final = re.compile(r"[A-Za-z_$][\w$]*|\d+|\[[^\]\n]*\]")
_TEXT: Final = re.compile(
    r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\]|\\.)*)`", re.DOTALL
)
_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|(.))", re.DOTALL
)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_CONTINUED: Final = re.compile(r"\s*\+\s*(?=['\"`])")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?n?(?![\w.])")
_WORDS: Final[dict[str, Json]] = {
    "true": True,
    "false": False,
    **dict.fromkeys(("null", "undefined", "NaN", "Infinity", "-Infinity")),
}
_WORD: Final = re.compile(r"-?[A-Za-z]+(?![\w:])")
_LEFT_OUT: Final = re.compile(
    r"\.\.\. \d+ more (?:items?|characters?)|\[(?:Circular[^\]]*|[A-Z]\w*)\]|<\d+ empty items?>"
)
_SURROGATES: Final = range(0xD800, 0xE000)
_MAX_INTEGER_DIGITS: Final = 300


# Stands in a value for what was left out. A private character: no text has it.
_LEFT_OUT_MARK: Final = "\U000f0a0e"


class NodeTextError(ValueError):
    """A text that is not an object of ``util.inspect``.

    Attributes:
        position: where in the text.
    """

    def __init__(self, message: str, position: int) -> None:
        self.position = position
        super().__init__(message)


def parse_node_object(text: str, start: int) -> tuple[Json, int]:
    """Return the object that starts at a position, and the position after it.

    Raises:
        NodeTextError: if it is cut off or nested too deeply.
    """
    parser = _InspectParser(text, start)
    return parser.read_value(0), parser.position


def is_left_out(value: Json) -> bool:
    """Return whether a parsed value is not complete."""
    if isinstance(value, list):
        return any(map(is_left_out, value))
    return isinstance(value, str) and _LEFT_OUT_MARK in value


class _InspectParser:
    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position

    def read_value(self, depth: int) -> Json:
        if depth > MAX_DEPTH:
            self._fail("nested too deeply")
        self._skip(_SPACE)
        if self._skip(_LEFT_OUT):
            return _LEFT_OUT_MARK
        self._skip(_PREFIX)
        opening = self.text[self.position : self.position + 1]
        if opening == "{":
            return self._read_object(depth)
        if opening == "[":
            return self._read_list(depth)
        return self._read_text() if opening and opening in "'\"`" else self._read_word()

    def _read_object(self, depth: int) -> Json:
        found: dict[str, Json] = {}
        self.position += 1
        while not self._takes("}"):
            key = self._read_key()
            self._expect(":")
            found[key] = self.read_value(depth + 1)
            if not self._takes(","):
                self._expect("}")
                break
        return found

    def _read_list(self, depth: int) -> Json:
        found: list[Json] = []
        self.position += 1
        while not self._takes("]"):
            found.append(self.read_value(depth + 1))
            if not self._takes(","):
                self._expect("]")
                break
        return found

    def _read_key(self) -> str:
        self._skip(_SPACE)
        if (found := _KEY.match(self.text, self.position)) is None:
            return self._read_text()
        self.position = found.end()
        return found[0]

    def _read_text(self) -> str:
        parts: list[str] = []
        while True:
            found = _TEXT.match(self.text, self.position)
            if found is None:
                self._fail("expecting a value")
            parts.append(_ESCAPE.sub(_unescape, found[found.lastindex or 1]))
            self.position = found.end()
            if not self._skip(_CONTINUED):
                break
        if self._skip(_LEFT_OUT):
            parts.append(_LEFT_OUT_MARK)
        return "".join(parts)

    def _read_word(self) -> Json:
        for pattern in (_NUMBER, _WORD):
            if (found := pattern.match(self.text, self.position)) is not None:
                break
        else:
            self._fail("expecting a value")
        word = found[0]
        if pattern is _WORD and word not in _WORDS:
            self._fail("expecting a value")
        self.position = found.end()
        return _WORDS[word] if pattern is _WORD else _parse_number(word)

    def _takes(self, sign: str) -> bool:
        self._skip(_SPACE)
        if not self.text.startswith(sign, self.position):
            return False
        self.position += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            self._fail(f"expecting `{sign}`")

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self.text, self.position)
        if found is None or found.end() == self.position:
            return False
        self.position = found.end()
        return True

    def _fail(self, message: str) -> NoReturn:
        raise NodeTextError(message, self.position)


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code is None:
        return _ESCAPED.get(found[4], found[4])
    number = int(code, 16)
    # Half of a surrogate pair is not valid text.
    return "\ufffd" if number in _SURROGATES or number > sys.maxunicode else chr(number)


def _parse_number(word: str) -> Json:
    digits = word.removesuffix("n")
    if digits.lstrip("-").isdigit():
        return int(digits) if len(digits) <= _MAX_INTEGER_DIGITS else None
    number = float(digits)
    return number if number - number == 0 else None
