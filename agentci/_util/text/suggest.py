"""Names that people write, in messages: quoted, listed, and the one that was meant."""

from collections.abc import Sequence
from typing import Final

from agentci._util.text import truncate

MAX_SHOWN: Final = 40
SHOWN_DIGITS: Final = 12

# Of the letters, that two names are likely to be one.
_MIN_SIMILARITY: Final = 0.65


def quote_name(name: str) -> str:
    """A name on one line, cut where it is long."""
    return repr(truncate.short(name, MAX_SHOWN))


def join_with_or(names: Sequence[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def suggest_name(name: str, known: Sequence[str]) -> str | None:
    """The known name that ``name`` was probably meant to be, as a hint."""
    meant = find_nearest(name, known)
    return None if meant is None else f"did you mean {meant!r}?"


def find_nearest(name: str, known: Sequence[str]) -> str | None:
    """The first of the names most like ``name``; case counts for nothing, a hyphen as ``_``."""
    from difflib import get_close_matches  # noqa: PLC0415 (most runs have no use for it)

    plain = {_normalize_name(each): each for each in reversed(known)}
    close = get_close_matches(_normalize_name(name), plain, n=1, cutoff=_MIN_SIMILARITY)
    return plain[close[0]] if close else None


def shorten_commit(commit: str) -> str:
    """The first digits of a commit, or of the digest that stands for one: enough to tell it by."""
    return commit.removeprefix("sha256:")[:SHOWN_DIGITS]


def _normalize_name(name: str) -> str:
    return name.lower().replace("-", "_")
