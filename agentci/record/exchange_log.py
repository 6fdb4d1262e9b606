"""Keeps what passes through the proxy, on disk beyond a size; safe to share between threads."""

import re
import threading
import time
from collections.abc import Mapping
from typing import Final

from agentci._util.files import SpooledChunks
from agentci.record.apis import other_requests
from agentci.record.apis.model_api import ModelApi
from agentci.record.exchanges import RawExchange, decompress
from agentci.record.http_server import ServerRequest

# No model answers with more; the rest is passed on, and the call counts as incomplete.
MAX_RESPONSE_BYTES: Final = 64 * 1024**2
_CONTENT_TYPE, _ENCODING = "content-type", "content-encoding"


_TRACE_PARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")


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
