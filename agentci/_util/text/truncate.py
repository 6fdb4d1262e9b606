"""Truncates text, with a note of how much was removed."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_count

ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"
_TRACEBACK: Final = "Traceback (most recent call last):"


def characters(text: str, limit: int) -> str:
    """Truncate ``text`` to ``limit`` characters, including a note on the rest."""
    if len(text) <= limit:
        return text
    kept = text[: max(0, limit - len(_format_note(len(text))))]
    return (kept + _format_note(len(text) - len(kept)))[:limit]


def middle(text: str, limit: int) -> str:
    """Truncate ``text`` to ``limit`` characters in the middle; twice as much of the end is kept.

    For program output: the first line names the program, the last lines have the error.
    """
    if len(text) <= limit:
        return text
    room = max(0, limit - len(_format_gap(len(text), "character")))
    head, tail = text[: room // 3], text[len(text) - (room - room // 3) :]
    return f"{head}{_format_gap(len(text) - room, 'character')}{tail}"[:limit]


def utf16(text: str, limit: int) -> str:
    """Truncate ``text`` to ``limit`` UTF-16 code units, as .NET and JavaScript count."""
    if 2 * len(text) <= limit:
        return text
    raw = text.encode(_UTF16, "surrogatepass")
    if len(raw) <= 2 * limit:
        return text
    longest_note = _format_note(len(raw) // 2)
    kept = raw[: max(0, 2 * (limit - len(longest_note)))].decode(_UTF16, "ignore")
    left = (len(raw) - len(kept.encode(_UTF16))) // 2
    noted = (kept + _format_note(left)).encode(_UTF16)
    return noted[: 2 * limit].decode(_UTF16, "ignore")


def short(text: str, limit: int) -> str:
    """Truncate ``text`` to ``limit`` characters, the last one an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}{ELLIPSIS}"


def end(text: str, limit: int) -> str:
    """Truncate the start of ``text`` to leave ``limit`` characters, the first one an ellipsis.

    The ellipsis also marks where part of a secret may be: see ``agentci._util.text.secrets``.
    """
    return text if len(text) <= limit else f"{ELLIPSIS}{text[len(text) - limit + 1 :]}"


def ends(text: str, limit: int) -> str:
    """Truncate ``text`` to ``limit`` characters with an ellipsis in the middle."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}{ELLIPSIS}{text[len(text) - (limit - 1) // 2 :]}"


def distinct(names: Sequence[str], limit: int) -> tuple[str, ...]:
    """Truncate names like ``short``, but different ones in the middle or not if all look equal."""
    for cut in (short, ends):
        shown = tuple(cut(name, limit) for name in names)
        if len({*shown}) == len({*names}):
            return shown
    return tuple(names)


def quote_truncated(text: str, limit: int) -> str:
    """Quote at most ``limit`` characters of ``text`` on one line; ``nothing`` if it is empty."""
    return repr(characters(text, limit)) if text else "nothing"


def truncate_list(items: Sequence[str], limit: int) -> tuple[str, ...]:
    """Truncate a list to ``limit`` items, plus an item with the number of omitted ones."""
    if len(items) <= limit:
        return tuple(items)
    return (*items[:limit], format_omitted(len(items) - limit))


def truncate_lines(lines: Sequence[str], limit: int) -> tuple[str, ...]:
    """Keep ``limit`` lines, the first one and the last ones, with a note between them."""
    if len(lines) <= limit:
        return tuple(lines)
    left = len(lines) - limit
    return (*lines[:1], _format_gap(left, "line").strip(), *lines[left + 1 :])


def join_first_and_last(lines: Sequence[str]) -> str:
    """Join the first and the last line, with an ellipsis for those between them.

    Of a Python traceback, the last line is the exception, and its header says nothing.
    """
    shown = (*(line.removesuffix(f" {_TRACEBACK}") for line in lines[:1]), *lines[1:][-1:])
    between = f" {ELLIPSIS} " if len(lines) > len(shown) else " "
    return between.join(shown)


def format_omitted(left: int) -> str:
    """Format the number of omitted items: ``… and 7 more``."""
    return f"{ELLIPSIS} and {left:,} more"


def count_utf8_bytes(text: str) -> int:
    """Count the bytes of ``text`` in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


class TruncatedBlocks(Struct, frozen=True, kw_only=True):
    """The blocks that fit into a limit: their text and their number."""

    text: str
    blocks: int


def take_blocks(blocks: Iterable[str], limit_bytes: int) -> TruncatedBlocks:
    """Take blocks from the start while they fit in UTF-8; no block is truncated or left out."""
    kept: list[str] = []
    taken = 0
    for block in blocks:
        taken += count_utf8_bytes(block)
        if taken > limit_bytes:
            break
        kept.append(block)
    return TruncatedBlocks(text="".join(kept), blocks=len(kept))


_UTF16 = "utf-16-le"


def _format_gap(left: int, noun: str) -> str:
    return f" {ELLIPSIS} ({format_count(left, noun)} left out) {ELLIPSIS} "


def _format_note(left: int) -> str:
    return f"{ELLIPSIS} ({format_count(left, 'character')} more)"
