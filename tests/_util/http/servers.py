"""Local servers with scripted answers, including faults.

``serve(respond)`` starts one; ``respond`` gets every request and returns the answer.
``serve(script(...))`` answers the first request with the first answer, and so on.
"""

import contextlib
import itertools
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias

# Self-signed, for 127.0.0.1; trusted if REQUESTS_CA_BUNDLE names it. Valid until 2120.
CERTIFICATE = Path(__file__).with_name("loopback.pem")
KEY = Path(__file__).with_name("loopback.key")
# For the hosts of the model providers, with the same key.
SERVICES = Path(__file__).with_name("services.pem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A received request.

    Attributes:
        path: with its query.
        headers: by name in lower case.
        connection: its number, from 0; requests on one connection share it.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    connection: int
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A valid answer; its length is sent unless ``headers`` override it."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """Raw bytes, headers included; the connection is closed after the last one.

    Attributes:
        pieces: sent one by one; an iterator serves only one request.
        endlessly: sent after them repeatedly, unless it is empty.
        pause_seconds: after each of them.
        resets: whether the connection ends as if the server had crashed.
    """

    pieces: Iterable[bytes]
    endlessly: bytes = b""
    pause_seconds: float = 0
    resets: bool = False


Respond: TypeAlias = Callable[[Asked], Answer | Raw]


def script(*answers: Answer | Raw) -> Respond:
    """Gives the answers one after the other, then repeats the last one."""
    left = list(answers)
    lock = threading.Lock()

    def respond(_: Asked) -> Answer | Raw:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return respond


def head(status: int = 200, *lines: str) -> bytes:
    """The status line and headers of a ``Raw`` answer."""
    return "\r\n".join((f"HTTP/1.1 {status} Said", *lines, "", "")).encode("latin-1")


@contextlib.contextmanager
def serve(
    respond: Respond, *, tls: bool = False, certificate: Path = CERTIFICATE
) -> Iterator["Server"]:
    """Runs a server for the duration of the block."""
    server = Server(respond, tls=tls, certificate=certificate)
    try:
        yield server
    finally:
        server.close()


def refused_port() -> int:
    """A port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert isinstance(port, int)
    return port


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """A port whose listener accepts no connection: its backlog is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listener.getsockname()[1]
        for _ in range(20):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        yield port


class Server:
    """Listens on 127.0.0.1, with one thread per connection.

    Attributes:
        url: its address, without ``/`` at the end.
        asked: all requests so far.
    """

    def __init__(self, respond: Respond, *, tls: bool, certificate: Path) -> None:
        self._respond = respond
        self._context = _context(certificate) if tls else None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.asked: list[Asked] = []
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def paths(self) -> Sequence[str]:
        """Paths of all requests so far."""
        return [each.path for each in self.asked]

    def close(self) -> None:
        """Stops the server and all open connections."""
        self._closing.set()
        # Wakes up accept(); closing the socket would not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        with self._lock:
            for channel in self._open:
                with contextlib.suppress(OSError):
                    # SSLSocket.shutdown would discard the TLS state that another thread reads with.
                    socket.socket.shutdown(channel, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        for number in itertools.count():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            channel = self._wrapped(connection)
            with self._lock:
                self._open.add(channel)
            thread = threading.Thread(target=self._attend, args=(channel, number), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _wrapped(self, connection: socket.socket) -> socket.socket:
        if self._context is None:
            return connection
        return self._context.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        )

    def _attend(self, channel: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError):  # the client may hang up or reject the certificate
            if isinstance(channel, ssl.SSLSocket):
                channel.do_handshake()
            with channel.makefile("rb") as stream:
                while (asked := _read(stream, number)) is not None:
                    self.asked.append(asked)
                    if not self._answer(channel, self._respond(asked)):
                        break
        with self._lock:
            self._open.discard(channel)
            channel.close()

    def _answer(self, channel: socket.socket, answer: Answer | Raw) -> bool:
        """Sends an answer; returns whether the connection can be reused."""
        if isinstance(answer, Answer):
            channel.sendall(_whole(answer))
            return True
        endless = itertools.repeat(answer.endlessly) if answer.endlessly else ()
        for piece in itertools.chain(answer.pieces, endless):
            if self._closing.is_set():
                break
            channel.sendall(piece)
            if answer.pause_seconds:
                self._closing.wait(answer.pause_seconds)
        if answer.resets:
            # A linger time of zero makes the system send RST.
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        return False


def _context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, KEY)
    return context


def _read(stream: IO[bytes], number: int) -> Asked | None:
    """Reads the next request; None at the end of the connection."""
    lines = [
        line.decode("latin-1").rstrip("\r\n")
        for line in itertools.takewhile(lambda line: line.strip(), stream)
    ]
    if not lines:
        return None
    method, path, _ = lines[0].split(" ")
    pairs = (line.partition(":") for line in lines[1:])
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = stream.read(int(headers.get("content-length", "0")))
    return Asked(method=method, path=path, headers=headers, connection=number, body=body)


def _whole(answer: Answer) -> bytes:
    headers = {"Content-Length": str(len(answer.body)), **answer.headers}
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return head(answer.status, *lines) + answer.body
