"""A server on this machine for one program: HTTP/1.1 as AgentV's target proxy speaks it."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from io import BytesIO
from typing import Final

from agentci.judges.proxy.target import Answer, Asked, RefusalError, Target, refused

HOST: Final = "127.0.0.1"
# Connections at a time; others wait at the door.
MAX_CONNECTIONS: Final = 16
BACKLOG: Final = 64
MAX_SECONDS: Final = 30.0
MAX_END_SECONDS: Final = 1.0
MAX_HEAD_BYTES: Final = 64 * 1024
MAX_BODY_BYTES: Final = 10 * 1024**2
CHUNK_BYTES: Final = 64 * 1024
# How long somebody may go on sending what is not read, so that the answer reaches them.
LINGER_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 0.05

END_OF_HEAD: Final = b"\r\n\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
HEADERS: Final = (
    "Access-Control-Allow-Origin: *",
    "Access-Control-Allow-Methods: GET, POST, OPTIONS",
    "Access-Control-Allow-Headers: Content-Type, Authorization",
    "Connection: close",
)


@contextmanager
def serving(target: Target, *, max_seconds: float = MAX_SECONDS) -> Iterator[int]:
    """Answer for ``target`` at a port of this machine, while the block lasts.

    Args:
        max_seconds: to send a request, and as long again to take the answer.

    Raises:
        OSError: there is no port.
    """
    server = _Server(target, max_seconds)
    try:
        yield server.port
    finally:
        target.close()
        server.close()


class _Server:
    def __init__(self, target: Target, max_seconds: float) -> None:
        self._target = target
        self._max_seconds = max_seconds
        self._listener = socket.create_server((HOST, 0), backlog=BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._room = threading.Semaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closing = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Take no more, and leave those who are here; for a model's answer nobody waits."""
        self._closing = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts, which closing would not
        self._room.release()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._accepting.join(MAX_END_SECONDS)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            self._room.acquire()
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closing:
                    return
                self._room.release()
                time.sleep(PAUSE_SECONDS)  # there may be too many open files
                continue
            with self._lock:
                self._open.add(connection)
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        try:
            with suppress(OSError):  # whoever asked has gone, or takes too long
                self._exchange(_Line(connection, self._max_seconds))
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()
            self._room.release()

    def _exchange(self, line: "_Line") -> None:
        try:
            asked = line.asked()
        except RefusalError as refusal:
            line.reply(refused(refusal), to="")
            line.linger()
        else:
            line.reply(self._target.answer(asked), to=asked.method)


class _Line:
    """One request, and what is answered to it."""

    def __init__(self, connection: socket.socket, max_seconds: float) -> None:
        self._connection = connection
        self._max_seconds = max_seconds
        self._until = time.monotonic() + max_seconds
        self._received = bytearray()

    def asked(self) -> Asked:
        """Read the request.

        Raises:
            OSError: it does not come, or not in time.
            RefusalError: it is none, or too large.
        """
        while END_OF_HEAD not in self._received:
            if len(self._received) > MAX_HEAD_BYTES:
                raise RefusalError(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too large"
                )
            self._more()
        head, _, body = bytes(self._received).partition(END_OF_HEAD)
        first, _, rest = head.partition(b"\r\n")
        try:
            method, path, _ = first.decode("latin-1").split(" ")
            headers = parse_headers(BytesIO(rest + END_OF_HEAD))
        except (ValueError, HTTPException):
            raise RefusalError(HTTPStatus.BAD_REQUEST, "this is not HTTP/1.1") from None
        return Asked(
            method=method,
            path=path,
            authorization=headers.get("Authorization", ""),
            body=self._body(headers, len(self._received) - len(body)),
        )

    def reply(self, answer: Answer, *, to: str) -> None:
        """Send the answer, without a body where a request of method ``to`` gets none."""
        lines = [f"HTTP/1.1 {answer.status.value} {answer.status.phrase}", *HEADERS]
        content = b""
        if answer.content is not None:
            content = json.dumps(answer.content).encode()
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        head = "\r\n".join((*lines, "", "")).encode("ascii")
        self._connection.settimeout(self._max_seconds)
        self._connection.sendall(head if to == "HEAD" else head + content)

    def linger(self) -> None:
        """Let go of what is still being sent: to end at once would take the answer back."""
        self._connection.shutdown(socket.SHUT_WR)
        self._until = time.monotonic() + LINGER_SECONDS
        while True:
            self._more()
            self._received.clear()

    def _body(self, headers: Message, begun: int) -> bytes:
        length = headers.get("Content-Length", "0")
        if "Transfer-Encoding" in headers:
            raise RefusalError(HTTPStatus.LENGTH_REQUIRED, "say the Content-Length of the body")
        if not (length.isascii() and length.isdigit()):
            raise RefusalError(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        if len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
            why = f"the body is larger than {MAX_BODY_BYTES // 1024**2} MiB"
            raise RefusalError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        if "Expect" in headers:
            self._connection.sendall(CONTINUE)
        end = begun + int(length)
        while len(self._received) < end:
            self._more()
        return bytes(self._received[begun:end])

    def _more(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        chunk = self._connection.recv(CHUNK_BYTES)
        if not chunk:
            raise ConnectionAbortedError
        self._received += chunk
