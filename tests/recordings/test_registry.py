"""Reading recorded runs: content, documents, format detection and errors."""

import gzip
import json
import math
import zlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.workspace import CHUNK_BYTES
from agentci.errors import RecordingError
from agentci.model.problem import Problem
from agentci.recordings.json_documents import MAX_RECORDING_BYTES
from agentci.recordings.registry import FORMATS, read_recording
from agentci.recordings.telemetry.stored_trace import StoredTrace, load_tree
from agentci.recordings.telemetry.trace_tree import SpanTree
from tests.recordings.telemetry.recorder import SPOOL, traces

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
    return read_recording(chunks, file="runs/run.json", spool=SPOOL, **options)


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


class TestContent:
    PACKED = gzip.compress(json.dumps(EXPORT).encode())

    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(json.dumps(EXPORT).encode("utf-8-sig"), id="byte order mark"),
            pytest.param(b" \r\n\t" + json.dumps(EXPORT).encode() + b"\n\n ", id="space around"),
            pytest.param(PACKED, id="gzip"),
            pytest.param(
                gzip.compress(json.dumps(SPAN).encode() + b"\n")
                + gzip.compress(json.dumps(OTHER).encode()),
                id="gzip in several members",
            ),
            pytest.param(
                gzip.compress(json.dumps(EXPORT).encode("utf-8-sig")), id="gzip with mark"
            ),
        ],
    )
    def test_is_understood(self, data: bytes) -> None:
        assert read(data)[0].id == "t1"

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            pytest.param(b"", "the file is empty", id="empty"),
            pytest.param(b" \n\t\r\n", "the file is empty", id="blank"),
            pytest.param(gzip.compress(b""), "the file is empty", id="empty gzip"),
            pytest.param(b"\xef\xbb\xbf", "the file is empty", id="mark alone"),
            pytest.param(
                '{"a"'.encode("utf-16"), "the file is UTF-16 or binary, not UTF-8", id="utf-16"
            ),
            pytest.param(
                '{"a"'.encode("utf-16-be"), "the file is UTF-16 or binary, not UTF-8", id="no mark"
            ),
            pytest.param(b"\x89PNG\r\n\x1a\n", "not UTF-8", id="picture"),
            pytest.param(b"\x00\x01\x02", "the file is UTF-16 or binary, not UTF-8", id="binary"),
            pytest.param(b'{"a":\n"\xe4"}', "not UTF-8", id="latin-1"),
            pytest.param(PACKED[:-10], "truncated gzip file", id="cut gzip"),
            pytest.param(PACKED + b"rubbish", "invalid gzip file", id="gzip and rubbish"),
            pytest.param(b"\x1f\x8brubbish", "invalid gzip file", id="no gzip"),
            pytest.param(b"\x1f\x8b", "truncated gzip file", id="gzip's first bytes"),
        ],
    )
    def test_is_refused(self, data: bytes, message: str) -> None:
        assert problem_of(data).message.startswith(message)

    def test_that_unpacks_to_more_than_the_limit_is_refused(self) -> None:
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        block = b" " * (16 * 1024 * 1024)
        bomb = b"".join(packer.compress(block) for _ in range(20)) + packer.flush()
        problem = problem_of(bomb)
        assert problem.message == f"the content is larger than {MAX_RECORDING_BYTES // 2**20} MiB"
        assert problem.hint is not None
        assert "split the file" in problem.hint

    @pytest.mark.parametrize("chunk_bytes", [1, 3, 7, 50])
    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(f"\ufeff \n\n{lines(SPAN, OTHER)}\n".encode(), id="one a line"),
            pytest.param(gzip.compress(lines(SPAN, OTHER).encode()), id="gzip"),
            pytest.param(json.dumps([SPAN, OTHER], indent=2).encode(), id="over many lines"),
            pytest.param(json.dumps([SPAN, OTHER]).encode() + b"\n", id="one line"),
        ],
    )
    def test_is_the_same_in_chunks_of_any_size(self, data: bytes, chunk_bytes: int) -> None:
        trees = tuple(load_tree(one, SPOOL) for one in recorded(data, chunk_bytes=chunk_bytes))
        assert [tree.id for tree in trees] == ["t1", "t2"]
        assert trees == read(data)

    def test_that_is_broken_as_a_whole_is_told_so_before_its_lines(self) -> None:
        packed = gzip.compress(f"{lines(SPAN, OTHER)}\nno JSON\n{'x' * 100_000}".encode())
        assert problem_of(packed).message.startswith("invalid JSON")
        broken_off = problem_of(packed[:-10], chunk_bytes=10)
        assert broken_off.message == "truncated gzip file"


class TestDocuments:
    @pytest.mark.parametrize(
        ("text", "traces"),
        [
            pytest.param(json.dumps(EXPORT), ["t1"], id="one"),
            pytest.param(json.dumps(EXPORT, indent=2), ["t1"], id="one over many lines"),
            pytest.param(json.dumps(EXPORT) + "\n", ["t1"], id="one and a line feed"),
            pytest.param(lines(SPAN, OTHER), ["t1", "t2"], id="one a line"),
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
    def test_in_all_forms(self, text: str, traces: list[str]) -> None:
        assert [tree.id for tree in read(text)] == traces

    def test_that_git_keeps_elsewhere_is_known(self) -> None:
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n"
        assert "check out with `lfs: true`" in str(problem_of(pointer))

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            pytest.param("hello", 1, "invalid JSON: expecting value", id="no json"),
            pytest.param(lines(SPAN) + "\nnot json\n", 2, "invalid JSON", id="second line"),
            pytest.param("\n" + lines(SPAN) + "\n\n{", 4, "invalid JSON", id="cut line"),
            pytest.param(json.dumps(EXPORT, indent=1)[:-5], 9, "invalid JSON", id="cut document"),
            pytest.param('{"a": 1,}', 1, "invalid JSON", id="trailing comma"),
            pytest.param(
                lines(SPAN) + '\n{"foo": 1}',
                2,
                "neither an OTLP export (`resourceSpans`, `batches`) nor a span",
                id="a line of another kind",
            ),
            pytest.param('{"foo": 1}', 1, "neither otlp-json nor jaeger-json", id="other json"),
            pytest.param("[]", 1, "neither otlp-json nor", id="empty list"),
            pytest.param("7", 1, "neither otlp-json nor", id="number"),
            pytest.param(json.dumps([SPAN, 7]), 1, "neither otlp-json nor", id="list of anything"),
            pytest.param("[" * 100_000, 1, "JSON nested too deeply", id="deep"),
            pytest.param(
                lines(SPAN) + "\n" + "[" * 100_000, 2, "JSON nested too deeply", id="deep line"
            ),
            pytest.param(
                "{\n" + '"a":{' * 100_000, 1, "JSON nested too deeply", id="deep document"
            ),
        ],
    )
    def test_that_cannot_be_read(self, text: str, line: int, message: str) -> None:
        problem = problem_of(text)
        assert problem.message.startswith(message)
        assert problem.place is not None
        assert problem.place.line >= line

    def test_whose_names_are_nested_too_deeply(self) -> None:
        text = '{"resource_spans": ' + "[" * 930 + "]" * 930 + "}"
        # How deep a document may be before Python gives up depends on its version.
        assert problem_of(text).message in {"JSON nested too deeply", "the file has no spans"}

    @pytest.mark.parametrize(
        ("text", "forced"),
        [
            pytest.param(json.dumps(JAEGER), "otlp-json", id="jaeger as otlp"),
            pytest.param(json.dumps(EXPORT), "jaeger-json", id="otlp as jaeger"),
            pytest.param(lines(SPAN, OTHER), "jaeger-json", id="lines as jaeger"),
            pytest.param('{"data": {}}', "jaeger-json", id="data is no list"),
            pytest.param("[]", "otlp-json", id="nothing as otlp"),
        ],
    )
    def test_of_another_format_than_the_one_asked_for(self, text: str, forced: str) -> None:
        problem = problem_of(text, trace_format=forced)
        assert problem.hint is not None
        assert "remove the trace format setting" in problem.hint

    @pytest.mark.parametrize(("text", "name"), [(EXPORT, "otlp-json"), (JAEGER, "jaeger-json")])
    def test_of_the_format_that_was_asked_for(self, text: Any, name: str) -> None:
        assert read(json.dumps(text), trace_format=name)[0].id == "t1"

    def test_of_an_unknown_format_is_the_callers_mistake(self) -> None:
        with pytest.raises(KeyError):
            read("{}", trace_format="xml")


class TestNothingInIt:
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
    def test_is_a_problem(self, text: str, message: str) -> None:
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
    def test_numbers_that_json_does_not_have_become_null(self, value: str) -> None:
        assert self.attributes(f'{{"doubleValue": {value}}}') is None
        nested = f'{{"arrayValue": {{"values": [{{"doubleValue": {value}}}]}}}}'
        assert self.attributes(nested) == [None]

    def test_numbers_with_thousands_of_digits_become_null(self) -> None:
        assert self.attributes(f'{{"stringValue": {"9" * 5000}, "intValue": "7"}}') == 7

    def test_times_that_are_no_times_are_zero(self) -> None:
        times = {"startTimeUnixNano": "9" * 5000, "endTimeUnixNano": "soon"}
        span = read(json.dumps({**SPAN, **times}))[0].spans[0]
        assert (span.start, span.end) == (0, 0)

    @pytest.mark.parametrize(
        ("written", "text"),
        [
            pytest.param(r"\ud83d\ude00", "😀", id="pair"),
            pytest.param(r"\uD83D!", "\ufffd!", id="first half"),
            pytest.param(r"\ude00\ud83d", "\ufffd\ufffd", id="wrong order"),
            pytest.param(r"\\ud83d", r"\ud83d", id="escaped backslash"),
            pytest.param(r"\\\ud83d", "\\\ufffd", id="backslash before it"),
        ],
    )
    def test_halves_of_characters_are_replaced(self, written: str, text: str) -> None:
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
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(RecordingError):
        assert read(data)


@given(JSON, st.sampled_from(["auto", *FORMATS]))
def test_any_json_is_read_or_refused(value: Any, name: str) -> None:
    survives(json.dumps(value), trace_format=name)


@given(st.lists(FIELDS, max_size=4), JSON)
def test_any_spans_are_read_or_refused(spans: list[Any], rest: Any) -> None:
    survives(json.dumps({"resourceSpans": [{"resource": rest, "scopeSpans": [{"spans": spans}]}]}))
    survives(json.dumps({"resource_spans": [{"scope_spans": [{"spans": spans, "scope": rest}]}]}))
    survives(json.dumps({"data": [{"spans": spans, "processes": rest}]}))
    survives(json.dumps(spans))
    survives(lines(*spans))


@given(st.floats())
def test_no_number_gets_through_that_json_does_not_have(value: float) -> None:
    attributes = [{"key": "gen_ai.tool.call.result", "value": {"doubleValue": value}}]
    (tree,) = read(json.dumps({**SPAN, "attributes": attributes}))
    assert tree.spans[0].attributes.get("gen_ai.tool.call.result") == (
        value if math.isfinite(value) else None
    )
