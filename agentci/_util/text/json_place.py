"""Where in a JSON text a value stands, so that a message can point at the line to mend."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from json import JSONDecoder
from typing import Final, NamedTuple

Step = str | int

BLANKS: Final = re.compile(r"[ \t\n\r]*")
DECODER: Final = JSONDecoder()


class Member(NamedTuple):
    """One entry of an object or a list; ``offset`` is its key's, or its own in a list."""

    key: Step
    offset: int
    value_offset: int


class Places:
    """All places in one text; each object and list on the way to them is looked through once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._members: dict[int, dict[Step, Member]] = {}

    def at(self, path: Sequence[Step]) -> tuple[int, int]:
        """Find the line and column of the value at ``path``, or of its key, counted from 1.

        Never fails: where the path leads nowhere, it is the place of its last step that exists.
        """
        offset = value_offset = _skip_blanks(self._text, 0)
        for step in path:
            if value_offset not in self._members:
                found = members(self._text, value_offset)
                self._members[value_offset] = {member.key: member for member in found}
            member = self._members[value_offset].get(step)
            if member is None:
                break
            offset, value_offset = member.offset, member.value_offset
        return self.of_offset(offset)

    def of_offset(self, offset: int) -> tuple[int, int]:
        """The line and column of a character."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


def members(text: str, offset: int) -> Iterator[Member]:
    """List what the object or list at ``offset`` holds, as far as it can be read.

    Keys that stand twice come twice; anything but an object or a list holds nothing.
    """
    opening = text[offset : offset + 1]
    if opening not in ("{", "["):
        return
    position = _skip_blanks(text, offset + 1)
    number = 0
    try:
        while text[position] not in "}]":
            key, start = number, position
            if opening == "{":
                key, position = DECODER.raw_decode(text, position)
                if not isinstance(key, str):
                    return
                position = _skip_blanks(text, position, ":")
            yield Member(key, start, position)
            _, position = DECODER.raw_decode(text, position)
            position = _skip_blanks(text, position, ",")
            number += 1
    except (ValueError, IndexError, RecursionError):
        return


def _skip_blanks(text: str, position: int, mark: str = "") -> int:
    """Go over blanks and, where it follows, over ``mark`` and the blanks behind it."""
    position = _end_of_blanks(text, position)
    if mark and text.startswith(mark, position):
        return _end_of_blanks(text, position + 1)
    return position


def _end_of_blanks(text: str, position: int) -> int:
    blanks = BLANKS.match(text, position)
    return blanks.end() if blanks else position
