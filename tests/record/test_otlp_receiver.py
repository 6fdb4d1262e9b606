"""Telemetry that agents export themselves: which is accepted, refused and kept."""

import gzip
import http.client
import json
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentci.record.http_server import ServerAddress, ServerRequest, serve_requests
from agentci.record.otlp_receiver import (
    MAX_BYTES,
    MAX_SPANS,
    TOO_MANY_SPANS,
    OtlpReceiver,
    drop_signal_variables,
    make_export_variables,
)
from agentci.record.recording_choice import EXPORTED, INJECTED, PROXY, choose_recording
from agentci.record.write_spans import CaseStamp
from examples.agents.mock_model import mock_model
from tests.helpers.support import run_agentci
from tests.record.recorded import AGENT, KEY, OUT, describe, read_traces, record

JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}


def attributes(values: dict[str, str]) -> list[Any]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


def span(id_: str, *, trace: str = "ab" * 16, answer: str = "Hello") -> Any:
    messages = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
        ),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
        ),
    }
    return {"traceId": trace, "spanId": id_, "name": "chat", "attributes": attributes(messages)}


def export(*spans: Any, scope: str = "x") -> Any:
    group = {"scope": {"name": scope}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [group]}]}


class Sender:
    def __init__(self, address: ServerAddress, receiver: OtlpReceiver) -> None:
        self.address = address
        self.receiver = receiver

    def send(
        self, body: bytes, headers: dict[str, str], *, path: str = "/v1/traces", case: str = ""
    ) -> tuple[int, bytes]:
        target = urlsplit(self.address.make_url(case, "otlp")).path + path
        with closing(http.client.HTTPConnection("127.0.0.1", self.address.port)) as connection:
            connection.request("POST", target, body, headers)
            response = connection.getresponse()
            assert response.getheader("Content-Type") == headers["Content-Type"]
            return response.status, response.read()

    def lines(self, stamp: CaseStamp) -> list[Any]:
        return [json.loads(line) for line in self.receiver.list_lines(stamp, lambda one: one)]


@pytest.fixture
def sender() -> Iterator[Sender]:
    receiver = OtlpReceiver()
    with serve_requests(receiver) as address:
        yield Sender(address, receiver)


def test_json_and_gzip_are_accepted_and_stamped_with_the_case(sender: Sender) -> None:
    plain, packed = (json.dumps(export(span(id_))).encode() for id_ in ("01" * 8, "02" * 8))
    assert sender.send(plain, JSON, case="a") == (200, b"{}")
    headers = {**JSON, "Content-Encoding": "gzip"}
    assert sender.send(gzip.compress(packed), headers, case="a") == (200, b"{}")
    stamp = CaseStamp(id="a", is_eval_case=True)
    for line in sender.lines(stamp):
        assert line["resourceSpans"][0]["resource"]["attributes"] == attributes(
            {"agentevals.session_name": "a", "agentevals.eval.case.id": "a"}
        )
    assert len(sender.lines(stamp)) == 2
    assert sender.lines(CaseStamp(id="b")) == []


def test_protobuf_is_accepted(sender: Sender) -> None:
    # ResourceSpans{ScopeSpans{Span{trace_id, span_id, name "n"}}}, written by hand.
    body = b"\x0a\x10" + b"\x01" * 16 + b"\x12\x08" + b"\x02" * 8 + b"\x2a\x01n"
    for field in (b"\x12", b"\x12", b"\x0a"):
        body = field + bytes([len(body)]) + body
    assert sender.send(body, PROTOBUF) == (200, b"")
    [line] = sender.lines(CaseStamp())
    [found] = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert (found["traceId"], found["spanId"], found["name"]) == ("01" * 16, "02" * 8, "n")


def test_repeated_span_is_kept_once_and_noise_is_dropped(sender: Sender) -> None:
    body = json.dumps(export(span("01" * 8), span("02" * 8))).encode()
    again = json.dumps(export(span("02" * 8), span("03" * 8), span("03" * 8))).encode()
    noise = json.dumps(export(span("04" * 8), scope="crewai.telemetry")).encode()
    for each in (body, again, noise):
        assert sender.send(each, JSON)[0] == 200
    kept = [
        one["spanId"]
        for line in sender.lines(CaseStamp())
        for one in line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    ]
    assert kept == ["01" * 8, "02" * 8, "03" * 8]


@pytest.mark.parametrize(
    ("body", "headers", "path", "status", "message"),
    [
        (b"[]", JSON, "/v1/traces", 400, "not an object"),
        (b"\x0a\x7f", PROTOBUF, "/v1/traces", 400, "invalid protobuf"),
        (b"x", {**JSON, "Content-Encoding": "gzip"}, "/v1/traces", 400, "invalid gzip"),
        (b"x", {**JSON, "Content-Encoding": "br"}, "/v1/logs", 415, "gzip or none"),
        (b"x", JSON, "/v1/other", 404, "/v1/traces"),
        (b" " * (MAX_BYTES + 1), JSON, "/v1/traces", 413, "larger than 20 MiB"),
        (
            gzip.compress(b" " * (MAX_BYTES + 1), compresslevel=1),
            {**PROTOBUF, "Content-Encoding": "gzip"},
            "/v1/traces",
            413,
            "larger than 20 MiB",
        ),
    ],
)
def test_invalid_exports_are_refused_with_a_status(
    body: bytes, headers: dict[str, str], path: str, status: int, message: str, sender: Sender
) -> None:
    code, content = sender.send(body, headers, path=path)
    assert code == status
    assert message.encode() in content
    if headers["Content-Type"] == JSON["Content-Type"]:
        assert json.loads(content).keys() == {"code", "message"}
    else:
        assert content[:1] == b"\x08"
    assert sender.receiver.list_cases() == []


def test_metrics_and_empty_exports_succeed_and_keep_nothing(sender: Sender) -> None:
    assert sender.send(b"", PROTOBUF) == (200, b"")
    assert sender.send(b"anything", PROTOBUF, path="/v1/metrics") == (200, b"")
    assert sender.receiver.list_cases() == []


def test_spans_without_ids_are_a_partial_success(sender: Sender) -> None:
    body = json.dumps(export(span(""), span("01" * 8))).encode()
    status, content = sender.send(body, JSON)
    assert status == 200
    assert json.loads(content)["partialSuccess"]["rejectedSpans"] == "1"
    assert len(sender.lines(CaseStamp())) == 1


def test_variables_keep_content_switches_of_the_user() -> None:
    environ = {"ENABLE_SENSITIVE_DATA": "false", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}
    found = make_export_variables(environ, "http://r")
    assert found["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://r"
    assert "ENABLE_SENSITIVE_DATA" not in found
    assert not any(name.startswith("LANGSMITH") for name in found)
    assert drop_signal_variables(environ) == {"ENABLE_SENSITIVE_DATA": "false"}


def test_more_complete_recording_is_chosen() -> None:
    one, two = (json.dumps(export(span(f"0{n}" * 8, trace=f"0{n}" * 16))) for n in (1, 2))
    empty = json.dumps(export(span("03" * 8, trace="03" * 16, answer="")))
    assert choose_recording([one]).reason == ""
    assert choose_recording([], exported=[one]).reason.startswith("exported telemetry, as no model")
    assert choose_recording([one], exported=[two]).lines == (two,)
    assert choose_recording([one], exported=[empty]).lines == (one,)
    assert choose_recording([empty], exported=[one]).lines == (one,)
    assert choose_recording([one], exported=[one, two]).lines == (one,)


def test_injected_telemetry_is_chosen_only_if_it_is_complete() -> None:
    one, two = (json.dumps(export(span(f"0{n}" * 8, trace=f"0{n}" * 16))) for n in (1, 2))
    other = json.dumps(export(span("03" * 8, trace="03" * 16, answer="Bye")))
    empty = json.dumps(export(span("04" * 8, trace="04" * 16, answer="")))
    assert choose_recording([one], injected=[two]).source == INJECTED
    assert choose_recording([empty], injected=[one]).source == INJECTED
    assert choose_recording([], injected=[one]).source == INJECTED
    differing = choose_recording([one], injected=[other])
    assert (differing.source, differing.lines) == (PROXY, (one,))
    assert differing.reason.endswith("has other arguments or answers than the proxy saw")
    assert differing.other_answer == (
        "the framework's telemetry has the answer `Bye`, not the model's `Hello`"
    )
    assert choose_recording([one], injected=[one, two]).source == PROXY
    assert choose_recording([one], injected=[empty]).reason == ""
    assert choose_recording([], exported=[one], injected=[two]).source == EXPORTED
    assert choose_recording([], exported=[empty], injected=[two]).source == INJECTED


def test_agent_with_telemetry_of_its_own_is_recorded(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        "import json, os, urllib.request\n"
        f"body = {json.dumps(export(span('01' * 8)))!r}.encode()\n"
        "url = os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] + '/v1/traces'\n"
        "request = urllib.request.Request(url, body, {'Content-Type': 'application/json'})\n"
        "urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)\n"
    )
    with mock_model() as model:
        ran = record(tmp_path, model, program=program)
    assert ran.code == 0
    assert ran.err == "note: recorded from the exported telemetry, as no model call was seen\n"
    [trace] = read_traces(tmp_path / OUT)
    assert [describe(turn) for turn in trace.turns] == [("Hi", [], "Hello")]


def test_other_answer_of_injected_telemetry_reaches_the_gate(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    sent = json.dumps(export(span("01" * 8)))
    program.write_text(
        AGENT.read_text(encoding="utf-8").replace(KEY, "")
        + "    url = os.environ['AGENTCI_RECORD_URL'] + '/v1/traces'\n"
        + f"    post(url, {sent}, {{}})\n"
    )
    with mock_model() as model:
        ran = record(tmp_path, model, "chat", "Hi", program=program)
    warning = "the framework's telemetry has the answer `Hello`, not the model's `You asked: Hi`"
    assert f"warning: {warning}\n" in ran.err
    (tmp_path / "agentci.yaml").write_text(f"traces: {OUT}\nchecks:\n- no_secrets\n")
    assert warning in " ".join(run_agentci(["run"], cwd=tmp_path).out.split())
    comment = (tmp_path / "agentci-results" / "comment.md").read_text()
    assert "telemetry has the answer" in comment


def make_request(content: Any, case: str = "") -> ServerRequest:
    return ServerRequest(
        method="POST",
        case=case,
        route="otlp",
        path="/v1/traces",
        query="",
        headers=dict(JSON),
        body=json.dumps(content).encode(),
    )


def test_too_many_spans_are_refused_and_make_the_case_incomplete() -> None:
    receiver = OtlpReceiver(max_spans=2)
    first = make_request(export(span("1"), span("2"), span("2")), case="a")
    assert receiver.respond(first).status == 200
    refused = receiver.respond(make_request(export(span("3")), case="b"))
    assert refused.status == 413
    assert TOO_MANY_SPANS.encode() in b"".join(refused.chunks)
    assert [receiver.has_refused_spans(case) for case in ("a", "b")] == [False, True]


@pytest.mark.slow
def test_agent_that_exports_too_many_spans_is_incomplete(tmp_path: Path) -> None:
    # The whole turn comes first, so that only the refused spans make the case incomplete. The
    # scope of the others is one whose spans are dropped.
    program = tmp_path / "agent.py"
    program.write_text(f"""\
import contextlib, json, os, urllib.error, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
def send(scope, spans):
    groups = [{{"scope": {{"name": scope}}, "spans": spans}}]
    body = json.dumps({{"resourceSpans": [{{"scopeSpans": groups}}]}}).encode()
    url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
    opener.open(urllib.request.Request(url, body, {{"Content-Type": "application/json"}}))
send("x", [{span("01" * 8)!r}])
for number in range({MAX_SPANS} // 50_000 + 1):
    ids = range(number * 50_000 + 1, (number + 1) * 50_000 + 1)
    with contextlib.suppress(urllib.error.HTTPError):
        send("crewai", [{{"traceId": "cd" * 16, "spanId": f"{{id_:016x}}"}} for id_ in ids])
""")
    with mock_model() as model:
        ran = record(tmp_path, model, program=program)
    assert ran.code == 3
    assert f"{TOO_MANY_SPANS}; record fewer cases at once" in ran.err


def test_received_exports_are_not_kept_in_memory() -> None:
    receiver = OtlpReceiver()
    tracemalloc.start()
    try:
        for number in range(1, 25):
            content = export(span(f"{number:016x}", answer="x" * 1024**2))
            assert receiver.respond(make_request(content)).status == 200
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 16 * 1024**2
