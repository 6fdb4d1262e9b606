"""How the two ends of a socket between processes of ours speak: one value at a time."""

import marshal
import socket
import struct
from typing import Any, Final, TypeAlias

# Texts of the system (paths, arguments, variables) travel as the bytes that they are.
Message: TypeAlias = dict[str, Any]

LENGTH: Final = struct.Struct("!I")


def send(channel: socket.socket, message: Message) -> None:
    """Send one message.

    Raises:
        OSError: nobody is there to read it.
    """
    content = marshal.dumps(message)
    channel.sendall(LENGTH.pack(len(content)) + content)


def receive(channel: socket.socket) -> Message | None:
    """Wait for one message; None when the other end is gone.

    Raises:
        TimeoutError: none came within the channel's time-out.
    """
    head = _exactly(channel, LENGTH.size)
    content = None if head is None else _exactly(channel, LENGTH.unpack(head)[0])
    if content is None:
        return None
    message: Message = marshal.loads(content)  # noqa: S302 (from a process that we started)
    return message


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        try:
            chunk = channel.recv(size - len(content))
        except ConnectionError:
            return None
        if not chunk:
            return None
        content += chunk
    return bytes(content)
