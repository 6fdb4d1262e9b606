"""The JSON documents of a recording: one, one a line, or several in a row."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Final

from agentci.errors import RecordingError
from agentci.formats.base import unreadable
from agentci.formats.content import Bytes
from agentci.model.json import Json
from agentci.telemetry.foreign import DECODER, mended

BROKEN_HINT: Final = "a recording is JSON, or JSON Lines; was it cut off while it was written?"
DEEP_HINT: Final = "no recording of an agent looks like this"
ENCODING_HINT: Final = "save it as UTF-8"

_WORD: Final = re.compile(rb"\S")
_SPACE: Final = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One JSON value, and the line that it starts on."""

    value: Json
    line: int


def documents_of(content: Bytes, *, file: str) -> Iterator[Document]:
    """The documents, one at a time, so that only one of them is in memory.

    Args:
        content: text in UTF-8 that is not blank.

    Raises:
        RecordingError: a document is no JSON; nothing of the recording can be trusted then.
    """
    start = _next_word(content, 0)
    end = content.find(b"\n", start)
    if 0 <= end < _next_word(content, end) and _is_json(content[start:end]):
        return _lines(content, start, file)
    return _in_a_row(_text(content, 1, file), file)


def too_deep(file: str, line: int) -> RecordingError:
    """The error of a document that is nested deeper than any recording of an agent."""
    return unreadable(file, f"line {line} is nested too deeply", hint=DEEP_HINT, line=line)


def _next_word(content: Bytes, start: int) -> int:
    """Where the next word starts; -1 where nothing but space is left."""
    word = _WORD.search(content, start)
    return -1 if word is None else word.start()


def _is_json(chunk: Bytes) -> bool:
    try:
        DECODER.decode(mended(chunk.decode()))
    except (ValueError, RecursionError):
        return False
    return True


def _lines(content: Bytes, start: int, file: str) -> Iterator[Document]:
    line = 1 + content.count(b"\n", 0, start)
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        text = _text(content[start:end], line, file).strip()
        if text:
            yield Document(value=_value(text, line, file), line=line)
        start, line = end + 1, line + 1


def _value(text: str, line: int, file: str) -> Json:
    try:
        value: Json = DECODER.decode(mended(text))
    except JSONDecodeError as error:
        raise _broken(error, line, file) from None
    except RecursionError:
        raise too_deep(file, line) from None
    return value


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


def _text(content: Bytes, line: int, file: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = line + content.count(b"\n", 0, error.start)
        raise unreadable(file, f"line {at} is not UTF-8", hint=ENCODING_HINT, line=at) from None


def _broken(error: JSONDecodeError, line: int, file: str) -> RecordingError:
    return unreadable(
        file,
        f"line {line} is no JSON: {error.msg.lower()}",
        hint=BROKEN_HINT,
        line=line,
        column=error.colno,
    )
