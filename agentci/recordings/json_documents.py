"""Reads the JSON documents of a recording: decompresses, decodes and splits its content."""

import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from json import JSONDecodeError
from typing import Final

from msgspec import Struct

from agentci._util.text.json_text import decode_json
from agentci.errors import RecordingError
from agentci.model.json import Json
from agentci.recordings.telemetry.json_input import LENIENT_DECODER, replace_lone_surrogates
from agentci.recordings.trace_format import make_recording_error

MAX_RECORDING_BYTES: Final = 256 * 1024 * 1024

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW_BITS: Final = 31
# gzip expands a chunk to at most about 1000 times its size.
_GZIP_CHUNK_BYTES: Final = 8 * 1024
_UTF8_BOM: Final = b"\xef\xbb\xbf"
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_SIGNATURE_BYTES: Final = 4


def unpack_content(chunks: Iterable[bytes], *, file: str) -> Iterator[bytes]:
    """Return the content as UTF-8 chunks, decompressing gzip and removing a byte order mark.

    Raises:
        RecordingError: if it is too large, a broken archive or in another encoding.
    """
    head, content = _peek(chunks)
    if head.startswith(_GZIP_MAGIC):
        head, content = _peek(_decompress_gzip(content, file))
    if head.startswith(_UTF16_BOMS) or b"\0" in head[:_SIGNATURE_BYTES]:
        raise make_recording_error(
            file, "the file is UTF-16 or binary, not UTF-8", hint=ENCODING_HINT
        )
    size = 0
    for chunk in content:
        size += len(chunk)
        if size > MAX_RECORDING_BYTES:
            raise make_recording_error(
                file,
                f"the content is larger than {MAX_RECORDING_BYTES // 2**20} MiB",
                hint="split the file, but keep all spans of a trace in one file",
            )
        yield chunk.removeprefix(_UTF8_BOM) if size == len(chunk) else chunk


def _peek(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes, enough to detect the encoding, and an iterator over all chunks."""
    left, head = iter(chunks), b""
    for chunk in left:
        head += chunk
        if len(head) >= _SIGNATURE_BYTES:
            break
    return head, chain([head], left)


def _decompress_gzip(chunks: Iterable[bytes], file: str) -> Iterator[bytes]:
    archive = zlib.decompressobj(_GZIP_WINDOW_BITS)
    try:
        for packed in _split_chunks(chunks):
            rest = packed
            while rest:
                if archive.eof:
                    archive = zlib.decompressobj(_GZIP_WINDOW_BITS)
                yield archive.decompress(rest)
                rest = archive.unused_data
    except zlib.error as error:
        raise make_recording_error(
            file, f"invalid gzip file: {error}", hint="compress it again"
        ) from None
    if not archive.eof:
        raise make_recording_error(file, "truncated gzip file", hint="compress it again")


def _split_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), _GZIP_CHUNK_BYTES):
            yield chunk[start : start + _GZIP_CHUNK_BYTES]


INVALID_JSON_HINT: Final = "expected JSON or JSON Lines; the file may be truncated"
LFS_POINTER: Final = "version https://git-lfs."
LFS_POINTER_HINT: Final = (
    "this is a Git LFS pointer; check out with `lfs: true`, or run `git lfs pull`"
)
NESTING_HINT: Final = "check that the file is a trace or a transcript"
ENCODING_HINT: Final = "save it as UTF-8"

_NON_SPACE: Final = re.compile(rb"\S")
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class Document(Struct, frozen=True, kw_only=True):
    """One JSON value and the number of the line it starts on."""

    value: Json
    line: int


def read_documents(content: Iterator[bytes], *, file: str) -> Iterator[Document]:
    """Read the documents one at a time.

    For JSON Lines, only one document is in memory at a time.

    Args:
        content: UTF-8 text in chunks of any size.

    Raises:
        RecordingError: if the content is blank or a document is not JSON; nothing in the recording
            can be trusted then.
    """
    head, line = _read_first_line(content)
    if _find_non_space(head, 0) < 0:
        raise make_recording_error(
            file, "the file is empty", hint="check that the recording did not fail"
        )
    if line and _is_json(line):
        yield from _read_json_lines(chain([bytes(head)], content), file)
    else:
        for chunk in content:
            head += chunk
        yield from _read_concatenated(_decode_utf8(head, 1, file), file)


def make_nesting_error(file: str, line: int) -> RecordingError:
    """Make the error for a document that is nested too deeply."""
    return make_recording_error(file, "JSON nested too deeply", hint=NESTING_HINT, line=line)


def _read_first_line(content: Iterator[bytes]) -> tuple[bytearray, bytearray]:
    """Read up to the first text after the first non-blank line.

    Returns:
        What was read, and the first non-blank line; the line is empty if no text follows it.
    """
    head = bytearray()
    start = end = -1
    for chunk in content:
        known = len(head)
        head += chunk
        if start < 0:
            start = _find_non_space(head, known)
        if start >= 0 > end:
            end = head.find(b"\n", max(start, known))
        if end >= 0 and _find_non_space(head, max(end, known)) >= 0:
            return head, head[start:end]
    return head, bytearray()


def _find_non_space(content: bytearray, start: int) -> int:
    """Return the index of the next non-space byte, or -1."""
    word = _NON_SPACE.search(content, start)
    return -1 if word is None else word.start()


def _is_json(chunk: bytearray) -> bool:
    try:
        decode_json(replace_lone_surrogates(chunk.decode()), LENIENT_DECODER)
    except (ValueError, RecursionError):
        return False
    return True


def _read_json_lines(content: Iterable[bytes], file: str) -> Iterator[Document]:
    for line, raw in enumerate(_split_lines(content), start=1):
        text = _decode_utf8(raw, line, file).strip()
        if text:
            yield Document(value=_parse_line(text, line, file), line=line)


def _split_lines(content: Iterable[bytes]) -> Iterator[bytes]:
    """Split the content into lines; a line may span many chunks."""
    begun: list[bytes] = []
    for chunk in content:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join((*begun, line))
            begun.clear()
        begun.append(rest)
    yield b"".join(begun)


def _parse_line(text: str, line: int, file: str) -> Json:
    try:
        return decode_json(replace_lone_surrogates(text), LENIENT_DECODER)
    except JSONDecodeError as error:
        raise _make_json_error(error, line, file) from None
    except RecursionError:
        raise make_nesting_error(file, line) from None


def _read_concatenated(text: str, file: str) -> Iterator[Document]:
    text = replace_lone_surrogates(text)
    line, last = 1, 0
    start = _skip_space(text, 0)
    while start < len(text):
        line, last = line + text.count("\n", last, start), start
        value, end = _parse_next(text, start, line, file)
        yield Document(value=value, line=line)
        start = _skip_space(text, end)


def _parse_next(text: str, start: int, line: int, file: str) -> tuple[Json, int]:
    try:
        return LENIENT_DECODER.raw_decode(text, start)
    except JSONDecodeError as error:
        raise _make_json_error(error, error.lineno, file) from None
    except RecursionError:
        raise make_nesting_error(file, line) from None


def _skip_space(text: str, start: int) -> int:
    space = _SPACE.match(text, start)
    return start if space is None else space.end()


def _decode_utf8(content: bytes | bytearray, line: int, file: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = line + content.count(b"\n", 0, error.start)
        raise make_recording_error(file, "not UTF-8", hint=ENCODING_HINT, line=at) from None


def _make_json_error(error: JSONDecodeError, line: int, file: str) -> RecordingError:
    return make_recording_error(
        file,
        f"invalid JSON: {error.msg.lower()}",
        hint=LFS_POINTER_HINT if error.doc.startswith(LFS_POINTER) else INVALID_JSON_HINT,
        line=line,
        column=error.colno,
    )
