"""The bytes of a recording, unpacked and without marks."""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from agentci.recordings.trace_format import unreadable

MAX_RECORDING_BYTES: Final = 256 * 1024 * 1024

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW_BITS: Final = 31
# What is unpacked at a time grows to at most a thousand times as much.
_PACKED_BYTES: Final = 8 * 1024
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_MARK_BYTES: Final = 4


def content_of(chunks: Iterable[bytes], *, file: str) -> Iterator[bytes]:
    """What is to be read as UTF-8, in chunks: gzip is unpacked, a byte order mark taken off.

    Raises:
        RecordingError: too large, a broken archive, or in another encoding.
    """
    head, content = _opened(chunks)
    if head.startswith(_GZIP_MAGIC):
        head, content = _opened(_unpacked(content, file))
    if head.startswith(_UTF16_MARKS) or b"\0" in head[:_MARK_BYTES]:
        raise unreadable(file, "is UTF-16 text or binary", hint="save it as UTF-8")
    size = 0
    for chunk in content:
        size += len(chunk)
        if size > MAX_RECORDING_BYTES:
            raise unreadable(
                file,
                f"holds more than {MAX_RECORDING_BYTES // 2**20} MiB",
                hint="split it into several files, a trace must not be torn apart",
            )
        yield chunk.removeprefix(_UTF8_MARK) if size == len(chunk) else chunk


def _opened(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first chunk, long enough to tell what they are, and all of them."""
    left, head = iter(chunks), b""
    for chunk in left:
        head += chunk
        if len(head) >= _MARK_BYTES:
            break
    return head, chain([head], left)


def _unpacked(chunks: Iterable[bytes], file: str) -> Iterator[bytes]:
    archive = zlib.decompressobj(_GZIP_WINDOW_BITS)
    try:
        for packed in _cut(chunks):
            rest = packed
            while rest:
                if archive.eof:
                    archive = zlib.decompressobj(_GZIP_WINDOW_BITS)
                yield archive.decompress(rest)
                rest = archive.unused_data
    except zlib.error as error:
        raise unreadable(file, f"is a broken gzip archive: {error}", hint="pack it anew") from None
    if not archive.eof:
        raise unreadable(file, "is a gzip archive that breaks off", hint="pack it anew")


def _cut(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), _PACKED_BYTES):
            yield chunk[start : start + _PACKED_BYTES]
