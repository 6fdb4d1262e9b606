"""Reading recorded runs: content, documents, format detection and errors."""

import gzip
import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.workspace import CHUNK_BYTES
from agentci.errors import RecordingError
from agentci.model.values import Problem
from agentci.recordings.json_documents import MAX_RECORDING_BYTES
from agentci.recordings.registry import FORMATS, read_recording
from agentci.recordings.telemetry.spans import SpanTree
from agentci.recordings.telemetry.stored_trace import StoredTrace, load_tree
from tests.recordings.telemetry.recorder import SPOOL, traces

NOT_KNOWN = "not a recorded run in a known format: found"
SPAN = {"traceId": "t1", "spanId": "s1", "name": "chat m"}
OTHER = {"traceId": "t2", "spanId": "s1"}
EXPORT = {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}
JAEGER = {"data": [{"spans": [{"traceID": "t1", "spanID": "s1"}]}]}


def read(data: bytes | str, **options: Any) -> tuple[SpanTree, ...]:
    return tuple(load_tree(one, SPOOL) for one in recorded(data, **options))


def recorded(
    data: bytes | str, *, chunk_bytes: int = CHUNK_BYTES, **options: Any
) -> tuple[StoredTrace, ...]:
    content = data.encode() if isinstance(data, str) else data
    chunks = (content[at : at + chunk_bytes] for at in range(0, len(content), chunk_bytes))
    found = read_recording(chunks, file="runs/run.json", spool=SPOOL, **options)
    return tuple(one for one in found if isinstance(one, StoredTrace))


def problem_of(data: bytes | str, **options: Any) -> Problem:
    with pytest.raises(RecordingError) as caught:
        read(data, **options)
    problem = caught.value.problem
    assert problem.place is not None
    assert problem.place.file == "runs/run.json"
    assert problem.hint
    return problem


def lines(*documents: Any) -> str:
    return "\n".join(map(json.dumps, documents))


def test_protobuf_without_a_message_has_no_spans() -> None:
    assert problem_of(b"\0").message == "the file has no spans"


@pytest.mark.parametrize("newline", ["\n", "\n\n"])
def test_trace_starts_at_the_line_of_its_first_span(newline: str) -> None:
    later = {**SPAN, "spanId": "s2"}
    both = {"resourceSpans": [{"scopeSpans": [{"spans": [OTHER, later]}]}]}
    text = newline.join(map(json.dumps, (EXPORT, both, EXPORT)))
    assert [(one.id, one.line) for one in recorded(text)] == [("t1", 1), ("t2", 1 + len(newline))]
    assert [tree.line for tree in read(text)] == [1, 1 + len(newline)]


class TestContent:
    PACKED = gzip.compress(json.dumps(EXPORT).encode())

    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(json.dumps(EXPORT).encode("utf-8-sig"), id="byte order mark"),
            pytest.param(
                b" \r\n\t" + json.dumps(EXPORT).encode() + b"\n\n ", id="surrounding space"
            ),
            pytest.param(PACKED, id="gzip"),
            pytest.param(
                gzip.compress(json.dumps(SPAN).encode() + b"\n")
                + gzip.compress(json.dumps(OTHER).encode()),
                id="gzip in several members",
            ),
            pytest.param(
                gzip.compress(json.dumps(EXPORT).encode("utf-8-sig")),
                id="gzip with byte order mark",
            ),
        ],
    )
    def test_supported_encoding_is_read(self, data: bytes) -> None:
        assert read(data)[0].id == "t1"

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            pytest.param(b"", "the file is empty", id="empty"),
            pytest.param(b" \n\t\r\n", "the file is empty", id="blank"),
            pytest.param(gzip.compress(b""), "the file is empty", id="empty gzip"),
            pytest.param(b"\xef\xbb\xbf", "the file is empty", id="byte order mark only"),
            pytest.param(
                '{"a"'.encode("utf-16"), "the file is UTF-16 or binary, not UTF-8", id="utf-16"
            ),
            pytest.param(
                '{"a"'.encode("utf-16-be"),
                "the file is UTF-16 or binary, not UTF-8",
                id="utf-16 without byte order mark",
            ),
            pytest.param(b"\x89PNG\r\n\x1a\n", "not UTF-8", id="picture"),
            pytest.param(b"\x00\x01\x02", "the file is UTF-16 or binary, not UTF-8", id="binary"),
            pytest.param(b'{"a":\n"\xe4"}', "not UTF-8", id="latin-1"),
            pytest.param(PACKED[:-10], "truncated gzip file", id="truncated gzip"),
            pytest.param(PACKED + b"rubbish", "invalid gzip file", id="gzip with trailing bytes"),
            pytest.param(b"\x1f\x8brubbish", "invalid gzip file", id="invalid gzip"),
            pytest.param(b"\x1f\x8b", "truncated gzip file", id="gzip header only"),
        ],
    )
    def test_unreadable_content_is_rejected(self, data: bytes, message: str) -> None:
        assert problem_of(data).message.startswith(message)

    def test_decompressed_size_limit_is_enforced(self) -> None:
        member = gzip.compress(b" " * 2**24, compresslevel=1)
        problem = problem_of(member * (MAX_RECORDING_BYTES // 2**24 + 1))
        assert problem.message == f"the content is larger than {MAX_RECORDING_BYTES // 2**20} MiB"
        assert problem.hint is not None
        assert "split the file" in problem.hint

    @pytest.mark.parametrize("chunk_bytes", [1, 3, 7, 50])
    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(f"\ufeff \n\n{lines(SPAN, OTHER)}\n".encode(), id="one per line"),
            pytest.param(gzip.compress(lines(SPAN, OTHER).encode()), id="gzip"),
            pytest.param(json.dumps([SPAN, OTHER], indent=2).encode(), id="over many lines"),
            pytest.param(json.dumps([SPAN, OTHER]).encode() + b"\n", id="one line"),
        ],
    )
    def test_result_does_not_depend_on_chunk_size(self, data: bytes, chunk_bytes: int) -> None:
        trees = tuple(load_tree(one, SPOOL) for one in recorded(data, chunk_bytes=chunk_bytes))
        assert [tree.id for tree in trees] == ["t1", "t2"]
        assert trees == read(data)

    def test_truncated_gzip_is_reported_before_invalid_json(self) -> None:
        packed = gzip.compress(f'{lines(SPAN, OTHER)}\n{{"no JSON\n{"x" * 100_000}'.encode())
        assert problem_of(packed).message.startswith("invalid JSON")
        broken_off = problem_of(packed[:-10], chunk_bytes=10)
        assert broken_off.message == "truncated gzip file"


class TestDocuments:
    @pytest.mark.parametrize(
        ("text", "traces"),
        [
            pytest.param(json.dumps(EXPORT), ["t1"], id="one"),
            pytest.param(json.dumps(EXPORT, indent=2), ["t1"], id="one over many lines"),
            pytest.param(json.dumps(EXPORT) + "\n", ["t1"], id="trailing line feed"),
            pytest.param(lines(SPAN, OTHER), ["t1", "t2"], id="one per line"),
            pytest.param(lines(EXPORT, OTHER), ["t1", "t2"], id="exports and spans mixed"),
            pytest.param(f"\n{lines(SPAN)}\n\n \n{lines(OTHER)}\n", ["t1", "t2"], id="blank lines"),
            pytest.param(lines(SPAN, OTHER).replace("\n", "\r\n"), ["t1", "t2"], id="CR LF"),
            pytest.param(
                json.dumps(EXPORT, indent=1) + "\n" + json.dumps(OTHER, indent=1),
                ["t1", "t2"],
                id="several over many lines",
            ),
            pytest.param(json.dumps([SPAN, OTHER]), ["t1", "t2"], id="list of spans"),
            pytest.param(json.dumps(JAEGER), ["t1"], id="jaeger"),
            pytest.param(json.dumps({**EXPORT, **JAEGER}), ["t1"], id="otlp before jaeger"),
        ],
    )
    def test_documents_are_read_in_every_layout(self, text: str, traces: list[str]) -> None:
        assert [tree.id for tree in read(text)] == traces

    def test_git_lfs_pointer_is_rejected(self) -> None:
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n"
        assert "check out with `lfs: true`" in str(problem_of(pointer))

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            pytest.param("hello", 1, "invalid JSON: expecting value", id="not json"),
            pytest.param(lines(SPAN) + '\n{"not json\n', 2, "invalid JSON", id="second line"),
            pytest.param("\n" + lines(SPAN) + "\n\n{", 4, "invalid JSON", id="truncated line"),
            pytest.param(
                json.dumps(EXPORT, indent=1)[:-5], 9, "invalid JSON", id="truncated document"
            ),
            pytest.param('{"a": 1,}', 1, "invalid JSON", id="trailing comma"),
            pytest.param(
                lines(SPAN) + '\n{"foo": 1}',
                2,
                "neither an OTLP export (`resourceSpans`, `batches`) nor a span",
                id="line of another format",
            ),
            pytest.param('{"foo": 1}', 1, NOT_KNOWN, id="other json"),
            pytest.param("[]", 1, NOT_KNOWN, id="empty list"),
            pytest.param("7", 1, NOT_KNOWN, id="number"),
            pytest.param(json.dumps([SPAN, 7]), 1, NOT_KNOWN, id="mixed list"),
            pytest.param("[" * 100_000, 1, "JSON nested too deeply", id="deeply nested"),
            pytest.param(
                lines(SPAN) + "\n" + "[" * 100_000,
                2,
                "JSON nested too deeply",
                id="deeply nested line",
            ),
            pytest.param(
                "{\n" + '"a":{' * 100_000, 1, "JSON nested too deeply", id="deeply nested document"
            ),
        ],
    )
    def test_invalid_document_error_names_line(self, text: str, line: int, message: str) -> None:
        problem = problem_of(text)
        assert problem.message.startswith(message)
        assert problem.place is not None
        assert problem.place.line >= line

    def test_deeply_nested_keys_are_rejected(self) -> None:
        text = '{"resource_spans": ' + "[" * 930 + "]" * 930 + "}"
        # Python's recursion limit for JSON depends on its version.
        assert problem_of(text).message in {"JSON nested too deeply", "the file has no spans"}

    @pytest.mark.parametrize(
        ("text", "forced"),
        [
            pytest.param(json.dumps(JAEGER), "otlp-json", id="jaeger as otlp"),
            pytest.param(json.dumps(EXPORT), "jaeger-json", id="otlp as jaeger"),
            pytest.param(lines(SPAN, OTHER), "jaeger-json", id="lines as jaeger"),
            pytest.param('{"data": {}}', "jaeger-json", id="data is not a list"),
            pytest.param("[]", "otlp-json", id="empty list as otlp"),
        ],
    )
    def test_wrong_forced_format_is_rejected(self, text: str, forced: str) -> None:
        problem = problem_of(text, trace_format=forced)
        assert problem.hint is not None
        assert "remove the trace format setting" in problem.hint

    @pytest.mark.parametrize(("text", "name"), [(EXPORT, "otlp-json"), (JAEGER, "jaeger-json")])
    def test_forced_format_is_read(self, text: Any, name: str) -> None:
        assert read(json.dumps(text), trace_format=name)[0].id == "t1"

    def test_unknown_format_is_a_key_error(self) -> None:
        with pytest.raises(KeyError):
            read("{}", trace_format="xml")


class TestEmptyContent:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            pytest.param('{"resourceSpans": []}', "the file has no spans", id="no spans"),
            pytest.param('{"data": []}', "the file has no spans", id="no jaeger traces"),
            pytest.param(
                '[{"spanId": "a"}, {"traceId": "b"}]',
                "the file has no usable spans: 2 spans rejected: no traceId or spanId field",
                id="no ids",
            ),
        ],
    )
    def test_file_without_spans_is_rejected(self, text: str, message: str) -> None:
        assert problem_of(text).message == message


class TestNumbersAndText:
    def attributes(self, value: str) -> Any:
        recorded = f'{{"key": "gen_ai.tool.call.result", "value": {value}}}'
        text = f'{{"traceId": "t", "spanId": "s", "attributes": [{recorded}]}}'
        return read(text)[0].spans[0].attributes.get("gen_ai.tool.call.result")

    @pytest.mark.parametrize(
        "value",
        ["NaN", "Infinity", "-Infinity", "1e999", '"NaN"', '"-inf"'],
    )
    def test_non_finite_numbers_become_null(self, value: str) -> None:
        assert self.attributes(f'{{"doubleValue": {value}}}') is None
        nested = f'{{"arrayValue": {{"values": [{{"doubleValue": {value}}}]}}}}'
        assert self.attributes(nested) == [None]

    def test_integers_with_thousands_of_digits_become_null(self) -> None:
        assert self.attributes(f'{{"stringValue": {"9" * 5000}, "intValue": "7"}}') == 7

    def test_unreadable_times_are_zero(self) -> None:
        times = {"startTimeUnixNano": "9" * 5000, "endTimeUnixNano": "soon"}
        span = read(json.dumps({**SPAN, **times}))[0].spans[0]
        assert (span.start, span.end) == (0, 0)

    @pytest.mark.parametrize(
        ("written", "text"),
        [
            pytest.param(r"\ud83d\ude00", "😀", id="pair"),
            pytest.param(r"\uD83D!", "\ufffd!", id="lone high surrogate"),
            pytest.param(r"\ude00\ud83d", "\ufffd\ufffd", id="reversed pair"),
            pytest.param(r"\\ud83d", r"\ud83d", id="escaped backslash"),
            pytest.param(r"\\\ud83d", "\\\ufffd", id="backslash before it"),
        ],
    )
    def test_lone_surrogates_are_replaced(self, written: str, text: str) -> None:
        assert self.attributes(f'{{"stringValue": "{written}"}}') == text


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(
    [
        "traceId",
        "spanId",
        "parentSpanId",
        "attributes",
        "events",
        "status",
        "name",
        "endTimeUnixNano",
        "traceID",
        "spanID",
        "tags",
        "references",
        "logs",
        "startTime",
        "processID",
        "operationName",
    ]
)
FIELDS = st.dictionaries(KEYS, JSON | st.sampled_from(["a", "b"]), max_size=8)


def survives(text: str, **options: Any) -> None:
    try:
        found = traces(recorded(text, **options), multi_turn_eval_cases=True)
    except RecordingError:
        return
    assert found
    json.dumps([trace.performance for trace in found], allow_nan=False)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_rejected(data: bytes) -> None:
    with suppress(RecordingError):
        assert read(data)


@given(JSON, st.sampled_from(["auto", *FORMATS]))
def test_arbitrary_json_is_read_or_rejected(value: Any, name: str) -> None:
    survives(json.dumps(value), trace_format=name)


@given(st.lists(FIELDS, max_size=4), JSON)
def test_arbitrary_spans_are_read_or_rejected(spans: list[Any], rest: Any) -> None:
    survives(json.dumps({"resourceSpans": [{"resource": rest, "scopeSpans": [{"spans": spans}]}]}))
    survives(json.dumps({"resource_spans": [{"scope_spans": [{"spans": spans, "scope": rest}]}]}))
    survives(json.dumps({"data": [{"spans": spans, "processes": rest}]}))
    survives(json.dumps(spans))
    survives(lines(*spans))


@given(st.floats())
def test_arbitrary_double_is_finite_or_null(value: float) -> None:
    attributes = [{"key": "gen_ai.tool.call.result", "value": {"doubleValue": value}}]
    (tree,) = read(json.dumps({**SPAN, "attributes": attributes}))
    assert tree.spans[0].attributes.get("gen_ai.tool.call.result") == (
        value if math.isfinite(value) else None
    )
