"""Finds and decodes OTLP protobuf messages of traces and logs to the documents of OTLP JSON.

Wire format: https://protobuf.dev/programming-guides/encoding/. Fields and their JSON names:
opentelemetry-proto 1.x, ``trace/v1/trace.proto`` and ``logs/v1/logs.proto``. As in OTLP JSON, ids
are hexadecimal and enums are numbers; other bytes are base64, and 64-bit integers are numbers.

A file holds one message, or several, each after its length: in 4 bytes, big-endian, as the file
exporter of the OpenTelemetry Collector writes it, or as a varint, as in delimited protobuf.
"""

import binascii
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from msgspec import Struct

from agentci.model.values import Json, JsonObject
from agentci.recordings.otlp import SPAN_ID_BYTES, TRACE_ID_BYTES
from agentci.recordings.telemetry.json_input import iterate_objects

# Messages within messages, and the bytes of a number: the limits of Google's decoders.
MAX_MESSAGE_DEPTH: Final = 100
MAX_VARINT_BYTES: Final = 10

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_GROUP_START: Final = 3
_GROUP_END: Final = 4
_FIXED32: Final = 5
_FIXED_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}
_WIRE_TYPE_BITS: Final = 3
_WIRE_TYPE_MASK: Final = 0b111
_CONTINUED: Final = 0x80
_MAX_TAG: Final = 2**32
_MAX_UINT64: Final = 2**64 - 1


class ProtobufError(ValueError):
    """Bytes that are not a message of protobuf; the message says why, and at which byte."""


class _Field(Struct, frozen=True, kw_only=True):
    """How a field is read.

    Attributes:
        name: its name in OTLP JSON.
        read: converts a scalar, given as bytes or as an unsigned number; None for a message.
        message: the fields of a message, by tag.
        in_oneof: whether it replaces the other fields of its message; it is then kept if it has
            its default value, too.
    """

    name: str
    read: Callable[[Any], Json] | None
    message: "_Message"
    is_repeated: bool
    in_oneof: bool


# Fields by tag (number and wire type): a field with another wire type is unknown.
_Message: TypeAlias = dict[int, _Field]


def decode_traces(data: bytes) -> JsonObject:
    """Decode an ``ExportTraceServiceRequest`` or ``TracesData``.

    Returns:
        The same as OTLP JSON: ``{"resourceSpans": [...]}``, or ``{}`` for an empty message. Fields
        that are not known are left out.

    Raises:
        ProtobufError: if it is not such a message.
    """
    return _decode_whole(data, _MESSAGES["TracesData"])


def decode_logs(data: bytes) -> JsonObject:
    """Decode an ``ExportLogsServiceRequest`` or ``LogsData``, like ``decode_traces``.

    Raises:
        ProtobufError: if it is not such a message.
    """
    return _decode_whole(data, _MESSAGES["LogsData"])


def decode_metrics(data: bytes) -> JsonObject:
    """Decode an ``ExportMetricsServiceRequest`` or ``MetricsData``, only the names of metrics.

    Raises:
        ProtobufError: if it is not such a message.
    """
    return _decode_whole(data, _MESSAGES["MetricsData"])


def _decode_whole(data: bytes, fields: _Message) -> JsonObject:
    found: dict[str, Json] = {}
    _decode_into(found, fields, data, 0, len(data), 0)
    return found


def _decode_into(
    found: dict[str, Json], fields: _Message, data: bytes, position: int, end: int, depth: int
) -> None:
    """Decode the fields of a message, and merge them into what was decoded of it before."""
    if depth > MAX_MESSAGE_DEPTH:
        raise ProtobufError(f"byte {position}: messages are nested too deeply")
    while position < end:
        tag, start = data[position], position + 1
        if tag >= _CONTINUED:
            tag, start = _read_varint(data, position, end)
        field = fields.get(tag)
        if field is None:
            position = _skip_field(data, position, end, depth)
        elif tag & _WIRE_TYPE_MASK == _LENGTH:
            start, position = find_content(data, start, end)
            if field.read is None:
                inner = _select_message(found, field)
                _decode_into(inner, field.message, data, start, position, depth + 1)
            else:
                _set_scalar(found, field, data[start:position], field.read)
        else:
            assert field.read is not None  # noqa: S101 (messages have a length)
            number, position = _read_number(data, tag, start, end)
            _set_scalar(found, field, number, field.read)


def _read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return an unsigned number of 64 bits, and the position after it."""
    number = 0
    for index, byte in enumerate(data[position : min(position + MAX_VARINT_BYTES, end)]):
        number |= (byte & ~_CONTINUED) << 7 * index
        if byte < _CONTINUED:
            return number & _MAX_UINT64, position + index + 1
    raise ProtobufError(f"byte {position}: a number is cut off or too long")


def _read_number(data: bytes, tag: int, position: int, end: int) -> tuple[int, int]:
    """Return an unsigned number of the wire type in ``tag``, and the position after it."""
    size = _FIXED_SIZES.get(tag & _WIRE_TYPE_MASK)
    if size is None:
        return _read_varint(data, position, end)
    after = _find_end(position, size, end)
    return int.from_bytes(data[position:after], "little"), after


def find_content(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return where the content of a field starts and ends, given the position of its length.

    Raises:
        ProtobufError: if it ends after ``end``.
    """
    if position < end and data[position] < _CONTINUED:
        size, start = data[position], position + 1
    else:
        size, start = _read_varint(data, position, end)
    return start, _find_end(start, size, end)


def _find_end(position: int, size: int, end: int) -> int:
    if size > end - position:
        raise ProtobufError(f"byte {position}: a field is longer than its message")
    return position + size


def _skip_field(data: bytes, position: int, end: int, depth: int) -> int:
    """Return the position after a field that is not known; a group is skipped with its fields."""
    groups: list[int] = []
    while True:
        tag, start = _read_varint(data, position, end)
        number, kind = tag >> _WIRE_TYPE_BITS, tag & _WIRE_TYPE_MASK
        if not number or tag >= _MAX_TAG or kind > _FIXED32:
            raise ProtobufError(f"byte {position}: not a field of protobuf")
        if kind == _GROUP_START:
            groups.append(number)
            if depth + len(groups) > MAX_MESSAGE_DEPTH:
                raise ProtobufError(f"byte {position}: messages are nested too deeply")
        elif kind == _GROUP_END and groups[-1:] != [number]:
            raise ProtobufError(f"byte {position}: a group ends that did not begin")
        elif kind == _GROUP_END:
            groups.pop()
        else:
            start = _skip_value(data, tag, start, end)
        position = start
        if not groups:
            return position


def _skip_value(data: bytes, tag: int, position: int, end: int) -> int:
    if tag & _WIRE_TYPE_MASK == _LENGTH:
        return find_content(data, position, end)[1]
    return _read_number(data, tag, position, end)[1]


def _set_scalar(
    found: dict[str, Json], field: _Field, raw: bytes | int, read: Callable[[Any], Json]
) -> None:
    """Set a field; a later value replaces an earlier one."""
    value = read(raw)
    if field.is_repeated:
        _append(found, field, value)
    elif field.in_oneof:
        found.clear()
        found[field.name] = value
    elif value:
        found[field.name] = value
    else:
        found.pop(field.name, None)


def _select_message(found: dict[str, Json], field: _Field) -> dict[str, Json]:
    """Return the message that a field is decoded into: a new one, or the one of before."""
    if field.is_repeated:
        added: dict[str, Json] = {}
        _append(found, field, added)
        return added
    former = found.get(field.name)
    if field.in_oneof:
        found.clear()
    inner = former if isinstance(former, dict) else {}
    found[field.name] = inner
    return inner


def _append(found: dict[str, Json], field: _Field, value: Json) -> None:
    values: Any = found.setdefault(field.name, [])
    values.append(value)


def _read_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"a text is not UTF-8: {error.reason}") from None


def _read_double(bits: int) -> Json:
    (number,) = struct.unpack("<d", bits.to_bytes(8, "little"))
    if math.isfinite(number):
        return float(number)
    # As in the JSON of protobuf, which has no such numbers.
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _make_signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


_SCALARS: Final[dict[str, tuple[int, Callable[[Any], Json] | None]]] = {
    "string": (_LENGTH, _read_text),
    "bytes": (_LENGTH, lambda raw: binascii.b2a_base64(raw, newline=False).decode()),
    "id": (_LENGTH, bytes.hex),
    "bool": (_VARINT, bool),
    "int64": (_VARINT, lambda number: _make_signed(number, 64)),
    # Also numbers of enums.
    "int32": (_VARINT, lambda number: _make_signed(number, 32)),
    "uint32": (_VARINT, lambda number: number & 2**32 - 1),
    "fixed64": (_FIXED64, int),
    "fixed32": (_FIXED32, int),
    "double": (_FIXED64, _read_double),
}
# Number, name in JSON and type of each field; `*` marks repeated fields.
_SCHEMA: Final[dict[str, tuple[tuple[int, str, str], ...]]] = {
    "TracesData": ((1, "resourceSpans", "ResourceSpans*"),),
    "ResourceSpans": (
        (1, "resource", "Resource"),
        (2, "scopeSpans", "ScopeSpans*"),
        (3, "schemaUrl", "string"),
    ),
    "ScopeSpans": (
        (1, "scope", "InstrumentationScope"),
        (2, "spans", "Span*"),
        (3, "schemaUrl", "string"),
    ),
    "Span": (
        (1, "traceId", "id"),
        (2, "spanId", "id"),
        (3, "traceState", "string"),
        (4, "parentSpanId", "id"),
        (5, "name", "string"),
        (6, "kind", "int32"),
        (7, "startTimeUnixNano", "fixed64"),
        (8, "endTimeUnixNano", "fixed64"),
        (9, "attributes", "KeyValue*"),
        (10, "droppedAttributesCount", "uint32"),
        (11, "events", "Event*"),
        (12, "droppedEventsCount", "uint32"),
        (13, "links", "Link*"),
        (14, "droppedLinksCount", "uint32"),
        (15, "status", "Status"),
        (16, "flags", "fixed32"),
    ),
    "Event": (
        (1, "timeUnixNano", "fixed64"),
        (2, "name", "string"),
        (3, "attributes", "KeyValue*"),
        (4, "droppedAttributesCount", "uint32"),
    ),
    "Link": (
        (1, "traceId", "id"),
        (2, "spanId", "id"),
        (3, "traceState", "string"),
        (4, "attributes", "KeyValue*"),
        (5, "droppedAttributesCount", "uint32"),
        (6, "flags", "fixed32"),
    ),
    "Status": ((2, "message", "string"), (3, "code", "int32")),
    "LogsData": ((1, "resourceLogs", "ResourceLogs*"),),
    "ResourceLogs": (
        (1, "resource", "Resource"),
        (2, "scopeLogs", "ScopeLogs*"),
        (3, "schemaUrl", "string"),
    ),
    "ScopeLogs": (
        (1, "scope", "InstrumentationScope"),
        (2, "logRecords", "LogRecord*"),
        (3, "schemaUrl", "string"),
    ),
    "LogRecord": (
        (1, "timeUnixNano", "fixed64"),
        (2, "severityNumber", "int32"),
        (3, "severityText", "string"),
        (5, "body", "AnyValue"),
        (6, "attributes", "KeyValue*"),
        (7, "droppedAttributesCount", "uint32"),
        (8, "flags", "fixed32"),
        (9, "traceId", "id"),
        (10, "spanId", "id"),
        (11, "observedTimeUnixNano", "fixed64"),
        (12, "eventName", "string"),
    ),
    "MetricsData": ((1, "resourceMetrics", "ResourceMetrics*"),),
    "ResourceMetrics": ((2, "scopeMetrics", "ScopeMetrics*"),),
    "ScopeMetrics": ((2, "metrics", "Metric*"),),
    "Metric": (
        (1, "name", "string"),
        # Their values are not read.
        *((5, "gauge", "Values"), (7, "sum", "Values"), (9, "histogram", "Values")),
        *((10, "exponentialHistogram", "Values"), (11, "summary", "Values")),
    ),
    "Values": (),
    "Resource": (
        (1, "attributes", "KeyValue*"),
        (2, "droppedAttributesCount", "uint32"),
        (3, "entityRefs", "EntityRef*"),
    ),
    "EntityRef": (
        (1, "schemaUrl", "string"),
        (2, "type", "string"),
        (3, "idKeys", "string*"),
        (4, "descriptionKeys", "string*"),
    ),
    "InstrumentationScope": (
        (1, "name", "string"),
        (2, "version", "string"),
        (3, "attributes", "KeyValue*"),
        (4, "droppedAttributesCount", "uint32"),
    ),
    "KeyValue": ((1, "key", "string"), (2, "value", "AnyValue"), (3, "keyStrindex", "int32")),
    "AnyValue": (
        (1, "stringValue", "string"),
        (2, "boolValue", "bool"),
        (3, "intValue", "int64"),
        (4, "doubleValue", "double"),
        (5, "arrayValue", "ArrayValue"),
        (6, "kvlistValue", "KeyValueList"),
        (7, "bytesValue", "bytes"),
        (8, "stringValueStrindex", "int32"),
    ),
    "ArrayValue": ((1, "values", "AnyValue*"),),
    "KeyValueList": ((1, "values", "KeyValue*"),),
}


def _make_field(number: int, name: str, kind: str, message: str) -> tuple[int, _Field]:
    """Return a field with its tag."""
    kind, is_repeated = kind.removesuffix("*"), kind.endswith("*")
    wire_type, read = _SCALARS.get(kind, (_LENGTH, None))
    field = _Field(
        name=name,
        read=read,
        message={} if read is not None else _MESSAGES[kind],
        is_repeated=is_repeated,
        in_oneof=message == "AnyValue",
    )
    return number << _WIRE_TYPE_BITS | wire_type, field


_MESSAGES: Final[dict[str, _Message]] = {name: {} for name in _SCHEMA}
for _name, _fields in _SCHEMA.items():
    _MESSAGES[_name].update(_make_field(*each, _name) for each in _fields)

# The tag of field 1, which all messages have at their top, and no other field.
TOP_TAG: Final = 0x0A
_LENGTH_BYTES: Final = 4


def decode_file(data: bytes) -> Iterator[JsonObject] | None:
    """Decode the messages in a file, one document per resource; None if it does not hold messages.

    Raises:
        ProtobufError: by the iterator, if a message is none of traces, logs or metrics.
    """
    for split in (_split_whole, _split_at_fixed_lengths, _split_at_varints):
        try:
            parts = list(split(data))
        except ProtobufError:
            continue
        return (_decode_part(data[start:end]) for start, end in parts)
    return None


def _split_whole(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each resource in a message, which is a message by itself."""
    end = len(data) if end is None else end
    while start < end:
        if data[start] != TOP_TAG:
            raise ProtobufError(f"byte {start}: not the start of a resource")
        _, after = find_content(data, start + 1, end)
        yield start, after
        start = after


def _split_at_fixed_lengths(data: bytes) -> Iterator[tuple[int, int]]:
    position = 0
    while position < len(data):
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(data[position:start], "big")
        if position > len(data):
            raise ProtobufError(f"byte {start}: a message is cut off")
        yield from _split_whole(data, start, position)


def _split_at_varints(data: bytes) -> Iterator[tuple[int, int]]:
    position = 0
    while position < len(data):
        start, position = find_content(data, position, len(data))
        yield from _split_whole(data, start, position)


def _decode_part(part: bytes) -> JsonObject:
    """Decode a message of traces, logs or metrics, whichever it is."""
    for decode, group, items, is_record in _SIGNALS:
        try:
            document = decode(part)
        except ProtobufError:
            continue
        if any(map(is_record, _list_records(document, group, items))):
            return document
    return decode_traces(part)


def _list_records(document: JsonObject, group: str, items: str) -> Iterator[JsonObject]:
    for resources in document.values():
        for resource in iterate_objects(resources):
            for scope in iterate_objects(resource.get(group)):
                yield from iterate_objects(scope.get(items))


def _is_span(record: JsonObject) -> bool:
    return (
        "startTimeUnixNano" in record
        or "endTimeUnixNano" in record
        or (
            _has_size(record.get("traceId"), TRACE_ID_BYTES)
            and _has_size(record.get("spanId"), SPAN_ID_BYTES)
        )
    )


def _has_size(identifier: Json, size: int) -> bool:
    return isinstance(identifier, str) and len(identifier) == 2 * size


def _is_log_record(record: JsonObject) -> bool:
    return "timeUnixNano" in record or "observedTimeUnixNano" in record


def _is_metric(record: JsonObject) -> bool:
    title = record.get("name")
    return isinstance(title, str) and title.isprintable() and len(record) > 1


# How to decode each signal, where its records are, and how they differ from those of others.
_SIGNALS: Final[
    tuple[
        tuple[Callable[[bytes], JsonObject], str, str, Callable[[JsonObject], bool]],
        ...,
    ]
] = (
    (decode_traces, "scopeSpans", "spans", _is_span),
    (decode_logs, "scopeLogs", "logRecords", _is_log_record),
    (decode_metrics, "scopeMetrics", "metrics", _is_metric),
)
