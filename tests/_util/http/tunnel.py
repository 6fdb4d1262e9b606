"""External services, simulated by one server on this machine.

The environment names a proxy that tunnels every connection to that server, as in company
networks. The server's certificate has the names of the services and is the only trusted one.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests._util.http.servers import SERVICES, Respond, Server, serve

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@contextlib.contextmanager
def services(respond: Respond, patch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Answers requests to all services with ``respond``; the header ``host`` names the service."""
    with serve(respond, tls=True, certificate=SERVICES) as server:
        proxy = socket.create_server(("127.0.0.1", 0), backlog=64)
        port = proxy.getsockname()[1]
        accepting = threading.Thread(target=_accept, args=(proxy, server.port), daemon=True)
        accepting.start()
        patch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        patch.setenv("REQUESTS_CA_BUNDLE", str(SERVICES))
        patch.setenv("NO_PROXY", "")
        try:
            yield server
        finally:
            proxy.shutdown(socket.SHUT_RDWR)
            accepting.join()
            proxy.close()


def _accept(proxy: socket.socket, port: int) -> None:
    while True:
        try:
            client, _ = proxy.accept()
        except OSError:
            return
        threading.Thread(target=_tunnel, args=(client, port), daemon=True).start()


def _tunnel(client: socket.socket, port: int) -> None:
    with contextlib.suppress(OSError), client:
        asked = b""
        while b"\r\n\r\n" not in asked:
            asked += client.recv(4096)
        assert asked.startswith(b"CONNECT ")
        with socket.create_connection(("127.0.0.1", port)) as server:
            client.sendall(ESTABLISHED)
            back = threading.Thread(target=_pipe, args=(server, client), daemon=True)
            back.start()
            _pipe(client, server)
            back.join()


def _pipe(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
