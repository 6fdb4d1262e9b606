"""The JSON documents of a recording: one, one a line, or several in a row."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from json import JSONDecodeError
from typing import Final

from msgspec import Struct

from agentci._util.text.quick_json import decoded
from agentci.errors import RecordingError
from agentci.model.json import Json
from agentci.recordings.telemetry.json_input import DECODER, mended
from agentci.recordings.trace_format import unreadable

BROKEN_HINT: Final = "a recording is JSON, or JSON Lines; was it cut off while it was written?"
POINTER: Final = "version https://git-lfs."
POINTER_HINT: Final = "this is a pointer of Git LFS: check out with `lfs: true`, or `git lfs pull`"
DEEP_HINT: Final = "no recording of an agent looks like this"
ENCODING_HINT: Final = "save it as UTF-8"

_WORD: Final = re.compile(rb"\S")
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class Document(Struct, frozen=True, kw_only=True):
    """One JSON value, and the line that it starts on."""

    value: Json
    line: int


def documents_of(content: Iterator[bytes], *, file: str) -> Iterator[Document]:
    """The documents, one at a time; where they stand a line each, only one of them is in memory.

    Args:
        content: text in UTF-8, in chunks of any size.

    Raises:
        RecordingError: it is blank, or a document is no JSON; nothing of the recording can be
            trusted then.
    """
    head, line = _begun(content)
    if _next_word(head, 0) < 0:
        raise unreadable(file, "is empty", hint="did the run that was to record it fail?")
    if line and _is_json(line):
        yield from _lines(chain([bytes(head)], content), file)
    else:
        for chunk in content:
            head += chunk
        yield from _in_a_row(_text(head, 1, file), file)


def too_deep(file: str, line: int) -> RecordingError:
    """The error of a document that is nested deeper than any recording of an agent."""
    return unreadable(file, f"line {line} is nested too deeply", hint=DEEP_HINT, line=line)


def _begun(content: Iterator[bytes]) -> tuple[bytearray, bytearray]:
    """Read until a word follows on the first line that has any; that line, empty if none does."""
    head = bytearray()
    start = end = -1
    for chunk in content:
        known = len(head)
        head += chunk
        if start < 0:
            start = _next_word(head, known)
        if start >= 0 > end:
            end = head.find(b"\n", max(start, known))
        if end >= 0 and _next_word(head, max(end, known)) >= 0:
            return head, head[start:end]
    return head, bytearray()


def _next_word(content: bytearray, start: int) -> int:
    """Where the next word starts; -1 where nothing but space is left."""
    word = _WORD.search(content, start)
    return -1 if word is None else word.start()


def _is_json(chunk: bytearray) -> bool:
    try:
        decoded(mended(chunk.decode()), DECODER)
    except (ValueError, RecursionError):
        return False
    return True


def _lines(content: Iterable[bytes], file: str) -> Iterator[Document]:
    for line, raw in enumerate(_split(content), start=1):
        text = _text(raw, line, file).strip()
        if text:
            yield Document(value=_value(text, line, file), line=line)


def _split(content: Iterable[bytes]) -> Iterator[bytes]:
    """The lines; one may be many chunks long."""
    begun: list[bytes] = []
    for chunk in content:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join((*begun, line))
            begun.clear()
        begun.append(rest)
    yield b"".join(begun)


def _value(text: str, line: int, file: str) -> Json:
    try:
        return decoded(mended(text), DECODER)
    except JSONDecodeError as error:
        raise _broken(error, line, file) from None
    except RecursionError:
        raise too_deep(file, line) from None


def _in_a_row(text: str, file: str) -> Iterator[Document]:
    text = mended(text)
    line, last = 1, 0
    start = _skip(text, 0)
    while start < len(text):
        line, last = line + text.count("\n", last, start), start
        value, end = _next(text, start, line, file)
        yield Document(value=value, line=line)
        start = _skip(text, end)


def _next(text: str, start: int, line: int, file: str) -> tuple[Json, int]:
    try:
        return DECODER.raw_decode(text, start)
    except JSONDecodeError as error:
        raise _broken(error, error.lineno, file) from None
    except RecursionError:
        raise too_deep(file, line) from None


def _skip(text: str, start: int) -> int:
    space = _SPACE.match(text, start)
    return start if space is None else space.end()


def _text(content: bytes | bytearray, line: int, file: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = line + content.count(b"\n", 0, error.start)
        raise unreadable(file, f"line {at} is not UTF-8", hint=ENCODING_HINT, line=at) from None


def _broken(error: JSONDecodeError, line: int, file: str) -> RecordingError:
    return unreadable(
        file,
        f"line {line} is no JSON: {error.msg.lower()}",
        hint=POINTER_HINT if error.doc.startswith(POINTER) else BROKEN_HINT,
        line=line,
        column=error.colno,
    )
