"""Formats values that changed on one line, so that what differs is never cut off."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text import escape, json_text, truncate
from agentci._util.text.format import format_count
from agentci.model.values import Json

ABSENT: Final = "absent"
ARROW: Final = "\N{RIGHTWARDS ARROW}"
# Of each side of a change, and of all changes of one call.
MAX_SIDE: Final = 60
MAX_CHANGES: Final = 200
# Values below this depth count as one.
MAX_DEPTH: Final = 20
_NUMBER: Final = re.compile(r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)")


class ArgumentChange(Struct, frozen=True):
    """What an argument was expected to be, and what it is, each as text."""

    path: str
    before: str
    after: str

    def __str__(self) -> str:
        """Format ``amount 8.50 EUR → 85.00 EUR``."""
        before, after = shorten_pair(self.before, self.after, MAX_SIDE)
        return f"{truncate.end(self.path, MAX_SIDE)} {before} {ARROW} {after}".lstrip()


def list_changes(before: Json, after: Json, path: str = "") -> Iterator[ArgumentChange]:
    """Yield the differences of two values, leaf by leaf, with paths like ``guests[0].name``."""
    old, new = dict(list_leaves(before, path)), dict(list_leaves(after, path))
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            yield ArgumentChange(name, json_text.dumps_readable(old[name]), ABSENT)
        elif name not in old:
            yield ArgumentChange(name, ABSENT, json_text.dumps_readable(new[name]))
        elif json_text.dumps_readable(old[name]) != json_text.dumps_readable(new[name]):
            yield make_change(name, old[name], new[name])


def list_leaves(value: Json, path: str, depth: int = 0) -> Iterator[tuple[str, Json]]:
    """Yield the path of each value that is not a container, like ``guests[0].name``, and it.

    Below ``MAX_DEPTH``, containers count as one value.
    """
    if isinstance(value, Mapping) and value and depth < MAX_DEPTH:
        for key, inner in value.items():
            yield from list_leaves(inner, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list | tuple) and value and depth < MAX_DEPTH:
        for number, inner in enumerate(value):
            yield from list_leaves(inner, f"{path}[{number}]", depth + 1)
    else:
        yield path, value


def make_change(path: str, before: Json, after: Json) -> ArgumentChange:
    """Make the change of two values; texts are quoted only beside values of another type."""
    if isinstance(before, str) and isinstance(after, str) and before.strip() and after.strip():
        flat = escape.flatten_line(before), escape.flatten_line(after)
        if flat[0] != flat[1]:
            return ArgumentChange(path, *flat)
    return ArgumentChange(path, json_text.dumps_readable(before), json_text.dumps_readable(after))


def format_changes(name: str, changes: Sequence[ArgumentChange]) -> str:
    """Format ``refund: amount 8.50 EUR → 85.00 EUR, currency EUR → USD``.

    What does not fit on a line is counted; the numbers that changed most come first then.
    """
    shown = list(map(str, changes))
    if sum(map(len, shown)) > MAX_CHANGES:
        shown, room = [], MAX_CHANGES
        for text in map(str, sort_by_size(changes)):
            room -= len(text)
            if shown and room < 0:
                break
            shown.append(text)
    more = len(changes) - len(shown)
    rest = f" and {format_count(more, 'more argument')}" if more else ""
    return f"{name}: {', '.join(shown)}{rest}"


def sort_by_size(changes: Sequence[ArgumentChange]) -> list[ArgumentChange]:
    """Put the changes first whose numbers changed by the largest factor."""
    return sorted(changes, key=_measure_change, reverse=True)


def shorten_pair(one: str, other: str, limit: int) -> tuple[str, str]:
    """Truncate two texts to ``limit`` characters that start a few words before they differ."""
    if max(len(one), len(other)) <= limit:
        return one, other
    same = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    return cut_around(one, same, limit), cut_around(other, same, limit)


def cut_around(text: str, at: int, limit: int) -> str:
    """Truncate a text to ``limit`` characters that start a few words before an index."""
    left = max(0, at - limit // 4)
    if left:
        left = max(left, text.find(" ", left, at))
    return _cut(text, left, limit)


def quote_pair(one: str, other: str, limit: int) -> tuple[str, str]:
    """Quote two texts on one line each, shortened like ``shorten_pair``; ``nothing`` if empty."""
    first, second = (repr(each) if each else "nothing" for each in shorten_pair(one, other, limit))
    return first, second


def find_numbers(text: str) -> tuple[list[str], list[str]]:
    """Return the texts around the numbers, of which there is one more, and the numbers."""
    parts = _NUMBER.split(text)
    return parts[::2], parts[1::2]


def read_number(text: str) -> float:
    """Return the value of a number of ``find_numbers``."""
    return float(text.replace(",", ""))


def _cut(text: str, left: int, limit: int) -> str:
    """Cut before and after whole words, unless a word takes a quarter of the text."""
    shown = f"{truncate.ELLIPSIS}{text[left + 1 :]}" if left else text
    if len(shown) > limit and (space := shown.rfind(" ", limit * 3 // 4, limit)) > 0:
        limit = space + 1
    return truncate.short(shown, limit)


def _measure_change(change: ArgumentChange) -> float:
    """Return by which factor the numbers of an argument changed, at most; 0 without numbers."""
    pairs = zip(find_numbers(change.before)[1], find_numbers(change.after)[1], strict=False)
    values = [(read_number(before), read_number(after)) for before, after in pairs]
    return max(
        ((max(pair) + 1e-9) / (min(pair) + 1e-9) for pair in values if pair[0] != pair[1]),
        default=0.0,
    )
