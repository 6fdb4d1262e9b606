"""Requests and files that attack the receiver, the proxy and the replay of a recording."""

import gzip
import json
import socket
from pathlib import Path

import pytest

from agentci.errors import InputError
from agentci.record.http_server import ServerAddress, serve_requests
from agentci.record.otlp_receiver import OtlpReceiver
from agentci.record.request_file import make_file_name, parse_requests, remove_other_cases
from agentci.record.write_spans import CaseStamp
from tests.helpers.support import make_services

SPAN = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a","spanId":"%b"}]}]}]}'


def send(address: ServerAddress, path: str, body: bytes, **headers: str) -> int:
    """Send a request as it is; return the status of the response."""
    named = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = [f"POST {path} HTTP/1.1", "Host: x", *(f"{k}: {v}" for k, v in named.items())]
    with socket.create_connection(("127.0.0.1", address.port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return int(connection.recv(100).split()[1])


def test_hostile_exports_are_refused_and_others_are_kept() -> None:
    receiver = OtlpReceiver()
    with serve_requests(receiver) as address:
        path = f"/{address.token}/otlp/v1/traces"
        assert send(address, "/otlp/v1/traces", SPAN % b"x") == 404
        assert send(address, "/\xe9/otlp/v1/traces", SPAN % b"x") == 404
        bomb = gzip.compress(b" " * 100_000_000)
        assert send(address, path, bomb, **{"Content-Encoding": "gzip"}) == 413
        assert send(address, path, b"[" * 1_000_000) == 400
        protobuf = {"Content-Type": "application/x-protobuf"}
        assert send(address, path, b"\x0a\xff\xff\x03" * 50_000, **protobuf) == 400
        assert send(address, path, b"\x0b" * 50_000, **protobuf) == 400
        assert send(address, path, b"", **{"Content-Length": "9" * 5000}) == 413
        assert send(address, path, b"", **{"Content-Length": "-1"}) == 400
        assert send(address, path, b'{"resourceSpans": [1, {"scopeSpans": 2}]}') == 200
        assert send(address, path, SPAN % b"good") == 200
    [line] = receiver.list_lines(CaseStamp(), lambda document: document)
    assert json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] == "good"


@pytest.mark.parametrize("case", ["../../etc/x", "a/b", "/etc/x", ".", "..", "a\n::error::x", "\0"])
def test_case_in_an_address_cannot_name_another_folder(case: str) -> None:
    name = make_file_name(case)
    assert Path(name).name == name
    assert not {"/", "\n", "\0"} & {*name}


def test_link_among_recorded_requests_is_neither_read_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"format": "agentci-requests"}')
    (tmp_path / "own.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("/dev/zero")
    workspace = make_services(tmp_path, {}).workspace
    remove_other_cases(workspace.resolve_given(tmp_path), ["new"])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.json", "own.json"]


def test_requests_that_repeat_each_other_have_a_size_limit() -> None:
    exchange = {"method": "POST", "path": "/v1/chat/completions", "response": {"id": "1"}}
    first = {**exchange, "request": {"messages": ["x" * 1_000_000]}}
    others = [{**exchange, "continues": 0, "request": {"messages": [1]}}] * 1_100
    content = {"format": "agentci-requests", "version": 1, "exchanges": [first, *others]}
    with pytest.raises(InputError, match="the requests are larger than 1024 MiB"):
        parse_requests(json.dumps(content).encode(), file="run.json")
    content["exchanges"] = [first, *others[:100]]
    assert len(parse_requests(json.dumps(content).encode(), file="run.json").requests) == 101
