"""Keeps bytes aside while a run needs them: the last few MiB in memory, the others in a file."""

import os
import tempfile
import weakref
from typing import IO, Final

from agentci.errors import InputError

# Most runs never come to need a file.
MEMORY_BYTES: Final = 8 * 1024**2

_SIZE_BITS: Final = 40
_NO_ROOM: Final = "make room there, or let TMPDIR name a folder that has some"


class Spool:
    """Chunks of bytes, of any number and size, in a file without a name that goes with the spool.

    Chunks may be taken by several threads at a time, once all are put.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._file: IO[bytes] | None = None
        self._filed = 0
        self._recent = bytearray()

    def put(self, chunk: bytes) -> int:
        """Keep ``chunk``; the number is what it is taken by.

        Raises:
            InputError: there is no room for it.
        """
        if len(self._recent) + len(chunk) > self._memory_bytes:
            try:
                self._move_to_file()
            except OSError as error:
                message = f"the recordings need more room than there is: {error.strerror or error}"
                raise InputError.of(message, hint=_NO_ROOM) from None
        offset = self._filed + len(self._recent)
        self._recent += chunk
        return offset << _SIZE_BITS | len(chunk)

    def take(self, number: int) -> bytes:
        """The chunk that was put; it stays."""
        offset, size = number >> _SIZE_BITS, number & (1 << _SIZE_BITS) - 1
        if self._file is None or offset >= self._filed:
            start = offset - self._filed
            return bytes(self._recent[start : start + size])
        return os.pread(self._file.fileno(), size, offset)

    def _move_to_file(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="agentci-")  # noqa: SIM115 (see finalize)
            weakref.finalize(self, self._file.close)
        moved, left = self._filed, memoryview(self._recent)
        while left:
            written = os.pwrite(self._file.fileno(), left, moved)
            moved, left = moved + written, left[written:]
        self._filed, self._recent = moved, bytearray()
