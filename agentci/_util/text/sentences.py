"""Splits texts into sentences: every line by itself, and lines where sentences end."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

# After the full-width signs of Chinese and Japanese there is no space.
# An abbreviation may make two of one sentence, which a judge can still judge.
_END: Final = re.compile(
    r"(?<=[.!?\u2026])\s+|(?<=[.!?\u2026][\"')\]])\s+|(?<=[\u3002\uff01\uff1f])"
)
_NUMBER: Final = re.compile(r"\d+[.)]")
_ROW: Final = "|"


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of ``text`` in order; a table is one, and what has no letters is none."""
    return tuple(each for each in _split_lines(text) if any(map(str.isalnum, each)))


def _split_lines(text: str) -> Iterator[str]:
    lines = (line.strip() for line in text.splitlines())
    for is_table, group in groupby(lines, key=lambda line: line.startswith(_ROW)):
        if is_table:
            yield "\n".join(group)
            continue
        for line in group:
            yield from _split_line(line)


def _split_line(line: str) -> Iterator[str]:
    """The sentences of a line; the number of an item stays with its first one."""
    number = ""
    for part in _END.split(line):
        whole = f"{number} {part.strip()}".strip()
        if _NUMBER.fullmatch(whole):
            number = whole
            continue
        number = ""
        yield whole
