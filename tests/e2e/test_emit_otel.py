"""Events that a run sends to an OTLP endpoint."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentci.reports import optional_formats
from tests.helpers.support import Ran, run_agentci
from tests.result_files.result_samples import sample_file

HEADERS = "authorization=Basic%20abc,x-team=agents"


class Collector:
    """An endpoint that keeps what it receives and answers ``status``."""

    def __init__(self) -> None:
        self.status = 200
        self.response = b"{}"
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.requests.append((self.path, headers, body))
                self.send_response(collector.status)
                self.send_header("Content-Length", str(len(collector.response)))
                self.end_headers()
                self.wfile.write(collector.response)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, daemon=True)
    thread.start()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()
    thread.join()


def run(folder: Path, *options: str, **environ: str) -> Ran:
    (folder / "out.json").write_bytes(sample_file("promptfoo/base").read_bytes())
    return run_agentci(
        ["run", "--quiet", "--results", "out.json", *options], cwd=folder, environ=environ
    )


def test_events_are_the_written_ones_with_a_time(tmp_path: Path, collector: Collector) -> None:
    without = run(tmp_path)
    ran = run(
        tmp_path,
        *("--formats=otel", "--emit-otel", collector.url),
        OTEL_EXPORTER_OTLP_HEADERS=HEADERS,
    )
    assert ran.code == without.code
    [(path, headers, body)] = collector.requests
    assert path == "/v1/logs"
    assert (headers["authorization"], headers["x-team"]) == ("Basic abc", "agents")
    records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert all(int(record["timeUnixNano"]) > 0 for record in records)
    for record in records:
        record["timeUnixNano"] = "0"
    assert body == json.loads((tmp_path / "agentci-results/evaluations.otlp.json").read_text())


def test_merge_sends_the_events(tmp_path: Path, collector: Collector) -> None:
    run(tmp_path)
    merged = run_agentci(
        [
            *("merge", "--quiet", "agentci-results", "--output-dir=merged"),
            *("--emit-otel", f"{collector.url}/otel/v1/logs"),
        ],
        cwd=tmp_path,
    )
    [(path, _, body)] = collector.requests
    assert path == "/otel/v1/logs"
    records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert len(records) == len(
        json.loads((tmp_path / "merged/results.json").read_text())["results"]
    )
    assert merged.code in (0, 1)


def test_failure_is_a_warning_and_does_not_change_the_verdict(
    tmp_path: Path, collector: Collector
) -> None:
    collector.status = 401
    without = run(tmp_path)
    ran = run(tmp_path, "--emit-otel", collector.url, OTEL_EXPORTER_OTLP_HEADERS=HEADERS)
    assert ran.code == without.code
    assert "warning: only 0 of" in ran.out
    assert "401" in ran.out
    assert "abc" not in ran.out


@pytest.mark.parametrize(
    ("response", "warning"),
    [
        (b'{"partialSuccess": {"rejectedLogRecords": "1"}}', "only 11 of 12 events were sent"),
        (b'{"partialSuccess": {}}', ""),
        (b"[" * 10_000, ""),
        (b"", ""),
    ],
)
def test_rejected_events_are_a_warning(
    tmp_path: Path, collector: Collector, response: bytes, warning: str
) -> None:
    collector.response = response
    ran = run(tmp_path, "--emit-otel", collector.url)
    assert ("warning: " in ran.out) == bool(warning)
    assert warning in ran.out


@pytest.mark.parametrize("text", ["secret-token", "na me=x", "a=%0A"])
def test_invalid_headers_are_a_warning_that_does_not_show_them(
    tmp_path: Path, collector: Collector, text: str
) -> None:
    ran = run(tmp_path, "--emit-otel", collector.url, OTEL_EXPORTER_OTLP_HEADERS=text)
    assert collector.requests == []
    assert "warning: only 0 of" in ran.out
    assert "secret-token" not in ran.out


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://collector.example:4318", "is not encrypted"),
        ("collector:4318", "is not an http(s) URL"),
    ],
)
def test_invalid_url_is_an_error_before_the_run(tmp_path: Path, url: str, message: str) -> None:
    ran = run(tmp_path, "--emit-otel", url)
    assert ran.code == 2
    [problem] = ran.problems
    assert problem.message.startswith("--emit-otel: ")
    assert message in problem.message
    assert not (tmp_path / "agentci-results").exists()


def test_offline_run_sends_nothing(tmp_path: Path, collector: Collector) -> None:
    ran = run(tmp_path, "--offline", "--emit-otel", collector.url)
    assert ran.code == 2
    assert "--offline cannot be combined with --emit-otel" in ran.problems[0].message
    assert collector.requests == []


def test_many_events_are_sent_in_several_requests(tmp_path: Path, collector: Collector) -> None:
    count = optional_formats.RECORDS_PER_REQUEST + 1
    rows = "".join(
        f'{{"id": "{n}", "metric": "m", "score": 1, "passed": true}}\n' for n in range(count)
    )
    (tmp_path / "rows.jsonl").write_text(rows)
    ran = run_agentci(
        ["run", "--quiet", "--results", "rows.jsonl", "--emit-otel", collector.url], cwd=tmp_path
    )
    assert ran.code == 0
    sizes = [
        len(body["resourceLogs"][0]["scopeLogs"][0]["logRecords"])
        for _, _, body in collector.requests
    ]
    assert sizes == [optional_formats.RECORDS_PER_REQUEST, 1]
