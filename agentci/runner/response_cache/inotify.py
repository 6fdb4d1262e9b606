"""Linux' inotify: what is opened and changed in folders, by whomever.

See https://man7.org/linux/man-pages/man7/inotify.7.html.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from agentci.execution.child.kernel import IS_LINUX, LIBC

MODIFY: Final = 0x2
OPEN: Final = 0x20
MOVED_FROM: Final = 0x40
MOVED_TO: Final = 0x80
CREATE: Final = 0x100
DELETE: Final = 0x200
OVERFLOW: Final = 0x4000
ONLY_FOLDERS: Final = 0x0100_0000
NO_LINKS: Final = 0x0200_0000
OF_FOLDER: Final = 0x4000_0000

_WATCHED: Final = OPEN | MODIFY | CREATE | DELETE | MOVED_FROM | MOVED_TO | ONLY_FOLDERS | NO_LINKS
_HEAD: Final = struct.Struct("iIII")
_BUFFER_BYTES: Final = 1 << 18


class Event(Struct, frozen=True):
    """Something that was done to a folder or to an entry of it.

    Attributes:
        watch: the number of the folder.
        name: of the entry; empty for the folder itself.
    """

    watch: int
    mask: int
    name: str


class Inotify:
    """A queue of events.

    Raises:
        OSError: this system has none, or gives us no more of them.
    """

    def __init__(self) -> None:
        if not IS_LINUX:
            raise OSError("only Linux tells what is opened")
        self._descriptor = _checked(LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def watch(self, folder: str) -> int:
        """Have what is done in ``folder`` put into the queue; the folder's number.

        Raises:
            OSError: it cannot be, or too much is watched already.
        """
        path = ctypes.c_char_p(os.fsencode(folder))
        return _checked(LIBC.inotify_add_watch(self._descriptor, path, ctypes.c_uint32(_WATCHED)))

    def take(self) -> Iterator[Event]:
        """Empty the queue: all that was done before this call is in it."""
        while True:
            try:
                data = os.read(self._descriptor, _BUFFER_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                yield Event(watch, mask, os.fsdecode(data[at : at + length].rstrip(b"\0")))
                at += length

    def close(self) -> None:
        """Watch nothing any more."""
        os.close(self._descriptor)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
