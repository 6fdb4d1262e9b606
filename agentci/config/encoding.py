"""The bytes of a config file as text."""

import re

from agentci.errors import InputError
from agentci.model.place import Place

# A file in UTF-16 or UTF-32 begins with one of these, or with ASCII between NULs.
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_WIDE_ASCII = re.compile(rb"\A(?:[\t\n\r -~]\0{1,3}|\0{1,3}[\t\n\r -~])(?:.?\0|\0)", re.DOTALL)

_SAVE_AS_UTF8 = "save it as UTF-8"

# All that YAML 1.1 leaves out of its printable characters.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def decode(data: bytes, *, file: str) -> str:
    """Decode UTF-8, with or without a byte order mark.

    Raises:
        InputError: the file is in another encoding, or no text at all.
    """
    if data.startswith(_WIDE_MARKS) or _WIDE_ASCII.match(data):
        raise InputError.of(
            "the file is UTF-16 or UTF-32, not UTF-8", place=Place(file=file), hint=_SAVE_AS_UTF8
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place(file, data[: error.start].decode("utf-8", "replace"))
        byte = data[error.start]
        if b"\0" in data:
            raise InputError.of("the file is binary, not text", place=place) from None
        message = f"the byte 0x{byte:02X} is not UTF-8"
        raise InputError.of(message, place=place, hint=_guess(data) or _SAVE_AS_UTF8) from None
    if "\0" in text:
        place = _place(file, text[: text.index("\0")])
        raise InputError.of("the file is binary, not text: it holds a NUL", place=place)
    if found := _UNPRINTABLE.search(text):
        place = _place(file, text[: found.start()])
        message = f"the character U+{ord(found[0]):04X} may not stand in a YAML file"
        raise InputError.of(
            message, place=place, hint="write it as an escape in double quotes, or remove it"
        )
    return text


def _guess(data: bytes) -> str | None:
    """Name the encoding of what looks like a text of Western Europe."""
    # Latin-1 has no characters from 0x80 to 0x9F; UTF-8 that is merely broken has many.
    if re.search(rb"[\x80-\x9f]", data):
        return None
    return f"it looks like Latin-1; {_SAVE_AS_UTF8}"


def _place(file: str, before: str) -> Place:
    lines = before.split("\n")
    return Place(file=file, line=len(lines), column=len(lines[-1]) + 1)
