"""The proxy passes bytes on unchanged and at once, and only for clients that know the token."""

import gzip
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from agentci._util.text.secrets import Redactor
from agentci.record.apis.registry import find_address
from agentci.record.exchanges import Exchange, ExchangeLog, parse_exchanges
from agentci.record.http_server import ServerAddress, ServerRequest, serve_requests
from agentci.record.proxy import RecordingProxy, find_upstreams, make_api_variables
from agentci.record.redaction import RecordingRedactor
from tests._util.http.servers import CERTIFICATE, Answer, script, serve

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}).encode()
CHAT = "/v1/chat/completions"


class Proxied:
    """A proxy in front of a server, and what it recorded."""

    def __init__(self, address: ServerAddress, log: ExchangeLog, stack: ExitStack) -> None:
        self.stack = stack
        self.address = address
        self.log = log

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.address.port, timeout=20)
        self.stack.callback(connection.close)
        return connection

    def path(self, rest: str, case: str = "", route: str = "openai") -> str:
        return urlsplit(self.address.make_url(case, route)).path + rest

    def exchanges(self, case: str = "") -> list[Exchange]:
        return list(parse_exchanges(self.log.list_exchanges(case)))


@contextmanager
def proxied(upstream: str) -> Iterator[Proxied]:
    log, redactor = ExchangeLog(), RecordingRedactor(Redactor())
    with (
        closing(RecordingProxy({"openai": upstream}, log, redactor, lambda _: None)) as proxy,
        serve_requests(proxy) as address,
        ExitStack() as stack,
    ):
        yield Proxied(address, log, stack)


@contextmanager
def raw_server(*answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[bytes]]]:
    """Start a server that reads the head of each request, and calls the next function."""
    listener = socket.create_server(("127.0.0.1", 0))
    received: list[bytes] = []

    def serve() -> None:
        for each in answer:
            connection, _ = listener.accept()
            with connection:
                received.append(read_request(connection))
                each(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", received
    finally:
        listener.close()


def read_request(connection: socket.socket) -> bytes:
    """Read a request; the response to an unread request could be lost."""
    with connection.makefile("rb") as file:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = file.readline()
            if not line:
                raise ConnectionError("the client closed the connection")
            head += line
        length = re.search(rb"Content-Length: (\d+)", head)
        file.read(int(length[1]) if length else 0)
    return head


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(content: str, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"X-Odd:  value\r\n\r\n"
)


def test_each_piece_of_a_stream_is_passed_on_before_the_next_comes() -> None:
    seen = threading.Event()
    pieces = [event("Hel"), event("lo", "stop") + b"data: [DO", b"NE]\n\n"]

    def answer(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD)
        for piece in pieces:
            seen.clear()
            connection.sendall(chunk(piece))
            assert seen.wait(20)
        connection.sendall(b"0\r\n\r\n")

    with raw_server(answer) as (url, _), proxied(url) as proxy:
        connection = proxy.connect()
        connection.request("POST", proxy.path(CHAT), BODY)
        response = connection.getresponse()
        assert response.getheader("X-Odd") == "value"
        for piece in pieces:
            assert response.read1() == piece
            seen.set()
        assert response.read1() == b""
        [exchange] = proxy.exchanges()
    assert (exchange.failed, exchange.reply.messages[0].content.text) == (False, "Hello")


def test_client_that_stops_reading_at_the_last_event_has_a_complete_call() -> None:
    gone = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD + chunk(event("Hi", "stop")) + chunk(b"data: [DONE]\n\n"))
        gone.wait(20)

    with raw_server(answer) as (url, _), proxied(url) as proxy:
        connection = proxy.connect()
        connection.request("POST", proxy.path(CHAT), BODY)
        response = connection.getresponse()
        while b"[DONE]" not in response.read1():
            pass
        [open_exchange] = proxy.exchanges()
        response.close()
        connection.close()
        gone.set()
    assert not open_exchange.failed
    assert open_exchange.reply.messages[0].content.text == "Hi"


def test_truncated_stream_is_passed_on_as_such_and_the_call_failed() -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD + chunk(event("Hel")))

    with raw_server(answer) as (url, _), proxied(url) as proxy:
        connection = proxy.connect()
        connection.request("POST", proxy.path(CHAT), BODY)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            connection.getresponse().read()
        [exchange] = proxy.exchanges()
    assert exchange.failed
    assert exchange.reply.messages[0].content.text == "Hel"


def test_compressed_response_is_passed_on_as_it_is_and_understood() -> None:
    content = gzip.compress(b'{"choices": [{"message": {"role": "assistant", "content": "Hi"}}]}')

    def answer(connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(content), content)
        )

    with raw_server(answer) as (url, received), proxied(url) as proxy:
        connection = proxy.connect()
        connection.request("POST", proxy.path(CHAT), BODY, {"Accept-Encoding": "gzip"})
        response = connection.getresponse()
        assert response.read() == content
        assert response.getheader("Content-Length") == str(len(content))
        [exchange] = proxy.exchanges()
    assert exchange.reply.messages[0].content.text == "Hi"
    assert b"Accept-Encoding: identity\r\n" in received[0]


@pytest.mark.parametrize("is_packed", [True, False])
def test_response_beyond_the_limit_is_passed_on_and_not_kept(
    monkeypatch: pytest.MonkeyPatch, *, is_packed: bool
) -> None:
    monkeypatch.setattr("agentci.record.exchanges.MAX_RESPONSE_BYTES", 1000)
    monkeypatch.setattr("agentci.record.exchanges.MAX_UNPACKED_BYTES", 1000)
    content = b'{"choices": [{"message": {"content": "Hi"}}]}'.rjust(5000)
    sent = gzip.compress(content) if is_packed else content
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    head += b"Content-Encoding: gzip\r\n" if is_packed else b""

    def answer(connection: socket.socket) -> None:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n%b" % (len(sent), sent))

    with raw_server(answer) as (url, _), proxied(url) as proxy:
        connection = proxy.connect()
        connection.request("POST", proxy.path(CHAT), BODY)
        assert connection.getresponse().read() == sent
        [raw] = proxy.log.list_exchanges("")
        [exchange] = proxy.exchanges()
    assert len(raw.response) <= 1000
    assert exchange.failed


def plain(connection: socket.socket) -> None:
    # The connection must not be used again: it is closed, perhaps after the next request is sent.
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")


def test_exchange_ends_before_the_client_can_ask_again() -> None:
    """Whether a turn ran while a tool call was open is decided by these times."""
    log = ExchangeLog()
    request = ServerRequest(
        method="POST", case="", route="openai", path=CHAT, query="", headers={}, body=BODY
    )
    with (
        raw_server(plain) as (url, _),
        closing(
            RecordingProxy({"openai": url}, log, RecordingRedactor(Redactor()), lambda _: None)
        ) as proxy,
    ):
        chunks = iter(proxy.respond(request).chunks)
        assert next(chunks) == b"{}"
        asked_again = time.time_ns()
        assert list(chunks) == []
    [raw] = log.list_exchanges("")
    assert raw.finished
    assert raw.started <= raw.answered <= raw.ended <= asked_again


def test_model_calls_are_counted_by_case() -> None:
    with raw_server(plain, plain, plain) as (url, _), proxied(url) as proxy:
        for case in ("a", "b", "b"):
            connection = proxy.connect()
            connection.request("POST", proxy.path(CHAT, case), BODY)
            assert connection.getresponse().read() == b"{}"
        assert [proxy.log.count_model_calls(case) for case in ("a", "b", "c", "")] == [1, 2, 0, 3]


@pytest.mark.parametrize("length", ["\u00b2", "9" * 5000, "-1", "two"])
def test_response_with_an_invalid_length_is_passed_on(length: str) -> None:
    def answer(connection: socket.socket) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode("latin-1") + b"{}")

    with raw_server(answer) as (url, _), proxied(url) as proxy:
        connection = proxy.connect()
        connection.request("POST", proxy.path(CHAT), BODY)
        assert connection.getresponse().read() == b"{}"


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"


def ask(proxy: Proxied, client: http.client.HTTPConnection) -> tuple[int, bytes]:
    client.request("POST", proxy.path(CHAT), BODY)
    response = client.getresponse()
    return response.status, response.read()


def test_informational_responses_before_the_answer_are_skipped() -> None:
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    with raw_server(lambda c: c.sendall(hints + ANSWER)) as (url, _), proxied(url) as proxy:
        assert ask(proxy, proxy.connect()) == (200, b"{}")


def test_endless_informational_responses_end_the_call() -> None:
    def answer(connection: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    with raw_server(answer) as (url, _), proxied(url) as proxy:
        status, body = ask(proxy, proxy.connect())
    assert status == 502
    assert b"the response is incomplete" in body


@contextmanager
def closing_server(answers: int) -> Iterator[tuple[str, list[int]]]:
    """Start a server that reads one more request on each connection than it answers.

    So does a server that closes an idle connection while the next request is on its way.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[int] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connections.append(0)
                with connection:
                    for _ in range(answers):
                        read_request(connection)
                        connections[-1] += 1
                        connection.sendall(ANSWER)
                    read_request(connection)
                    connections[-1] += 1

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", connections
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # ends `accept`
        listener.close()


def test_request_without_an_answer_on_a_used_connection_is_sent_again() -> None:
    with closing_server(1) as (url, connections), proxied(url) as proxy:
        client = proxy.connect()
        answers = [ask(proxy, client) for _ in range(3)]
        calls = len(proxy.exchanges())
    assert answers == [(200, b"{}")] * 3
    assert (connections[:2], calls) == ([2, 2], 3)


def test_service_with_tls_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    answer = script(Answer(body=b"{}"))
    with serve(answer, tls=True) as server, proxied(f"{server.url}/v1") as proxy:
        client = proxy.connect()
        assert [ask(proxy, client) for _ in range(2)] == [(200, b"{}")] * 2
    assert [asked.connection for asked in server.asked] == [0, 0]


def test_request_without_an_answer_on_a_new_connection_is_not_sent_again() -> None:
    with closing_server(0) as (url, connections), proxied(url) as proxy:
        status, _ = ask(proxy, proxy.connect())
    assert (status, connections) == (502, [1])


def test_chunked_request_is_joined() -> None:
    with raw_server(plain) as (url, received), proxied(url) as proxy:
        connection = proxy.connect()
        connection.request("POST", proxy.path(CHAT), iter([BODY[:9], BODY[9:]]))
        assert connection.getresponse().read() == b"{}"
        [raw] = proxy.log.list_exchanges("")
    assert raw.request == BODY
    assert b"Content-Length: %d\r\n" % len(BODY) in received[0]
    assert b"ransfer-" not in received[0]


@pytest.mark.parametrize("size", [b"-1", b"0x2", b"", b"fffffff"])
def test_invalid_or_large_chunks_are_refused(size: bytes) -> None:
    with proxied("http://127.0.0.1:9/v1") as proxy:
        connection = proxy.connect()
        connection.putrequest("POST", proxy.path(CHAT))
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        connection.send(size + b"\r\n{}")
        assert connection.getresponse().status == (413 if size == b"fffffff" else 400)
        assert proxy.log.count_model_calls("") == 0


def test_other_requests_are_passed_on_and_ask_no_model() -> None:
    with raw_server(plain, plain) as (url, received), proxied(url) as proxy:
        for method, path in (("GET", "/v1/models?limit=1"), ("POST", "/v1/embeddings")):
            connection = proxy.connect()
            connection.request(method, proxy.path(path))
            assert connection.getresponse().read() == b"{}"
        assert proxy.log.count_model_calls("") == 0
    assert [head.split(b" ")[1] for head in received] == [b"/v1/models?limit=1", b"/v1/embeddings"]


def test_case_of_the_address_keeps_exchanges_apart() -> None:
    with raw_server(plain, plain) as (url, _), proxied(url) as proxy:
        for case in ("a/ß 1", "b"):
            connection = proxy.connect()
            connection.request("POST", proxy.path(CHAT, case), BODY)
            connection.getresponse().read()
        assert proxy.log.list_cases() == ["a/ß 1", "b"]
        assert len(proxy.log.list_exchanges("b")) == 1


@pytest.mark.parametrize(
    ("path", "headers", "status", "message"),
    [
        ("/wrong/openai/v1/chat/completions", {}, 404, "not found"),
        ("", {}, 404, "not found"),
        ("TOKEN/other/v1/chat/completions", {}, 404, "not found"),
        ("TOKEN/openai/v1/responses", {"Upgrade": "websocket"}, 501, "websockets"),
        ("TOKEN/openai/v1/responses", {"Content-Length": "x"}, 400, "not a number"),
        ("TOKEN/openai/v1/responses", {"Content-Length": "99999999999"}, 413, "larger than 64 MiB"),
    ],
)
def test_invalid_requests_are_refused_with_a_reason(
    path: str, headers: dict[str, str], status: int, message: str
) -> None:
    with proxied("http://127.0.0.1:9/v1") as proxy:
        connection = proxy.connect()
        target = path.replace("TOKEN", f"/{proxy.address.token}") or "/"
        connection.putrequest("POST", target)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        assert response.status == status
        assert message in json.loads(response.read())["error"]["message"]
        assert proxy.log.count_model_calls("") == 0


def test_server_listens_on_loopback_only() -> None:
    with proxied("http://127.0.0.1:9/v1") as proxy:
        own = socket.gethostbyname(socket.gethostname())
        with socket.socket() as other:
            if not own.startswith("127."):
                assert other.connect_ex((own, proxy.address.port)) != 0
        assert proxy.address.make_url("", "x").startswith("http://127.0.0.1:")
        assert len(proxy.address.token) >= 24


def test_requests_to_the_proxy_bypass_company_proxies() -> None:
    found = make_api_variables({"NO_PROXY": "example.org"}, lambda route: f"http://p/{route}")
    assert found["NO_PROXY"] == "example.org,127.0.0.1,localhost"
    assert found["no_proxy"] == "127.0.0.1,localhost"
    assert found["OPENAI_BASE_URL"] == "http://p/openai/v1"
    assert found["ANTHROPIC_BASE_URL"] == "http://p/anthropic"


GOOGLE_VARIABLES = ("GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL")
VERTEX_HOST = "aiplatform.googleapis.com"


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/v1beta/models/m:generateContent", "generativelanguage.googleapis.com"),
        ("/v1beta1/publishers/google/models/m:generateContent", "aiplatform.googleapis.com"),
        ("/v1/projects/p/locations/global/publishers/google/models/m:g", VERTEX_HOST),
        ("/v1/projects/p/locations/us-east1/endpoints/1:g", f"us-east1-{VERTEX_HOST}"),
        ("/v1/projects/p/locations/eu/publishers/g/models/m:g", "aiplatform.eu.rep.googleapis.com"),
        (
            "/v1/projects/p/locations/evil.example#/publishers/g",
            "generativelanguage.googleapis.com",
        ),
    ],
)
def test_address_of_google_depends_on_the_path(path: str, host: str) -> None:
    upstreams = find_upstreams({})
    for route in ("gemini", "vertex"):
        assert find_address(upstreams[route], path) == f"https://{host}"
    assert find_address("http://gateway/g", path) == "http://gateway/g"


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ["GOOGLE_GEMINI_BASE_URL"]),
        ({"GOOGLE_CLOUD_PROJECT": "p"}, [*GOOGLE_VARIABLES]),
        ({"GOOGLE_GENAI_USE_VERTEXAI": "1"}, []),
        ({"GOOGLE_GENAI_USE_VERTEXAI": "1", "GOOGLE_API_KEY": "k"}, [*GOOGLE_VARIABLES]),
        ({"GOOGLE_GENAI_USE_VERTEXAI": "1", GOOGLE_VARIABLES[1]: "u"}, [GOOGLE_VARIABLES[1]]),
    ],
)
def test_variables_of_google_are_set_where_its_client_starts_with_them(
    environ: dict[str, str], names: list[str]
) -> None:
    made = make_api_variables(environ, lambda route: f"http://127.0.0.1/{route}")
    assert [name for name in made if name.startswith("GOOGLE")] == names
