"""How much of a page is unfolded, so that it is one screen."""

import math
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from agentci.model.values import replace
from agentci.reports.sections import Section, join_folded

_MARKUP: Final = re.compile(r"\]\([^)\n]*\)|[*\[\\]|<br>|</?summary>")
_CODE: Final = re.compile(r"`+([^`]*)`+")
# Pixels of GitHub's style: a line, an item of a list, a row of a table, a line of code and what a
# block of it adds at each end, a line of a title and of the verdict, the line below the latter, the
# room below a block, and that around all.
_LINE: Final = 21
_ITEM: Final = 3
_ROW: Final = 34
_CODE_LINE: Final = 17
_FENCE: Final = 16
_TITLE: Final = 30
_VERDICT: Final = 26
_RULE: Final = 8
_BLOCK: Final = 16
FRAME: Final = 16
# The width of a line, of what an item of a list is indented, and of the verdict, whose letters are
# larger; that of a letter, one in code, and of what is around code.
_WIDTH: Final = 760
_INDENT: Final = 28
_VERDICT_WIDTH: Final = 450
_LETTER: Final = 6.5
_CODE_LETTER: Final = 7.3
_PADDING: Final = 2
# From here on, letters are wide.
_IDEOGRAPHS: Final = "\u2e80"


def estimate_height(markdown: str) -> int:
    """Estimate the height of Markdown without folded parts on GitHub, in pixels."""
    height = 0
    is_code = False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            is_code = not is_code
            height += _FENCE
        elif is_code:
            height += _CODE_LINE
        elif not line:
            height += _BLOCK
        elif line.startswith("|"):
            height += _ROW * (not line.startswith("| ---"))
        elif line.startswith("## "):
            height += _RULE + _VERDICT * _count_lines(line, _VERDICT_WIDTH)
        elif line.startswith("### "):
            height += _TITLE
        else:
            is_item = line.startswith("- ")
            lines = _count_lines(line, _WIDTH - _INDENT * is_item)
            height += _ITEM * is_item + _LINE * lines
    return height


def is_one_line(item: str) -> bool:
    """Return whether an item of a list is one line."""
    return estimate_height(item.rstrip("\n")) <= _ITEM + _LINE


def fit_item(make: Callable[[int], str], most: int, least: int) -> str:
    """Make an item of a list that is one line, if there is one.

    Args:
        make: makes it of a length in characters of what may be cut.
        most, least: limits of this length; the longest that fits is used.
    """
    fitting = bisect_left(range(least, most + 1), x=True, key=lambda n: not is_one_line(make(n)))
    return make(least + max(fitting - 1, 0))


def _count_lines(line: str, width: int) -> int:
    code = _CODE.findall(line)
    text = _MARKUP.sub("", _CODE.sub("", line))
    letters = _LETTER * _count_letters(text) + _CODE_LETTER * _count_letters("".join(code))
    return math.ceil((letters + _PADDING * len(code)) / width)


def _count_letters(text: str) -> int:
    return len(text) + sum(each >= _IDEOGRAPHS for each in text)


class Part(Struct, frozen=True, kw_only=True):
    """A part of a page, of which more is unfolded at each level from 0.

    Attributes:
        make: its sections at a level.
        most: the last level.
        first: levels that it gets before other parts get one.
        weight: levels that it gets while another part gets one; 0 for a part that gets what room
            the others leave.
    """

    make: Callable[[int], Iterable[Section]]
    most: int = 0
    first: int = 0
    weight: int = 1


def list_whole(parts: Iterable[Part]) -> list[Section]:
    """List the sections of all parts at their last level."""
    return [_keep(each) for part in parts for each in part.make(part.most)]


def fit_parts(parts: Sequence[Part], room: int, max_bytes: int) -> list[Section]:
    """List the sections with as much unfolded as there is room.

    Parts get one level after the other, in turns. What else is folded is joined if there is no room
    for its summaries.

    Args:
        parts: the most important first.
        room: in pixels. What a part has at level 0 is shown if there is none.
        max_bytes: as for ``join_folded``.
    """

    @cache
    def make(place: int, level: int) -> Sequence[Section]:
        return [_keep(each) for each in parts[place].make(level)]

    def list_sections() -> list[Section]:
        return [each for place, level in enumerate(levels) for each in make(place, level)]

    levels = [0] * len(parts)
    height = measure(_join(list_sections(), max_bytes))
    weighted = [place for place, part in enumerate(parts) for _ in range(part.first)]
    weighted += [place for place, part in enumerate(parts) for _ in range(part.weight)]
    last = [place for place, part in enumerate(parts) if not part.weight]
    for turns in (deque(weighted), deque(last)):
        while turns:
            place = turns.popleft()
            if levels[place] < parts[place].most:
                levels[place] += 1
                next_height = measure(_join(list_sections(), max_bytes))
                # A part may be lower with more unfolded: it has no summary if nothing is folded.
                if next_height <= max(room, height):
                    height = next_height
                    turns.append(place)
                else:
                    levels[place] -= 1
    found = list_sections()
    return found if measure(found) <= room else _join(found, max_bytes)


def measure(sections: Iterable[Section]) -> int:
    """Estimate the height of sections, of which the blocks of unfolded ones are sequences."""
    height = 0
    for each in sections:
        if each.summary and each.total:
            height += _BLOCK + _LINE * _count_lines(each.summary, _WIDTH)
        elif each.total:
            height += estimate_height(f"{each.title}{''.join(each.blocks).rstrip()}\n{each.end}")
    return height


def _keep(section: Section) -> Section:
    """Render what is not folded once."""
    return section if section.summary else replace(section, blocks=tuple(section.blocks))


def _join(found: Sequence[Section], max_bytes: int) -> list[Section]:
    folded = [each for each in found if each.summary and not each.stays]
    others = [each for each in found if not any(each is one for one in folded)]
    return [*others, join_folded(folded, max_bytes)]
