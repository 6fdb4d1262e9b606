"""OTLP protobuf is decoded as Google's decoder decodes it, to the documents of OTLP JSON."""

import base64
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError, Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

from agentci.model.values import JsonObject
from agentci.recordings import otlp
from agentci.recordings.otlp_protobuf import (
    MAX_MESSAGE_DEPTH,
    ProtobufError,
    decode_logs,
    decode_traces,
)
from agentci.recordings.telemetry.conventions.registry import READ_ATTRIBUTES

FRAMEWORKS = Path(__file__).parent / "frameworks"
IDS = ("traceId", "spanId", "parentSpanId")
INT64 = ("timeUnixNano", "observedTimeUnixNano", "startTimeUnixNano", "endTimeUnixNano", "intValue")

Decode = Callable[[bytes], JsonObject]
KINDS: tuple[tuple[Decode, type[Message]], ...] = (
    (decode_traces, TracesData),
    (decode_traces, ExportTraceServiceRequest),
    (decode_logs, LogsData),
    (decode_logs, ExportLogsServiceRequest),
)


def describe(message: Message) -> Any:
    """What Google's library says about a message, in the form of OTLP JSON."""
    return rename(MessageToDict(message, use_integers_for_enums=True))


def rename(value: Any) -> Any:
    if isinstance(value, list):
        return [rename(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(inner).hex()
        if key in IDS
        else int(inner)
        if key in INT64
        else rename(inner)
        for key, inner in value.items()
    }


def make_request(document: Any) -> Message:
    """The request that an exporter would send instead of a document of OTLP JSON."""
    kind = ExportLogsServiceRequest if "resourceLogs" in document else ExportTraceServiceRequest
    return ParseDict(encode_ids(document), kind(), ignore_unknown_fields=True)


def encode_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [encode_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(inner)).decode() if key in IDS else encode_ids(inner)
        for key, inner in value.items()
    }


def name_recording(path: Path) -> str:
    return f"{path.parent.name}-{path.name[:-9]}"


@pytest.mark.parametrize("path", sorted(FRAMEWORKS.glob("*/*.gz")), ids=name_recording)
def test_request_of_real_framework_equals_its_json(path: Path) -> None:
    documents = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    for document in documents:
        request = make_request(document)
        decode = decode_logs if "resourceLogs" in document else decode_traces
        decoded = decode(request.SerializeToString())
        assert decoded == describe(request)
        found, expected = otlp.read(decoded, READ_ATTRIBUTES), otlp.read(document, READ_ATTRIBUTES)
        assert list(found) == list(expected)


def wrap_value(value: AnyValue) -> tuple[bytes, Callable[[JsonObject], Any]]:
    """A request with one attribute, and how to find its value."""
    span = Span(attributes=[KeyValue(key="k", value=value)])
    request = TracesData(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])])

    def find(document: Any) -> Any:
        spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
        return spans[0]["attributes"][0]["value"]

    return request.SerializeToString(), find


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(AnyValue(string_value=""), {"stringValue": ""}, id="empty text"),
        pytest.param(AnyValue(string_value="é\0"), {"stringValue": "é\0"}, id="text"),
        pytest.param(AnyValue(bool_value=False), {"boolValue": False}, id="false"),
        pytest.param(AnyValue(bool_value=True), {"boolValue": True}, id="true"),
        pytest.param(AnyValue(int_value=0), {"intValue": 0}, id="zero"),
        pytest.param(AnyValue(int_value=-1), {"intValue": -1}, id="negative"),
        pytest.param(AnyValue(int_value=-(2**63)), {"intValue": -(2**63)}, id="smallest"),
        pytest.param(AnyValue(int_value=2**63 - 1), {"intValue": 2**63 - 1}, id="largest"),
        pytest.param(AnyValue(double_value=0.1), {"doubleValue": 0.1}, id="double"),
        pytest.param(AnyValue(double_value=math.nan), {"doubleValue": "NaN"}, id="nan"),
        pytest.param(AnyValue(double_value=math.inf), {"doubleValue": "Infinity"}, id="inf"),
        pytest.param(AnyValue(double_value=-math.inf), {"doubleValue": "-Infinity"}, id="-inf"),
        pytest.param(AnyValue(bytes_value=b"\0\xff"), {"bytesValue": "AP8="}, id="bytes"),
        pytest.param(AnyValue(array_value=ArrayValue()), {"arrayValue": {}}, id="empty list"),
        pytest.param(AnyValue(string_value_strindex=3), {"stringValueStrindex": 3}, id="index"),
        pytest.param(AnyValue(), {}, id="no value"),
    ],
)
def test_value_keeps_its_type(value: AnyValue, expected: Any) -> None:
    data, find = wrap_value(value)
    assert find(decode_traces(data)) == expected == find(describe(TracesData.FromString(data)))


LOG = LogsData(
    resource_logs=[
        ResourceLogs(scope_logs=[ScopeLogs(log_records=[LogRecord(event_name="e", flags=7)])])
    ]
)


def test_log_record_is_decoded() -> None:
    assert decode_logs(LOG.SerializeToString()) == {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [{"eventName": "e", "flags": 7}]}]}]
    }


@pytest.mark.parametrize(("decode", "kind"), KINDS)
def test_empty_message_is_an_empty_document(decode: Decode, kind: type[Message]) -> None:
    assert decode(kind().SerializeToString()) == {}


def field(number: int, content: bytes | int) -> bytes:
    """A field, with its content as a text or message, or as a number."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def in_span(content: bytes) -> bytes:
    return field(1, field(2, field(2, content)))


def nest(depth: int) -> bytes:
    """An attribute with as many messages around an empty one as the decoder counts."""
    inner = b""
    for _ in range(depth):
        inner = field(1, field(5, inner))
    return in_span(field(9, field(2, field(5, inner))))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x80", id="cut number"),
        pytest.param(b"\x0a\x80", id="cut length"),
        pytest.param(b"\x0a\x01", id="length beyond the end"),
        pytest.param(b"\x0a" + varint(2**63), id="huge length"),
        pytest.param(b"\x0a" + b"\xff" * 11, id="endless number"),
        pytest.param(b"\x00", id="field 0"),
        pytest.param(b"\x0e", id="wire type 6"),
        pytest.param(b"\x0f", id="wire type 7"),
        pytest.param(varint(2**32 | 8), id="number of a field beyond 32 bits"),
        pytest.param(b"\x0c", id="group that ends before it begins"),
        pytest.param(b"\x13\x1c", id="group that ends as another"),
        pytest.param(b"\x13\x08\x01", id="group that does not end"),
        pytest.param(b"\x13" * 200 + b"\x14" * 200, id="deep groups"),
        pytest.param(in_span(b"\x39\0\0\0\0"), id="cut fixed64"),
        pytest.param(in_span(b"\x85\x01\0\0"), id="cut fixed32"),
        pytest.param(in_span(field(5, b"\xff")), id="name that is not UTF-8"),
        pytest.param(in_span(field(5, b"\xed\xa0\x80")), id="name with a surrogate"),
        pytest.param(nest(MAX_MESSAGE_DEPTH), id="deep values"),
    ],
)
def test_invalid_message_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        TracesData.FromString(data)
    with pytest.raises(ProtobufError):
        decode_traces(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(field(2, b"x") + field(3, 1) + b"\x25abcd" + b"\x29abcdefgh", id="unknown"),
        pytest.param(b"\x13\x1b\x08\x01\x1c\x14", id="unknown groups"),
        pytest.param(field(1, 5), id="known number with another type"),
        pytest.param(b"\x8a\x80\x00\x80\x00", id="numbers with useless bytes"),
        pytest.param(field(1, field(1, field(2, 1)) + field(1, field(2, 2))), id="merged messages"),
        pytest.param(in_span(field(5, b"a") + field(5, b"b")), id="last text wins"),
        pytest.param(in_span(field(5, b"a") + field(5, b"")), id="default replaces a value"),
        pytest.param(in_span(field(10, 2**32) + field(6, 2**32 + 3)), id="numbers cut to 32 bits"),
        pytest.param(in_span(field(6, 2**64 - 1)), id="negative enum"),
        pytest.param(in_span(field(9, field(2, field(2, 2**40)))), id="any number is true"),
        pytest.param(
            in_span(field(9, field(2, field(1, b"a") + field(3, 1)))), id="last value wins"
        ),
        pytest.param(
            in_span(field(9, field(2, field(5, field(1, field(3, 1))) * 2))), id="merged lists"
        ),
        pytest.param(
            in_span(field(9, field(2, field(5, field(1, b"")) + field(3, 1) + field(5, b"")))),
            id="list that another value replaced",
        ),
        pytest.param(nest(40), id="nested values"),
        pytest.param(nest(47), id="deepest values"),
    ],
)
def test_unusual_message_is_decoded_as_by_google(data: bytes) -> None:
    assert decode_traces(data) == describe(TracesData.FromString(data))


def compare(data: bytes, decode: Decode, kind: type[Message]) -> None:
    try:
        expected = kind.FromString(data)
    except DecodeError:
        with pytest.raises(ProtobufError):
            decode(data)
    else:
        assert decode(data) == describe(expected)


SMALL = wrap_value(AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=-5)])))[0]
SEEDS = (SMALL, in_span(bytes(range(1, 120))), nest(3), LOG.SerializeToString())


@given(
    seed=st.sampled_from(SEEDS),
    changes=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4),
    kind=st.sampled_from(KINDS),
)
def test_changed_message_is_decoded_as_by_google(
    seed: bytes, changes: list[tuple[int, int]], kind: tuple[Decode, type[Message]]
) -> None:
    data = bytearray(seed)
    for position, byte in changes:
        data[position % len(data)] = byte
    compare(bytes(data), *kind)


@given(data=st.binary(max_size=40), kind=st.sampled_from(KINDS))
def test_any_bytes_are_decoded_as_by_google(
    data: bytes, kind: tuple[Decode, type[Message]]
) -> None:
    compare(data, *kind)


SAMPLES: dict[int, str | bytes] = {
    FieldDescriptor.TYPE_STRING: "x",
    FieldDescriptor.TYPE_BYTES: b"x",
}


def make_sample(descriptor: Descriptor, kind: type[Message], seen: tuple[str, ...]) -> Message:
    """A message with a value in every field, once per type."""
    message = kind()
    for one in descriptor.fields:
        own = getattr(message, one.name)
        if one.type == FieldDescriptor.TYPE_MESSAGE:
            if one.message_type.full_name not in seen:
                inner = own.add() if one.is_repeated else own
                path = (*seen, one.message_type.full_name)
                inner.CopyFrom(make_sample(one.message_type, type(inner), path))
        elif one.containing_oneof is None:
            value = SAMPLES.get(one.type, 1)
            if one.is_repeated:
                own.append(value)
            else:
                setattr(message, one.name, value)
    return message


@pytest.mark.parametrize(("decode", "kind"), KINDS)
def test_every_field_of_the_definition_is_decoded(decode: Decode, kind: type[Message]) -> None:
    sample = make_sample(kind.DESCRIPTOR, kind, ())
    decoded = decode(sample.SerializeToString())
    assert decoded == describe(sample)
    assert decoded != {}
