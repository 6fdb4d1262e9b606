"""Splits texts into sentences: at line ends, and at sentence ends within a line."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

# Chinese and Japanese have no space after their full-width punctuation.
# An abbreviation may split a sentence in two, which a judge can still grade.
_END: Final = re.compile(
    r"(?<=[.!?\u2026])\s+|(?<=[.!?\u2026][\"')\]])\s+|(?<=[\u3002\uff01\uff1f])"
)
_NUMBER: Final = re.compile(r"\d+[.)]")
_ROW: Final = "|"


def split_sentences(text: str) -> tuple[str, ...]:
    """Split ``text`` into sentences; a table is one, and parts without letters or digits none."""
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
    """Split a line into sentences; the number of a list item stays with its first one."""
    number = ""
    for part in _END.split(line):
        whole = f"{number} {part.strip()}".strip()
        if _NUMBER.fullmatch(whole):
            number = whole
            continue
        number = ""
        yield whole
