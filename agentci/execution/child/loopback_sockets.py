"""Gives a jailed program the only sockets that it may have: of TCP, and of this machine alone.

Its filter (see ``seccomp.py``) has the kernel ask us whenever it wants a socket. What it
gets is made here and bound to the loopback device, which nobody without privilege can undo: nothing
that is sent by it leaves the machine, whatever address is named. Landlock holds it to one port.
"""

import errno
import os
import select
import socket
import struct
from contextlib import suppress
from fcntl import ioctl
from typing import Final

# From the kernel's linux/seccomp.h: what is asked, what is answered, and a descriptor that is
# handed over. They need Linux 5.9.
ASKED: Final = struct.Struct("=Q24xI4xI4xI4x24x")
ANSWER: Final = struct.Struct("=QqiI")
HANDED: Final = struct.Struct("=QIIII")
RECEIVE: Final = 0xC0502100
SEND: Final = 0xC0182101
HAND_OVER: Final = 0x40182103

DEVICE: Final = b"lo"
# What a program adds to the kind of a socket.
FLAGS: Final = os.O_CLOEXEC | os.O_NONBLOCK
PROTOCOLS: Final = (0, socket.IPPROTO_TCP)


class Sockets:
    """The sockets of one program.

    Args:
        descriptor: where its requests arrive.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """What can be read from as soon as one is wanted, or nobody is left to want any."""
        return self._descriptor

    def give(self) -> bool:
        """Answer one request; False where there will be no more."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            return False
        with suppress(FileNotFoundError):  # whoever asked has ended meanwhile
            self._answer()
        return True

    def close(self) -> None:
        """Have every further request fail."""
        os.close(self._descriptor)

    def _answer(self) -> None:
        asked = bytearray(ASKED.size)
        self._tell(RECEIVE, asked)
        number, family, kind, protocol = ASKED.unpack(asked)
        value, error = 0, 0
        try:
            value = self._handed_over(number, family, kind, protocol)
        except OSError as failure:
            error = failure.errno or errno.EPERM
        self._tell(SEND, bytearray(ANSWER.pack(number, value, -error, 0)))

    def _handed_over(self, number: int, family: int, kind: int, protocol: int) -> int:
        """A socket as its number in the program that asked.

        Raises:
            OSError: it may have none of that kind.
        """
        wanted = (family, kind & ~FLAGS)
        if wanted != (socket.AF_INET, socket.SOCK_STREAM) or protocol not in PROTOCOLS:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM | kind & FLAGS) as given:
            given.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, DEVICE)
            handed = HANDED.pack(number, 0, given.fileno(), 0, kind & os.O_CLOEXEC)
            return self._tell(HAND_OVER, bytearray(handed))

    def _tell(self, command: int, content: bytearray) -> int:
        while True:
            with suppress(InterruptedError):
                return int(ioctl(self._descriptor, command, content))
