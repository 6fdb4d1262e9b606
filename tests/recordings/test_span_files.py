"""Files of spans that are not JSON as a whole: console output of SDKs, and OTLP protobuf.

``span_files/`` holds what real SDKs wrote to stdout, with lines of the program between.
"""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from agentci.errors import RecordingError
from agentci.model.trace import Trace
from agentci.recordings.otel_console import NodeTextError, is_left_out, parse_node_object
from agentci.recordings.registry import detect_format_name, is_recording
from tests.fuzz.targets import limited_time
from tests.recordings.span_text import print_spans
from tests.recordings.test_frameworks import FOLDER as FRAMEWORKS
from tests.recordings.test_otlp_protobuf import make_request
from tests.recordings.transcripts.transcript_files import FILES, describe_turns, read_text

FOLDER = Path(__file__).parent / "span_files"
QUESTION = "What is the weather in Paris?\nIn 'one' \"line\", please {"
SPAN = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "chat m"}


def problem_of(content: str | bytes) -> str:
    with pytest.raises(RecordingError) as caught:
        read_text(content)
    return str(caught.value.problem)


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.stem)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_stdout_of_an_agent_is_read(path: Path, pack: Callable[[bytes], bytes]) -> None:
    (trace,) = read_text(pack(path.read_bytes()))
    assert describe_turns(trace.turns) == [
        {
            "user": QUESTION,
            "tool_calls": [{"name": "get_weather", "args": {"city": "Paris"}}],
            "tool_results": ["20 C,\nsunny"],
            "final": "It is 20 C and sunny.",
        }
    ]
    assert trace.conversation == "c-1"
    assert trace.performance is not None
    assert trace.performance["tokens"] == {
        "total_prompt": 20,
        "total_output": 10,
        "total": 30,
        "per_llm_call": dict.fromkeys(("min", "median", "max", "p50", "p95", "p99"), 15.0)
        | {"count": 2},
        "cache_creation_tokens": 0,
        "cache_read_tokens": 0,
    }
    (warning,) = trace.warnings
    assert "lines of text were skipped" in warning


def describe(traces: list[Trace]) -> Any:
    return [
        (
            trace.key,
            bool(trace.not_captured),
            [
                (
                    turn.user_text,
                    [(call.name, call.args, call.id) for call in turn.tool_calls],
                    [(one.output, one.failed, one.call_index) for one in turn.tool_responses],
                    turn.final_text,
                )
                for turn in trace.turns
            ],
        )
        for trace in traces
    ]


def list_framework_files() -> list[Path]:
    return sorted(FRAMEWORKS.glob("*/*.gz"))


def load_documents(path: Path) -> list[Any]:
    return list(map(json.loads, gzip.decompress(path.read_bytes()).splitlines()))


@pytest.mark.parametrize("path", list_framework_files(), ids=lambda path: path.parent.name)
def test_console_output_and_protobuf_read_as_json(path: Path) -> None:
    documents = load_documents(path)
    expected = describe(read_text(path.read_bytes()))
    printed = "".join(map(print_spans, documents))
    assert describe(read_text(printed)) == expected
    messages = [make_request(document).SerializeToString() for document in documents]
    framed = b"".join(len(one).to_bytes(4, "big") + one for one in messages)
    assert describe(read_text(framed)) == expected


class TestConsole:
    def print_span(self, **changes: Any) -> str:
        return print_spans(
            {
                "resourceSpans": [
                    {
                        "scopeSpans": [
                            {
                                "spans": [
                                    {
                                        **SPAN,
                                        "startTimeUnixNano": 1,
                                        "endTimeUnixNano": 2,
                                        "attributes": [],
                                        **changes,
                                    }
                                ]
                            }
                        ]
                    }
                ]
            }
        )

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("{}\n", id="empty object"),
            pytest.param('{"a": 1}\n[1]\n"x"\n5 apples\n', id="JSON and text"),
            pytest.param("Traceback (most recent call last):\n  File x\n", id="traceback"),
            pytest.param("{'a': 1}\n[INFO] x\n\x1b[1mbold\x1b[0m\n", id="Python values"),
        ],
    )
    def test_what_the_program_prints_is_skipped(self, text: str) -> None:
        for content in (text + self.print_span(), self.print_span() + text):
            (trace,) = read_text(content)
            assert trace.id == SPAN["traceId"]
            assert any(" skipped" in warning for warning in trace.warnings)

    def test_one_line_that_the_program_prints_is_skipped(self) -> None:
        (trace,) = read_text("hello\n" + self.print_span())
        assert any("1 line of text was skipped" in warning for warning in trace.warnings)

    @pytest.mark.slow
    def test_many_lines_of_text_are_skipped(self) -> None:
        text = "[INFO] 2026 {'a': 1}\n5 apples\nhello\n" * 60_000
        with limited_time(30):
            (trace,) = read_text(text + self.print_span())
        assert any("180000 lines of text were skipped" in one for one in trace.warnings)

    def test_metrics_are_skipped(self) -> None:
        metrics = json.dumps({"resource_metrics": []}, indent=1)
        (trace,) = read_text(metrics + self.print_span() + metrics)
        assert not any("skipped" in warning for warning in trace.warnings)

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(lambda span: span[:-20], id="cut off"),
            pytest.param(lambda span: span + span[:40], id="second one cut off"),
            pytest.param(lambda span: span.replace('"kind"', "hello\n"), id="text within"),
            pytest.param(lambda span: "Answer: " + span, id="text before"),
            pytest.param(
                lambda span: json.dumps(json.loads(span)) + '\n{"name": "cha', id="line cut off"
            ),
        ],
    )
    def test_damaged_span_is_not_skipped(self, content: Callable[[str], str]) -> None:
        assert "invalid JSON" in problem_of(content(self.print_span()))

    @pytest.mark.parametrize(
        ("before", "after", "line"),
        [
            ("<<<<<<< HEAD\n", "", 1),
            ("", "=======\n>>>>>>> other\n", 3),
            ("{}\n<<<<<<< a\n", "", 2),
        ],
    )
    def test_merge_conflict_is_not_skipped(self, before: str, after: str, line: int) -> None:
        span = f"{json.dumps(json.loads(self.print_span()))}\n"
        assert problem_of(before + span + after) == (
            f"run.json:{line}: unresolved merge conflict (resolve it, or record again)"
        )

    def test_error_after_a_line_of_json_names_its_line(self) -> None:
        assert problem_of("{}\n\n" + self.print_span()[:-20]).startswith("run.json:22:")

    def test_otlp_among_console_spans_is_refused(self) -> None:
        problem = problem_of(self.print_span() + json.dumps({"resourceSpans": []}))
        assert "OTLP JSON among the spans of a console exporter" in problem

    def test_span_without_ids_is_rejected(self) -> None:
        assert "no usable spans" in problem_of(self.print_span(traceId="0" * 32))

    def test_early_versions_print_the_resource_without_a_name(self) -> None:
        span = json.loads(self.print_span())
        span["resource"] = {"service.name": "x", "agentevals.session_name": "s"}
        span["start_time"] = "yesterday"
        (trace,) = read_text(json.dumps(span))
        assert trace.key == "s"


def node(value: str) -> Any:
    parsed, end = parse_node_object(value, 0)
    assert end == len(value)
    return parsed


class TestNode:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("{}", {}),
            ("[]", []),
            (
                "{ a: 1, b: -2.5, c: 1e+21, d: 10n, $e: -0 }",
                {"a": 1, "b": -2.5, "c": 1e21, "d": 10, "$e": 0},
            ),
            ("{ a: true, b: false, c: null }", {"a": True, "b": False, "c": None}),
            ("{ a: NaN, b: -Infinity, c: undefined }", {"a": None, "b": None, "c": None}),
            (r"{ 'a.b': 'it\'s\n\x1B\u2028', 3: `a` }", {"a.b": "it's\n\x1b\u2028", "3": "a"}),
            ("{ a: 'x\\n' +\n    'y' }", {"a": "x\ny"}),
            (
                r"{ a: '\uD83D', b: '\u{1F600}', c: '\u{ffffff}' }",
                {"a": "\ufffd", "b": "😀", "c": "\ufffd"},
            ),
            ("[Object: null prototype] { a: [ 'b' ] }", {"a": ["b"]}),
            ("<ref *1> Resource { a: Map(0) {}, b: [ 1, 2 ] }", {"a": {}, "b": [1, 2]}),
            ("{ [Symbol(x)]: 1 }", {"[Symbol(x)]": 1}),
            ("{ a: " + "9" * 400 + " }", {"a": None}),
            ("{ a: 1e999 }", {"a": None}),
        ],
    )
    def test_value_is_parsed(self, text: str, expected: Any) -> None:
        assert node(text) == expected

    @pytest.mark.parametrize(
        "value",
        [
            "[Object]",
            "[Array]",
            "[Circular *1]",
            "'x'... 5 more characters",
            "[ 1, ... 3 more items ]",
        ],
    )
    def test_left_out_value_is_marked(self, value: str) -> None:
        assert is_left_out(node(f"{{ a: {value} }}")["a"])

    @pytest.mark.parametrize(
        "text",
        [
            "{",
            "{ a",
            "{ a: ",
            "{ a: 'x",
            "{ a: 1 b",
            "[ 1 2",
            "{ a: x }",
            "{ a: 1x }",
            "[" * 100,
            "{ : 1 }",
        ],
    )
    def test_invalid_text_is_refused(self, text: str) -> None:
        with pytest.raises(NodeTextError):
            parse_node_object(text, 0)

    def make_span(self, attributes: str, rest: str = "") -> str:
        return (
            "{\n  resource: { attributes: {} },\n  traceId: '"
            + "1" * 32
            + "',\n  name: 'chat m',\n"
            "  id: '" + "2" * 16 + "',\n  kind: 0,\n  timestamp: 1,\n  duration: 2.5,\n"
            f"  attributes: {attributes},\n  status: {{ code: 2 }},\n  events: []{rest}\n}}\n"
        )

    def test_left_out_content_is_an_error(self) -> None:
        span = self.make_span("{ 'gen_ai.input.messages': 'x'... 5 more characters }")
        problem = problem_of(span)
        assert "left out a part of `gen_ai.input.messages`" in problem
        assert "export with OTLP" in problem

    def test_left_out_value_that_is_not_read_is_no_error(self) -> None:
        (trace,) = read_text(self.make_span("{ other: 'x'... 5 more characters }"))
        assert trace.id == "1" * 32

    def test_node_span_without_ids_or_times_is_read_as_far_as_possible(self) -> None:
        span = self.make_span("{}", ", x: 1").replace("id: '" + "2" * 16, "id: '" + "0" * 16)
        assert "no usable spans" in problem_of(span)
        event = "[ { name: 'gen_ai.choice', attributes: { content: 'Hi' }, time: 5 } ]"
        (trace,) = read_text(self.make_span("{}").replace("events: []", f"events: {event}"))
        assert trace.id == "1" * 32

    def test_cut_off_span_is_an_error(self) -> None:
        problem = problem_of("Hello\n" + self.make_span("{}")[:-20])
        assert problem.startswith("run.json:11:")
        assert "output of Node's console exporter cannot be read" in problem

    def make_log(self, body: str) -> str:
        return (
            "{\n  resource: { attributes: {} },\n  timestamp: 1,\n  traceId: '" + "1" * 32 + "',\n"
            "  severityNumber: 9,\n  eventName: 'gen_ai.user.message',\n"
            f"  body: {body},\n  attributes: {{}}\n}}\n"
        )

    def test_log_record_is_read(self) -> None:
        span = self.make_span("{ 'gen_ai.operation.name': 'chat' }")
        (trace,) = read_text(span + self.make_log("{ content: 'Hi' }"))
        assert [turn.user_text for turn in trace.turns] == ["Hi"]
        assert "left out" in problem_of(span + self.make_log("{ content: { a: [Object] } }"))


BASIC = (FILES / "otlp-proto/basic/traces.binpb").read_bytes()
LOGS = LogsData(
    resource_logs=[
        ResourceLogs(
            scope_logs=[
                ScopeLogs(
                    log_records=[
                        LogRecord(observed_time_unix_nano=5, body=AnyValue(string_value="x"))
                    ]
                )
            ]
        )
    ]
).SerializeToString()
METRICS = MetricsData(
    resource_metrics=[
        ResourceMetrics(
            scope_metrics=[
                ScopeMetrics(
                    metrics=[Metric(name="calls", sum=Sum(data_points=[NumberDataPoint(as_int=5)]))]
                )
            ]
        )
    ]
).SerializeToString()


def frame(*messages: bytes) -> bytes:
    return b"".join(len(one).to_bytes(4, "big") + one for one in messages)


class TestProtobuf:
    def test_other_signals_in_the_file_are_skipped(self) -> None:
        expected = describe(read_text(BASIC))
        for parts in ((BASIC, LOGS, METRICS), (METRICS, LOGS, BASIC), (b"", BASIC)):
            assert describe(read_text(frame(*parts))) == expected

    def test_recording_is_detected(self) -> None:
        assert is_recording(BASIC)
        assert detect_format_name([BASIC], file="x") == "otlp-json"
        assert describe(read_text(BASIC, trace_format="otlp-json")) == describe(read_text(BASIC))

    def test_metrics_are_named(self) -> None:
        assert "the file is OpenTelemetry metrics; it is not read" in problem_of(frame(METRICS))

    def test_logs_without_spans_are_refused(self) -> None:
        assert "the file has no spans" in problem_of(LOGS)

    @pytest.mark.parametrize("cut", [1, 100, 2000])
    def test_cut_off_file_is_an_error(self, cut: int) -> None:
        for content in (BASIC[:-cut], frame(BASIC, BASIC)[:-cut]):
            assert "run.json:1: " in problem_of(content)

    def test_broken_message_is_an_error(self) -> None:
        broken = BASIC.replace(b"gen_ai.provider.name", b"gen_ai.\xff\xff\xffvider.name")
        assert "invalid OTLP protobuf: a text is not UTF-8" in problem_of(broken)

    @pytest.mark.parametrize("sample", sorted(FILES.glob("otlp-proto*/*/*.[bp]*"), key=str))
    def test_changed_bytes_invent_no_tool_call(self, sample: Path) -> None:
        source = random.Random(str(sample.parent))
        data = sample.read_bytes()
        data = gzip.decompress(data) if sample.suffix == ".gz" else data
        for _ in range(60):
            changed = bytearray(data)
            for _ in range(source.randrange(1, 5)):
                changed[source.randrange(len(changed))] = source.randrange(256)
            try:
                traces = read_text(bytes(changed))
            except RecordingError:
                continue
            names = [call.name for one in traces for turn in one.turns for call in turn.tool_calls]
            assert all(name.encode() in changed for name in names)


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.stem)
def test_changed_text_invents_no_tool_call(path: Path) -> None:
    source = random.Random(path.stem)
    text = path.read_text()
    for _ in range(80):
        changed = text
        for _ in range(source.randrange(1, 4)):
            start = source.randrange(len(changed))
            new = source.choice(["", "{", "'", '"', "\n", "[Object]", "null", "\\", "}\n{", "x"])
            changed = changed[:start] + new + changed[start + source.randrange(3) :]
        try:
            traces = read_text(changed)
        except RecordingError:
            continue
        names = [call.name for one in traces for turn in one.turns for call in turn.tool_calls]
        assert all(name in changed for name in names)


def test_document_of_metrics_is_refused_by_name() -> None:
    assert "OpenTelemetry metrics" in problem_of('{"resourceMetrics": []}')
    assert "OpenTelemetry metrics" in problem_of('{"resourceMetrics": []}\nprinted\n')


def test_profiles_of_a_file_of_traces_are_skipped() -> None:
    lines = [{"resourceMetrics": []}, SPAN, {"resourceProfiles": []}]
    (trace,) = read_text("\n".join(map(json.dumps, lines)))
    assert trace.id == SPAN["traceId"]


def test_protobuf_of_traces_is_the_message_of_the_specification() -> None:
    assert TracesData.FromString(BASIC).resource_spans


def test_text_without_documents_is_refused() -> None:
    assert "invalid JSON" in problem_of("hello\nworld\n")


def test_transcript_in_a_text_is_refused() -> None:
    messages = json.dumps([{"role": "user", "content": "Hi"}])
    assert "run.json:1:1: invalid JSON" in problem_of(f"Here they are:\n{messages}\n")
