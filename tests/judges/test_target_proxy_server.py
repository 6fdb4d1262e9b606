"""The HTTP server of the target proxy: recorded exchanges, and misbehaving clients."""

import http.client
import json
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.judges.target_proxy import MAX_BODY_BYTES, MAX_CONNECTIONS, ProxyTarget, serve_target
from agentci.model.judges import JudgePrompt, ModelResponse

TOKEN = "f" * 64
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
INFO = f"GET /info HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()


def recorded(name: str) -> Any:
    return json.loads((Path(__file__).parent / "target_proxy" / name).read_text())


def echo(question: JudgePrompt) -> ModelResponse:
    return ModelResponse(text=f"{question.system}{question.user}", ending="complete")


def target(ask: Callable[[JudgePrompt], ModelResponse] = echo, max_calls: int = 500) -> ProxyTarget:
    return ProxyTarget(ask, name="default", token=TOKEN, max_calls=max_calls)


@pytest.fixture
def port() -> Iterator[int]:
    with serve_target(target(), max_seconds=0.5) as port:
        yield port


def call(
    port: int, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body, {**AUTHORIZED, **headers})
    response = connection.getresponse()
    content = response.read()
    return response.status, json.loads(content) if content else None


def said(port: int, sent: bytes) -> bytes:
    """The whole response to ``sent``."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_responses_equal_those_of_agentv() -> None:
    texts = ['{"score": 0.75', None, "again"]

    def ask(_: JudgePrompt) -> ModelResponse:
        text = texts.pop(0)
        if text is None:
            raise EvaluatorError("it is down")
        return ModelResponse(text=text, ending="complete")

    with serve_target(target(ask, max_calls=3)) as port:
        for each in recorded("exchange.json"):
            token = "wrong" if each["status"] == 401 else f"Bearer {TOKEN}"
            body = _sent(each["request_body"])
            status, received = call(port, each["method"], each["path"], body, Authorization=token)
            assert (status, _alike(received)) == (each["status"], _alike(each["response_body"]))
    assert texts == []


def _sent(body: Any) -> bytes | None:
    """A recorded request body, with the name of our only target."""
    if body is None or body == "not json":
        return body and b"not json"
    return json.dumps(body).replace('"target": "rec"', '"target": "default"').encode()


def _alike(content: Any) -> Any:
    """The comparable part of a response: no target names, model output or failure reasons."""
    match content:
        case {"targetName": name, "maxCalls": most, "callCount": calls}:
            return name, most, calls
        case {"outputMessages": [{"role": role, "content": said}], "rawText": text}:
            return role, said == text
        case {"error": str(why)}:
            is_free = why.startswith(("JSON Parse error", "cp: ", "it is down", "the body is"))
            return "error" if is_free else why.partition("Available")[0]
        case _:
            return content


def test_sdk_requests_are_answered(port: int) -> None:
    received = []
    for each in recorded("sdk_requests.json"):
        headers = {**each["h"], "Authorization": f"Bearer {TOKEN}"}
        body = each["b"].replace('"T"', '"default"').encode()
        headers.pop("Content-Length", None)
        received.append(call(port, each["m"], each["p"], body or None, **headers))
    assert [status for status, _ in received] == [200, 200, 200]
    assert received[1][1]["rawText"] == "sq"
    assert [each["rawText"] for each in received[2][1]["responses"]] == ["a", "zb"]


def test_responses_have_cors_headers(port: int) -> None:
    for path in (b"OPTIONS /invoke", b"GET /info", b"GET /nope"):
        lines = (
            said(port, path + INFO[len(b"GET /info") :]).partition(b"\r\n\r\n")[0].split(b"\r\n")
        )
        assert b"Access-Control-Allow-Origin: *" in lines
        assert b"Access-Control-Allow-Methods: GET, POST, OPTIONS" in lines
        assert b"Access-Control-Allow-Headers: Content-Type, Authorization" in lines


def test_head_response_has_no_body(port: int) -> None:
    head, _, body = said(port, b"HEAD" + INFO[len(b"GET") :]).partition(b"\r\n\r\n")
    assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 404 Not Found", b"")


def test_unicode_and_lone_surrogates_round_trip(port: int) -> None:
    for question in ("Größe 😀", "\ud800"):
        received = call(port, "POST", "/invoke", json.dumps({"question": question}).encode())
        assert received[1]["rawText"] == question
    assert call(port, "POST", "/invoke", '{"question": "é"}'.encode("latin-1"))[0] == 500


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\r\n\r\n", b"400"),
        (b"GET /info\r\n\r\n", b"400"),
        (b"\x16\x03\x01 \xff\xff \x00\r\n\r\n", b"401"),
        (b"GET /info HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"400"),
        (b"GET /info HTTP/1.1\r\nA: " + b"b" * 100_000, b"431"),
        (b"POST /invoke HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST /invoke HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", b"413"),
        (b"POST /invoke HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
    ],
)
def test_malformed_request_gets_error_status(port: int, sent: bytes, status: bytes) -> None:
    head, _, body = said(port, sent).partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == status
    assert json.loads(body).keys() == {"error"}
    assert call(port, "GET", "/info")[0] == 200


def test_too_large_body_is_rejected_during_upload(port: int) -> None:
    status, received = call(port, "POST", "/invoke", b" " * (MAX_BODY_BYTES + 1))
    assert (status, received) == (413, {"error": "the body is larger than 10 MiB"})


def test_expect_continue_is_answered(port: int) -> None:
    body = b'{"question": "Q"}'
    head = f"POST /invoke HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nExpect: 100-continue\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_concurrent_requests_are_answered(port: int) -> None:
    def ask(number: int) -> str:
        text = call(port, "POST", "/invoke", json.dumps({"question": str(number)}).encode())[1]
        return str(text["rawText"])

    with ThreadPoolExecutor(64) as pool:
        assert list(pool.map(ask, range(200))) == [str(number) for number in range(200)]


def test_max_calls_holds_for_concurrent_requests() -> None:
    asked: list[JudgePrompt] = []

    def ask(question: JudgePrompt) -> ModelResponse:
        asked.append(question)
        time.sleep(0.01)
        return echo(question)

    with serve_target(target(ask, max_calls=10)) as port, ThreadPoolExecutor(32) as pool:
        received = list(
            pool.map(lambda _: call(port, "POST", "/invoke", b'{"question": "Q"}'), range(40))
        )
    assert sorted(status for status, _ in received) == [200] * 10 + [429] * 30
    assert len(asked) == 10


def test_idle_connections_do_not_block_others(port: int) -> None:
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(3 * MAX_CONNECTIONS)]
    for each in slow[::2]:
        each.sendall(b"POST /invoke HT")
    assert call(port, "GET", "/info")[0] == 200
    for each in slow:
        each.close()


def test_slow_request_is_disconnected(port: int) -> None:
    with (  # noqa: PT012 (the call that fails varies)
        socket.create_connection(("127.0.0.1", port)) as connection,
        pytest.raises(OSError, match=r"reset|Broken"),
    ):
        while True:
            connection.sendall(b"G")
            time.sleep(0.02)


def test_server_recovers_from_exhausted_file_descriptors(port: int) -> None:
    _, most = usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as client:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
        try:
            client.connect(("127.0.0.1", port))
            client.sendall(INFO)
            time.sleep(0.2)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, usual)
        client.settimeout(10)
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_disconnected_clients_do_not_affect_others(port: int) -> None:
    for _ in range(3 * MAX_CONNECTIONS):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(INFO)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert call(port, "GET", "/info")[0] == 200


def test_server_stops_during_model_call() -> None:
    asked, answers = threading.Event(), threading.Event()

    def ask(question: JudgePrompt) -> ModelResponse:
        asked.set()
        answers.wait(600)
        return echo(question)

    with ThreadPoolExecutor() as pool:
        with serve_target(target(ask)) as port:
            received = pool.submit(call, port, "POST", "/invoke", b'{"question": "Q"}')
            assert asked.wait(10)
        with pytest.raises((http.client.HTTPException, OSError)):
            received.result()
        answers.set()
    with pytest.raises(ConnectionRefusedError):
        call(port, "GET", "/info")


def test_servers_have_separate_ports() -> None:
    with serve_target(target()) as one, serve_target(target()) as other:
        assert one != other
        assert [call(port, "GET", "/info")[0] for port in (one, other)] == [200, 200]
