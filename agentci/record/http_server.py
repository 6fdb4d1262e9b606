"""An HTTP server on the loopback interface, whose addresses begin with a secret token."""

import hmac
import json
import re
import secrets
import socket
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Protocol
from urllib.parse import quote, unquote

from msgspec import Struct

from agentci.model.values import JsonObject

HOST: Final = "127.0.0.1"
BACKLOG: Final = 128
MAX_BODY_BYTES: Final = 64 * 1024**2
MAX_CHUNK_LINE: Final = 1024
MAX_DIGITS: Final = 20
CASE_MARK: Final = "c"
_HEXADECIMAL: Final = re.compile(rb"[0-9A-Fa-f]+")


class ServerRequest(Struct, frozen=True, kw_only=True):
    """A received request.

    Attributes:
        case: id in the address; empty without one.
        route: first part of the path after token and case.
        path: what follows the route, without the query.
        headers: as sent; they hold keys, and are never stored.
    """

    method: str
    case: str
    route: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def get_header(self, name: str) -> str:
        """Return a header by its name in lower case; empty if it was not sent."""
        return next((v for k, v in self.headers.items() if k.lower() == name), "")


class ServerResponse(Struct, frozen=True, kw_only=True):
    """A response.

    Attributes:
        chunks: the body; sent as they come.
        length: of the body; None to send it in chunks.
    """

    status: int
    headers: Mapping[str, str]
    chunks: Iterable[bytes]
    length: int | None = None


class RequestHandler(Protocol):
    """Answers the requests of a server."""

    def respond(self, request: ServerRequest) -> ServerResponse:
        """Answer a request; closing the iterator of the body means that the client is gone."""


class RefusedRequestError(Exception):
    """A request that is refused, with a status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        self.status = status
        super().__init__(message)


class ServerAddress(Struct, frozen=True, kw_only=True):
    """Where the server listens."""

    port: int
    token: str

    def make_url(self, case: str, route: str) -> str:
        """Return the base URL of a route for a case."""
        middle = f"/{CASE_MARK}/{quote(case, safe='')}" if case else ""
        return f"http://{HOST}:{self.port}/{self.token}{middle}/{route}"


def make_json_response(status: HTTPStatus, content: JsonObject) -> ServerResponse:
    """Make a response of JSON."""
    body = json.dumps(content).encode()
    headers = {"Content-Type": "application/json"}
    return ServerResponse(status=status.value, headers=headers, chunks=[body], length=len(body))


@contextmanager
def serve_requests(handler: RequestHandler) -> Iterator[ServerAddress]:
    """Answer requests with ``handler`` while the block runs, each in a thread.

    Raises:
        OSError: no port is available.
    """
    token = secrets.token_urlsafe(18)
    with _Server(handler, token) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield ServerAddress(port=server.server_address[1], token=token)
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = BACKLOG
    daemon_threads = True
    block_on_close = False

    def __init__(self, handler: RequestHandler, token: str) -> None:
        self.handler = handler
        self.token = token
        super().__init__((HOST, 0), _Connection)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a client that disconnects is not an error of the recording."""


class _Connection(BaseHTTPRequestHandler):
    """Reads requests and writes responses."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (of the base class)
        """Print nothing: addresses hold the token."""

    def __getattr__(self, name: str) -> object:
        # The base class looks up one method per HTTP method by its name; all are the same.
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    @property
    def _owner(self) -> _Server:
        assert isinstance(self.server, _Server)  # noqa: S101 (it makes no other connections)
        return self.server

    def _handle(self) -> None:
        try:
            request = self._read_request()
        except RefusedRequestError as error:
            self.close_connection = True
            response = make_json_response(error.status, {"error": {"message": str(error)}})
        else:
            response = self._owner.handler.respond(request)
        self._send(response)

    def _read_request(self) -> ServerRequest:
        path, _, query = self.path.partition("?")
        token, _, rest = path.removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self._owner.token.encode()):
            raise RefusedRequestError(HTTPStatus.NOT_FOUND, "not found")
        case = ""
        if rest.startswith(f"{CASE_MARK}/"):
            quoted, _, rest = rest.removeprefix(f"{CASE_MARK}/").partition("/")
            case = unquote(quoted)
        route, slash, rest = rest.partition("/")
        return ServerRequest(
            method=self.command,
            case=case,
            route=route,
            path=slash + rest,
            query=query,
            headers=dict(self.headers.items()),
            body=self._read_body(),
        )

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return b"".join(self._read_chunks())
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit()):
            raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        length = int(text) if len(text) <= MAX_DIGITS else MAX_BODY_BYTES + 1
        _check_size(length)
        return self._read_exactly(length)

    def _read_chunks(self) -> Iterator[bytes]:
        size, total = -1, 0
        while size:
            digits = self.rfile.readline(MAX_CHUNK_LINE).partition(b";")[0].strip()
            if not _HEXADECIMAL.fullmatch(digits):  # `int` also takes signs: -1 is all there is
                message = "the chunks of the body are invalid"
                raise RefusedRequestError(HTTPStatus.BAD_REQUEST, message)
            size = int(digits, 16)
            total += size
            _check_size(total)
            yield self._read_exactly(size)
            self.rfile.readline(MAX_CHUNK_LINE)

    def _read_exactly(self, length: int) -> bytes:
        content = self.rfile.read(length)
        if len(content) < length:
            raise ConnectionAbortedError
        return content

    def _send(self, response: ServerResponse) -> None:
        chunked = response.length is None and self.request_version != "HTTP/1.0"
        has_body = self.command != "HEAD"
        chunks = iter(response.chunks)
        try:
            self._send_head(response, chunked=chunked)
            for chunk in chunks:
                if chunk and has_body:
                    self.wfile.write(_frame(chunk) if chunked else chunk)
            if chunked and has_body:
                self.wfile.write(_frame(b""))
        except OSError:
            self.close_connection = True
        except IncompleteBodyError:
            # The client must see that the body is not complete.
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        finally:
            if isinstance(chunks, Generator):
                chunks.close()

    def _send_head(self, response: ServerResponse, *, chunked: bool) -> None:
        self.send_response_only(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif response.length is not None:
            self.send_header("Content-Length", str(response.length))
        else:
            self.close_connection = True
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


class IncompleteBodyError(Exception):
    """The body of a response is incomplete; raised by the iterator of its chunks."""


def _frame(chunk: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(chunk), chunk)


def _check_size(size: int) -> None:
    if size > MAX_BODY_BYTES:
        message = f"the body is larger than {MAX_BODY_BYTES // 1024**2} MiB"
        raise RefusedRequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
