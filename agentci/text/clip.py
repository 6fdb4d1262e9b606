"""Cuts text to a length, and says how much was cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentci.text.words import count


def characters(text: str, limit: int) -> str:
    """At most ``limit`` characters of ``text``, the note on the rest included."""
    if len(text) <= limit:
        return text
    kept = text[: max(0, limit - len(_note(len(text), "character")))]
    return (kept + _note(len(text) - len(kept), "character"))[:limit]


def utf8(text: str, limit: int) -> str:
    """At most ``limit`` bytes of ``text`` in UTF-8, the note on the rest included."""
    return _encoded(text, limit, "utf-8", 1)


def utf16(text: str, limit: int) -> str:
    """At most ``limit`` code units of ``text`` in UTF-16, as .NET and JavaScript count."""
    return _encoded(text, limit, "utf-16-le", 2)


def listed(items: Sequence[str], limit: int) -> tuple[str, ...]:
    """At most ``limit`` of ``items``; where some are left out, one line more counts them."""
    if len(items) <= limit:
        return tuple(items)
    return (*items[:limit], f"\N{HORIZONTAL ELLIPSIS} and {len(items) - limit:,} more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What fitted of a sequence of blocks: their text, and how many they are."""

    text: str
    blocks: int


def whole(blocks: Iterable[str], limit_bytes: int) -> Kept:
    """As many blocks from the start as fit in UTF-8; none is cut, none after a gap is taken."""
    kept: list[str] = []
    size = 0
    for block in blocks:
        size += len(block.encode("utf-8", "surrogatepass"))
        if size > limit_bytes:
            break
        kept.append(block)
    return Kept(text="".join(kept), blocks=len(kept))


def _encoded(text: str, limit: int, encoding: str, unit_bytes: int) -> str:
    if len(text) * 4 <= limit * unit_bytes:
        return text
    unit = "byte" if unit_bytes == 1 else "character"
    raw = text.encode(encoding, "surrogatepass")
    if len(raw) <= limit * unit_bytes:
        return text
    longest_note = _note(len(raw) // unit_bytes, unit).encode(encoding)
    kept = raw[: max(0, limit * unit_bytes - len(longest_note))].decode(encoding, "ignore")
    left = (len(raw) - len(kept.encode(encoding))) // unit_bytes
    noted = (kept + _note(left, unit)).encode(encoding)
    return noted[: limit * unit_bytes].decode(encoding, "ignore")


def _note(left: int, unit: str) -> str:
    return f"\N{HORIZONTAL ELLIPSIS} ({count(left, unit)} more)"
