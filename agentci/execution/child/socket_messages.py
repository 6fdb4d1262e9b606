"""Send and receive messages on a socket between processes of agentci.

Orders use Python's ``marshal``. Reports use JSON, because their sender may be untrusted.
"""

import marshal
import socket
import struct
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

# Paths, arguments and environment variables are sent as bytes.
Message: TypeAlias = dict[str, Any]

LENGTH: Final = struct.Struct("!I")


def send(channel: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Send one message, and copies of ``descriptors`` with it.

    Raises:
        OSError: the other end is closed.
    """
    content = marshal.dumps(message)
    content = LENGTH.pack(len(content)) + content
    sent = socket.send_fds(channel, [content], descriptors) if descriptors else 0
    channel.sendall(content[sent:])


def send_json(channel: socket.socket, message: Message) -> None:
    """Send one message as JSON; its values are strings, numbers, booleans, None or messages.

    Raises:
        OSError: the other end is closed.
    """
    content = _format_json(message).encode()
    channel.sendall(LENGTH.pack(len(content)) + content)


def receive(channel: socket.socket) -> Message | None:
    """Wait for one message; return None if the other end is closed.

    Raises:
        TimeoutError: no message arrived within the channel's timeout.
    """
    return _receive_rest(channel, b"")


def receive_with_descriptors(
    channel: socket.socket, count: int
) -> tuple[Message | None, list[int]]:
    """Wait for one message and up to ``count`` descriptors sent with it."""
    try:
        received, descriptors, _, _ = socket.recv_fds(channel, LENGTH.size, count)
    except ConnectionError:
        return None, []
    return (_receive_rest(channel, received) if received else None), descriptors


def _format_json(value: Any) -> str:
    """Format a value as JSON; importing ``json`` takes longer than a launcher takes to start."""
    if isinstance(value, dict):
        fields = ",".join(
            f"{_format_json(name)}:{_format_json(each)}" for name, each in value.items()
        )
        return f"{{{fields}}}"
    if isinstance(value, str):
        plain = "".join(f"\\u{byte:04x}" for byte in value.encode("ascii", "backslashreplace"))
        return f'"{plain}"'
    return "null" if value is None else str(value).lower()


def _receive_rest(channel: socket.socket, received: bytes) -> Message | None:
    head = _receive_exactly(channel, LENGTH.size, received)
    content = None if head is None else _receive_exactly(channel, LENGTH.unpack(head)[0])
    if content is None:
        return None
    message: Message = marshal.loads(content)  # noqa: S302 (from a process that agentci started)
    return message


def _receive_exactly(channel: socket.socket, size: int, received: bytes = b"") -> bytes | None:
    content = bytearray(received)
    while len(content) < size:
        try:
            chunk = channel.recv(size - len(content))
        except ConnectionError:
            return None
        if not chunk:
            return None
        content += chunk
    return bytes(content)
