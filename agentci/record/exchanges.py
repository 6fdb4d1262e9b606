"""Exchanges with a model API: what was sent and received, and what it means.

The log keeps what passes through the proxy, on disk beyond a size; threads share it.
"""

import re
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci.model.values import JsonObject
from agentci.record.apis import openai_responses, other_requests
from agentci.record.apis.model_api import (
    ModelApi,
    ModelReply,
    ModelRequest,
    get_objects,
    get_text,
    parse_body,
    read_events,
)
from agentci.record.http_server import ServerRequest
from agentci.record.message_forms import convert_reply, convert_request
from agentci.recordings.telemetry.json_input import parse_json_or_text

# No model answers with more; the rest is passed on, and the call counts as incomplete.
MAX_RESPONSE_BYTES: Final = 64 * 1024**2
_CONTENT_TYPE, _ENCODING = "content-type", "content-encoding"
_TRACE_PARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")
FIRST_ERROR: Final = 400
MAX_UNPACKED_BYTES: Final = 64 * 1024**2
_EVENT_STREAM: Final = "text/event-stream"
_FAILED: Final = "failed"
_RUNNING: Final = frozenset({"in_progress", "queued"})
_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class RawExchange(Struct, frozen=True, kw_only=True):
    """One request to a model API and its response, as received.

    Attributes:
        case: id of the case that it belongs to; empty without cases.
        trace: id of the trace that it belongs to; empty if the client named none.
        path: of the API, without the proxy's own beginning and without the query.
        status: HTTP status; 0 if there was no response.
        content_type, encoding: headers of the response.
        started, answered, ended: nanoseconds since 1970: of the request, of the first byte of the
            response and of its last.
        finished: whether the whole response arrived.
    """

    case: str
    api: ModelApi
    method: str
    path: str
    request: bytes
    response: bytes
    status: int
    content_type: str
    encoding: str
    started: int
    answered: int
    ended: int
    finished: bool
    trace: str = ""


class Exchange(Struct, frozen=True, kw_only=True):
    """A model call: the request and the reply.

    Attributes:
        body: of the request.
        response: body of the response, also of a stream; empty if it failed.
        failed: whether there is no complete reply.
        trace: as in ``RawExchange``.
        error: message of the service that answered with an error; empty if unknown.
    """

    api: ModelApi
    method: str
    path: str
    body: JsonObject
    response: JsonObject
    request: ModelRequest
    reply: ModelReply
    started: int
    answered: int
    ended: int
    status: int
    failed: bool
    error: str = ""
    trace: str = ""


def parse_exchanges(found: Iterable[RawExchange]) -> Iterator[Exchange]:
    """Parse exchanges in their order, without those whose request is not a JSON object.

    Requests may refer to items of earlier responses, which the service keeps.
    """
    items: dict[str, JsonObject] = {}
    for raw in found:
        exchange = parse_exchange(raw, items)
        if exchange is not None:
            outputs = get_objects(exchange.response, "output")
            items |= {get_text(each, "id"): each for each in outputs}
            yield exchange


def parse_exchange(raw: RawExchange, items: Mapping[str, JsonObject]) -> Exchange | None:
    """Parse an exchange; None if its request is not a JSON object.

    Args:
        items: of earlier responses, by id.
    """
    body = parse_body(raw.request) if raw.request else {}
    if body is None:
        return None
    response = _parse_response(raw)
    succeeded = 0 < raw.status < FIRST_ERROR
    reply = convert_reply(raw.api.read_reply(response)) if succeeded else ModelReply()
    asked = openai_responses.resolve_references(body, items)
    return Exchange(
        api=raw.api,
        method=raw.method,
        path=raw.path,
        body=body,
        response=response if succeeded else {},
        request=convert_request(raw.api.read_request(asked, raw.path)),
        reply=reply,
        started=raw.started,
        answered=raw.answered,
        ended=raw.ended,
        status=raw.status,
        trace=raw.trace,
        failed=not (succeeded and _is_complete(reply, response, finished=raw.finished)),
        error="" if succeeded else _find_error(response),
    )


def _parse_response(raw: RawExchange) -> JsonObject:
    """Return the response's body, also of a stream; empty if it cannot be read."""
    content = decompress(raw.response, raw.encoding)
    text = content.decode("utf-8", "replace")
    if raw.content_type.partition(";")[0].strip().lower() == _EVENT_STREAM:
        return raw.api.merge_events(read_events(text))
    value = parse_json_or_text(text)
    if isinstance(value, list):  # a stream of Gemini without `alt=sse`
        return raw.api.merge_events([each for each in value if isinstance(each, dict)])
    return value if isinstance(value, dict) else {}


def _is_complete(reply: ModelReply, response: JsonObject, *, finished: bool) -> bool:
    """Whether a reply is whole: clients may stop reading at the last event of a stream."""
    reasons = set(reply.finish_reasons)
    if _FAILED in reasons or not response:
        return False
    return finished or not reasons <= _RUNNING


def decompress(content: bytes, encoding: str) -> bytes:
    """Decompress a body as far as it arrived, up to a limit; unknown encodings stay as they are."""
    bits = _WINDOW_BITS.get(encoding.strip().lower())
    if bits is None:
        return content
    try:
        return zlib.decompressobj(bits).decompress(content, MAX_UNPACKED_BYTES)
    except zlib.error:
        return b""


def _find_error(response: JsonObject) -> str:
    error = response.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def find_trace_id(request: ServerRequest) -> str:
    """Return the trace that a request belongs to, by its ``traceparent``; empty if it names none.

    Instrumented servers pass on the one of the request that they answer.
    """
    found = _TRACE_PARENT.fullmatch(request.get_header("traceparent").strip())
    return found[1] if found and found[1].strip("0") else ""


class OpenExchange:
    """An exchange while it happens; what came in of it counts also if it never ends."""

    def __init__(self, request: ServerRequest, api: ModelApi) -> None:
        self.case = request.case
        self.trace = find_trace_id(request)
        self.method = request.method
        self.api = api
        self.path = request.path
        self.request = decompress(request.body, request.get_header("content-encoding"))
        self.started = time.time_ns()
        self.answered = self.ended = 0
        self.status = 0
        self.content_type = self.encoding = ""
        self.response = bytearray()
        self.finished = self.is_cut = False

    def begin_response(self, status: int, headers: Mapping[str, str]) -> None:
        """Note the head of the response.

        Args:
            headers: by name in lower case.
        """
        self.status = status
        self.content_type = headers.get(_CONTENT_TYPE, "")
        self.encoding = headers.get(_ENCODING, "")
        self.answered = time.time_ns()

    def add_content(self, chunk: bytes) -> None:
        """Add content of the response, before the client gets it.

        A client asks the next question as soon as it has the last byte, so the end of an exchange
        is when that byte came in, not when it was passed on.
        """
        self.is_cut = self.is_cut or len(self.response) + len(chunk) > MAX_RESPONSE_BYTES
        if not self.is_cut:
            self.response += chunk
        self.ended = time.time_ns()

    def freeze(self, request: bytes, response: bytes) -> RawExchange:
        """Return the exchange as far as it got."""
        ended = self.ended or time.time_ns()
        return RawExchange(
            case=self.case,
            trace=self.trace,
            api=self.api,
            method=self.method,
            path=self.path,
            request=request,
            response=response,
            status=self.status,
            content_type=self.content_type,
            encoding=self.encoding,
            started=self.started,
            answered=self.answered or ended,
            ended=ended,
            finished=self.finished and not self.is_cut,
        )


class ExchangeLog:
    """All exchanges of a recording, by case.

    Attributes:
        count: number of exchanges that asked a model.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spool = SpooledChunks()
        self._open: dict[str, list[OpenExchange]] = {}
        self._closed: dict[str, list[tuple[OpenExchange, int, int]]] = {}
        self.count = 0

    def begin(self, request: ServerRequest, api: ModelApi) -> OpenExchange:
        """Begin an exchange."""
        exchange = OpenExchange(request, api)
        with self._lock:
            self._open.setdefault(request.case, []).append(exchange)
            self.count += api is not other_requests
        return exchange

    def end(self, exchange: OpenExchange, *, finished: bool) -> None:
        """End an exchange, and move its content out of memory.

        Args:
            finished: whether the whole response arrived.
        """
        exchange.ended, exchange.finished = exchange.ended or time.time_ns(), finished
        with self._lock:
            numbers = (
                self._spool.append(exchange.request),
                self._spool.append(bytes(exchange.response)),
            )
            self._closed.setdefault(exchange.case, []).append((exchange, *numbers))
            self._open[exchange.case].remove(exchange)
            exchange.request, exchange.response = b"", bytearray()

    def list_exchanges(self, case: str) -> list[RawExchange]:
        """Return the exchanges of a case, also those that have not ended, sorted by start."""
        with self._lock:
            found = [
                one.freeze(self._spool.read(request), self._spool.read(response))
                for one, request, response in self._closed.get(case, ())
            ]
            found += [
                one.freeze(one.request, bytes(one.response)) for one in self._open.get(case, ())
            ]
        return sorted(found, key=lambda one: one.started)

    def list_cases(self) -> list[str]:
        """Return the ids of the cases that have exchanges, in the order of their first one."""
        with self._lock:
            return list(self._open)
