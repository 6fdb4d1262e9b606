"""The bytes of a recording, unpacked and without marks."""

import zlib
from typing import Final, TypeAlias

from agentci.formats.base import unreadable

MAX_RECORDING_BYTES: Final = 256 * 1024 * 1024
CHUNK_BYTES: Final = 64 * 1024

Bytes: TypeAlias = bytes | bytearray

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW_BITS: Final = 31
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def content_of(data: bytes, *, file: str) -> Bytes:
    """What is to be read as UTF-8: gzip is unpacked, a byte order mark taken off.

    Raises:
        RecordingError: too large, empty, a broken archive, or in another encoding.
    """
    content: Bytes = _unpacked(data, file) if data.startswith(_GZIP_MAGIC) else data
    if len(content) > MAX_RECORDING_BYTES:
        raise unreadable(
            file,
            f"holds more than {MAX_RECORDING_BYTES // 2**20} MiB",
            hint="split it into several files, a trace must not be torn apart",
        )
    if content.startswith(_UTF16_MARKS) or b"\0" in content[:4]:
        raise unreadable(file, "is UTF-16 text or binary", hint="save it as UTF-8")
    content = content.removeprefix(_UTF8_MARK)
    if not content or content.isspace():
        raise unreadable(file, "is empty", hint="did the run that was to record it fail?")
    return content


def _unpacked(data: bytes, file: str) -> bytearray:
    unpacked = bytearray()
    archive = zlib.decompressobj(_GZIP_WINDOW_BITS)
    try:
        for start in range(0, len(data), CHUNK_BYTES):
            packed = data[start : start + CHUNK_BYTES]
            while packed and len(unpacked) <= MAX_RECORDING_BYTES:
                if archive.eof:
                    archive = zlib.decompressobj(_GZIP_WINDOW_BITS)
                room = MAX_RECORDING_BYTES - len(unpacked) + 1
                unpacked += archive.decompress(packed, room)
                packed = archive.unused_data
    except zlib.error as error:
        raise unreadable(file, f"is a broken gzip archive: {error}", hint="pack it anew") from None
    if not archive.eof and len(unpacked) <= MAX_RECORDING_BYTES:
        raise unreadable(file, "is a gzip archive that breaks off", hint="pack it anew")
    return unpacked
