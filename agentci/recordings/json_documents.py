"""Reads the JSON documents of a recording: decompresses, decodes and splits its content.

What programs print between the documents is kept apart: ``read_mixed_documents``. The interface of
a trace format, which reads the documents, is here, too.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from json import JSONDecodeError
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from agentci._util.text.json_text import decode_json, name_json_error
from agentci._util.text.suggest import quote_name
from agentci.errors import RecordingError
from agentci.model.values import Json, Place, Problem, hint_at_show, replace
from agentci.recordings.telemetry.json_input import (
    LENIENT_DECODER,
    find_repeated_key,
    replace_lone_surrogates,
)
from agentci.recordings.telemetry.semconv import ReadAttributes
from agentci.recordings.telemetry.spans import TelemetryRecord


class DocumentFormatError(Exception):
    """A document does not match its format.

    Attributes:
        line: number of the invalid line; None if only the caller knows it.
        hint: what to do, if that is not to name another file.
    """

    def __init__(self, message: str, *, line: int | None = None, hint: str | None = None) -> None:
        self.line = line
        self.hint = hint
        super().__init__(message)


class TraceFormat(Protocol):
    """One trace format, implemented as a module of this package.

    A recording is one JSON document or several in a row; each is read separately.
    """

    @property
    def name(self) -> str:
        """The name that users write, such as ``otlp-json``."""

    def recognises(self, document: Json) -> bool:
        """Return whether a recording that starts with ``document`` has this format."""

    def read(self, document: Json, names: ReadAttributes) -> Iterator[TelemetryRecord]:
        """Read the records of one document, in its order, with the attributes in ``names``.

        Raises:
            DocumentFormatError: if the document does not have this format.
        """


def make_recording_error(
    file: str, message: str, *, hint: str, line: int = 1, column: int | None = None
) -> RecordingError:
    """Make the error for a recording that cannot be read."""
    place = Place(file=file, line=line, column=column)
    return RecordingError(Problem(message=message, place=place, hint=hint))


def point_to_show(problem: Problem) -> Problem:
    """Return the problem of a recording, with the command that shows what is understood of it."""
    shown = "" if problem.place is None else hint_at_show(problem.place.file)
    return replace(problem, hint="; ".join(filter(None, (problem.hint, shown))))


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
    yield from unpack_text(decompress_content(chunks, file=file), file=file)


def unpack_text(content: Iterable[bytes], *, file: str) -> Iterator[bytes]:
    """Return content that is not compressed without a byte order mark.

    Raises:
        RecordingError: if it is in another encoding.
    """
    head, content = peek_content(content)
    if head.startswith(_UTF16_BOMS) or b"\0" in head[:_SIGNATURE_BYTES]:
        raise make_recording_error(
            file, "the file is UTF-16 or binary, not UTF-8", hint=ENCODING_HINT
        )
    yield next(content, b"").removeprefix(_UTF8_BOM)
    yield from content


def decompress_content(chunks: Iterable[bytes], *, file: str) -> Iterator[bytes]:
    """Return the content, decompressed if it is gzip.

    Raises:
        RecordingError: if it is too large, or a broken archive.
    """
    head, content = peek_content(chunks)
    if head.startswith(_GZIP_MAGIC):
        content = _decompress_gzip(content, file)
    size = 0
    for chunk in content:
        size += len(chunk)
        if size > MAX_RECORDING_BYTES:
            raise make_recording_error(
                file,
                f"the content is larger than {MAX_RECORDING_BYTES // 2**20} MiB",
                hint="split the file, but keep all spans of a trace in one file",
            )
        yield chunk


def peek_content(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
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
_REST_OF_LINE: Final = re.compile(r"[^\n]*")
# How objects and lists begin if a program wrote them as JSON, not as text; even damaged ones.
_JSON_START: Final = re.compile(r"[\[{][\s\[{]*(?:\"|$)|\{[A-Za-z]")
_OPENINGS: Final = frozenset("{[")
# Of both sides of a merge in git.
_CONFLICT_MARKS: Final = ("<<<<<<< ", ">>>>>>> ")
# Marks of spans: a line of text with one of them is a span that cannot be read.
_SPAN_MARKS: Final = ("resourceSpans", "resource_spans", '"trace_id"', '"traceId"', '"spanId"')

FindValue: TypeAlias = Callable[[str, int], tuple[Json, int] | None]


class Document(Struct, frozen=True, kw_only=True):
    """One JSON value and the number of the line it starts on."""

    value: Json
    line: int


class TextLine(Struct, frozen=True, kw_only=True):
    """A line that is not JSON, and what a JSON parser says about it, and where."""

    text: str
    message: str
    line: int
    column: int


def read_documents(content: Iterator[bytes], *, file: str) -> Iterator[Document]:
    """Read the documents one at a time.

    For JSON Lines, only one document is in memory at a time.

    Args:
        content: UTF-8 text in chunks of any size.

    Raises:
        RecordingError: if the content is blank or a document is not JSON; nothing in the recording
            can be trusted then.
    """
    return refuse_text(_read_parts(content, file, None), file)


def read_mixed_documents(
    content: Iterator[bytes], *, file: str, find_value: FindValue
) -> Iterator[Document | TextLine]:
    """Read the documents as ``read_documents`` does, and the lines of text between them.

    Args:
        find_value: reads what looks like JSON, but is not: the value at a position of a text, and
            the position after it; None if there is none.

    Raises:
        RecordingError: if the content is blank or a document is cut off.
    """
    return _read_parts(content, file, find_value)


def refuse_text(parts: Iterable[Document | TextLine], file: str) -> Iterator[Document]:
    """Iterate over the documents.

    Raises:
        RecordingError: if there is text between them.
    """
    for part in parts:
        if isinstance(part, TextLine):
            raise make_text_error(part, file)
        yield part


def _read_parts(
    content: Iterator[bytes], file: str, find_value: FindValue | None
) -> Iterator[Document | TextLine]:
    head, line = _read_first_line(content)
    if _find_non_space(head, 0) < 0:
        raise make_recording_error(
            file, "the file is empty", hint="check that the recording did not fail"
        )
    if line and _is_json(line):
        yield from _read_json_lines(chain([bytes(head)], content), file, find_value)
    else:
        for chunk in content:
            head += chunk
        text = replace_lone_surrogates(_decode_utf8(head, 1, file))
        yield from _read_concatenated(text, file, find_value)


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


def _read_json_lines(
    content: Iterable[bytes], file: str, find_value: FindValue | None
) -> Iterator[Document | TextLine]:
    lines = enumerate(_split_lines(content), start=1)
    for line, raw in lines:
        text = _decode_utf8(raw, line, file).strip()
        if find_value is not None and text in _OPENINGS:
            # A document of several lines: all others are read with it, under their numbers.
            rest = b"\n".join((b"\n" * (line - 2), raw, *(each for _, each in lines)))
            yield from _read_concatenated(
                replace_lone_surrogates(_decode_utf8(rest, 1, file)), file, find_value
            )
        elif text:
            yield _parse_line(text, line, file)


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


def _parse_line(text: str, line: int, file: str) -> Document | TextLine:
    try:
        value = decode_json(replace_lone_surrogates(text), LENIENT_DECODER)
    except JSONDecodeError as error:
        return _make_text_line(text, error, line, file)
    except RecursionError:
        raise make_nesting_error(file, line) from None
    return _make_document(value, text, line, file)


def _make_document(value: Json, text: str, line: int, file: str) -> Document:
    """Make a document in which no key appears twice, as only the last value would be read.

    Args:
        text: that ``value`` was decoded from.
    """
    try:
        name = find_repeated_key(text, value)
    except ValueError:
        raise make_nesting_error(file, line) from None
    if name is not None:
        message = f"the key {quote_name(name)} appears twice in one object"
        raise make_recording_error(file, message, hint="keep one of the two values", line=line)
    return Document(value=value, line=line)


def _read_concatenated(
    text: str, file: str, find_value: FindValue | None
) -> Iterator[Document | TextLine]:
    line, last = 1, 0
    start = _skip_space(text, 0)
    while start < len(text):
        line, last = line + text.count("\n", last, start), start
        part, end = _parse_next(text, start, line, file, find_value)
        yield part
        start = _skip_space(text, end)


def _parse_next(
    text: str, start: int, line: int, file: str, find_value: FindValue | None
) -> tuple[Document | TextLine, int]:
    if find_value is not None:
        if (found := find_value(text, start)) is not None:
            return Document(value=found[0], line=line), found[1]
        rest = _find_rest_of_line(text, start)
        if _JSON_START.match(rest) is None:
            # An error of the whole text would count the lines before it: too slow for each line.
            return _parse_line(rest.rstrip(), line, file), start + len(rest)
    try:
        value, end = LENIENT_DECODER.raw_decode(text, start)
    except JSONDecodeError as error:
        rest = _find_rest_of_line(text, start)
        return _make_text_line(rest, error, line, file), start + len(rest)
    except RecursionError:
        raise make_nesting_error(file, line) from None
    return _make_document(value, text[start:end], line, file), end


def _find_rest_of_line(text: str, start: int) -> str:
    rest = _REST_OF_LINE.match(text, start)
    return "" if rest is None else rest[0]


def _make_text_line(text: str, error: JSONDecodeError, line: int, file: str) -> TextLine:
    """Return a line that is not JSON.

    Raises:
        RecordingError: if it is JSON that was cut off, holds a span, or marks a conflict.
    """
    found = TextLine(
        text=text,
        message=name_json_error(error),
        line=line if error.lineno == 1 else error.lineno,
        column=error.colno,
    )
    if _JSON_START.match(text) or any(mark in text for mark in _SPAN_MARKS):
        raise make_text_error(found, file)
    if text.startswith(_CONFLICT_MARKS):
        hint = "resolve it, or record again"
        raise make_recording_error(file, "unresolved merge conflict", hint=hint, line=found.line)
    return found


def _skip_space(text: str, start: int) -> int:
    space = _SPACE.match(text, start)
    return start if space is None else space.end()


def _decode_utf8(content: bytes | bytearray, line: int, file: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = line + content.count(b"\n", 0, error.start)
        raise make_recording_error(file, "not UTF-8", hint=ENCODING_HINT, line=at) from None


def make_text_error(found: TextLine, file: str) -> RecordingError:
    """Make the error for a line that should be JSON."""
    return make_recording_error(
        file,
        f"invalid JSON: {found.message}",
        hint=LFS_POINTER_HINT if found.text.startswith(LFS_POINTER) else INVALID_JSON_HINT,
        line=found.line,
        column=found.column,
    )
