"""What `agentci record` costs: until the first byte of a model's answer, and per exported span."""

import http.client
import json
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

from agentci._util.text.secrets import Redactor
from agentci.record.exchanges import ExchangeLog
from agentci.record.http_server import ServerRequest, serve_requests
from agentci.record.otlp_receiver import JSON_TYPE, PROTOBUF, OtlpReceiver
from agentci.record.proxy import RecordingProxy
from agentci.record.redaction import RecordingRedactor
from benchmarks.recordings import make_export

CALLS: Final = 300
# The overhead of the proxy until the first byte, in the median.
MAX_SECONDS: Final = 0.005
EXPORTS: Final = 400
TRACES_PER_EXPORT: Final = 25
# Processor time, so that other work on the machine changes it little.
MIN_SPANS_PER_SECOND: Final = 10_000
_PATH: Final = "/chat/completions"
_BODY: Final = json.dumps(
    {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi " * 1000}]}
).encode()
_EVENT: Final = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'


class StreamingModel(BaseHTTPRequestHandler):
    """Answers each request with a stream of two events."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
            b"\r\n" + b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT)
        )
        self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(_EVENT), _EVENT))

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def measure() -> bool:
    """Print overhead of the proxy and speed of the receiver; return whether both are in limits."""
    print(f"{CALLS} streamed model calls, each with and without the proxy")
    direct, proxied = _measure_calls()
    overhead = proxied - direct
    print(f"  first byte {1000 * direct:6.2f} ms without, {1000 * proxied:6.2f} ms with")
    print(f"  overhead   {1000 * overhead:6.2f} ms  (at most {1000 * MAX_SECONDS:g} ms)")
    slowest = min(_measure_receiver(kind) for kind in (JSON_TYPE, PROTOBUF))
    return overhead <= MAX_SECONDS and slowest >= MIN_SPANS_PER_SECOND


def _measure_calls() -> tuple[float, float]:
    """Return the seconds until the first byte, without and with the proxy."""
    with _serve_model() as url:
        redactor = RecordingRedactor(Redactor())
        proxy = RecordingProxy({"openai": url}, ExchangeLog(), redactor, print)
        with serve_requests(proxy) as address:
            urls = (url, f"{address.make_url('', 'openai')}/v1")
            clients = [http.client.HTTPConnection(urlsplit(each).netloc) for each in urls]
            measured: tuple[list[float], list[float]] = ([], [])
            for _ in range(CALLS):  # in turn, so that both see the same load
                for each, client, seconds in zip(urls, clients, measured, strict=True):
                    seconds.append(_call(client, urlsplit(each).path + _PATH))
            for client in clients:
                client.close()
        proxy.close()
    return statistics.median(measured[0]), statistics.median(measured[1])


def _call(client: http.client.HTTPConnection, path: str) -> float:
    started = time.perf_counter()
    client.request("POST", path, _BODY, {"Content-Type": JSON_TYPE})
    response = client.getresponse()
    response.read(1)
    seconds = time.perf_counter() - started
    response.read()
    return seconds


@contextmanager
def _serve_model() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), StreamingModel) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _measure_receiver(kind: str) -> float:
    """Print and return how many spans are received in a second of processor time."""
    numbers = count()
    bodies = [
        _encode(kind, [next(numbers) for _ in range(TRACES_PER_EXPORT)]) for _ in range(EXPORTS)
    ]
    receiver = OtlpReceiver()
    started = time.process_time()
    for body in bodies:
        request = ServerRequest(
            method="POST",
            case="",
            route="otlp",
            path="/v1/traces",
            query="",
            headers={"Content-Type": kind},
            body=body,
        )
        if receiver.respond(request).status != 200:  # noqa: PLR2004 (of HTTP)
            raise AssertionError(kind)
    seconds = time.process_time() - started
    spans = 4 * TRACES_PER_EXPORT * EXPORTS
    rate = spans / seconds
    print(f"  {kind:<22} {rate:8,.0f} spans/s  (at least {MIN_SPANS_PER_SECOND:,})")
    return rate


def _encode(kind: str, numbers: list[int]) -> bytes:
    batches = [make_export(number)["resourceSpans"] for number in numbers]
    document = {"resourceSpans": [each for batch in batches for each in batch]}
    if kind == JSON_TYPE:
        return json.dumps(document).encode()
    return b"".join(_field(1, _encode_batch(each)) for each in document["resourceSpans"])


def _encode_batch(batch: Mapping[str, Any]) -> bytes:
    (group,) = batch["scopeSpans"]
    scope = _field(1, _field(1, group["scope"]["name"].encode()))
    spans = b"".join(_field(2, _encode_span(each)) for each in group["spans"])
    return _field(2, scope + spans)


def _encode_span(span: Mapping[str, Any]) -> bytes:
    parent = span.get("parentSpanId")
    return b"".join(
        (
            _field(1, bytes.fromhex(span["traceId"])),
            _field(2, bytes.fromhex(span["spanId"])),
            _field(4, bytes.fromhex(parent)) if parent else b"",
            _field(5, span["name"].encode()),
            b"\x39" + int(span["startTimeUnixNano"]).to_bytes(8, "little"),
            b"\x41" + int(span["endTimeUnixNano"]).to_bytes(8, "little"),
            *(_field(9, _encode_attribute(each)) for each in span["attributes"]),
        )
    )


def _encode_attribute(attribute: Mapping[str, Any]) -> bytes:
    value = attribute["value"]
    text = value.get("stringValue", value.get("intValue", ""))
    return _field(1, attribute["key"].encode()) + _field(2, _field(1, str(text).encode()))


def _field(number: int, content: bytes) -> bytes:
    length, head = len(content), bytearray([number << 3 | 2])
    while length > 0x7F:  # noqa: PLR2004 (seven bits a byte)
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + content
