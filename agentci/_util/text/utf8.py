"""Files that people write, as text: UTF-8 and nothing else."""

import re
from typing import Final

from agentci.errors import InputError
from agentci.model.place import Place

# A file in UTF-16 or UTF-32 begins with one of these, or with ASCII between NULs.
_WIDE_MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_WIDE_ASCII: Final = re.compile(
    rb"\A(?:[\t\n\r -~]\0{1,3}|\0{1,3}[\t\n\r -~])(?:.?\0|\0)", re.DOTALL
)
_SAVE_AS_UTF8: Final = "save it as UTF-8"


def decode(data: bytes, *, file: str) -> str:
    """Decode UTF-8, with or without a byte order mark.

    Raises:
        InputError: the file is in another encoding, or no text at all.
    """
    if data.startswith(_WIDE_MARKS) or _WIDE_ASCII.match(data):
        message = "the file is UTF-16 or UTF-32, not UTF-8"
        raise InputError.of(message, place=Place(file=file), hint=_SAVE_AS_UTF8)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = place_after(data[: error.start].decode("utf-8", "replace"), file=file)
        if b"\0" in data:
            raise InputError.of("the file is binary, not text", place=place) from None
        message = f"the byte 0x{data[error.start]:02X} is not UTF-8"
        raise InputError.of(message, place=place, hint=_guess(data) or _SAVE_AS_UTF8) from None
    if "\0" in text:
        place = place_after(text[: text.index("\0")], file=file)
        raise InputError.of("the file is binary, not text: it holds a NUL", place=place)
    return text


def place_after(before: str, *, file: str) -> Place:
    """Where in a file the character stands that follows ``before``."""
    lines = before.split("\n")
    return Place(file=file, line=len(lines), column=len(lines[-1]) + 1)


def _guess(data: bytes) -> str | None:
    """Name the encoding of what looks like a text of Western Europe."""
    # Latin-1 has no characters from 0x80 to 0x9F; UTF-8 that is merely broken has many.
    if re.search(rb"[\x80-\x9f]", data):
        return None
    return f"it looks like Latin-1; {_SAVE_AS_UTF8}"
