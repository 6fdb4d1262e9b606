"""Names in messages: quoted, listed, or suggested for a misspelled one."""

from collections.abc import Sequence
from typing import Final

from agentci._util.text import truncate

MAX_SHOWN: Final = 40
SHOWN_DIGITS: Final = 12

# Share of equal letters above which one name is probably a misspelling of the other.
_MIN_SIMILARITY: Final = 0.65


def quote_name(name: str) -> str:
    """Quote a name on one line, truncated if long."""
    return repr(truncate.short(name, MAX_SHOWN))


def join_with_or(names: Sequence[str]) -> str:
    """Join names: ``a``, ``a or b``, ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def suggest_name(name: str, known: Sequence[str]) -> str | None:
    """Suggest the known name that ``name`` probably means, as a hint."""
    meant = find_nearest(name, known)
    return None if meant is None else f"did you mean {meant!r}?"


def find_nearest(name: str, known: Sequence[str]) -> str | None:
    """Find the first of the names most similar to ``name``, ignoring case; ``-`` equals ``_``."""
    from difflib import get_close_matches  # noqa: PLC0415 (most runs do not need it)

    plain = {_normalize_name(each): each for each in reversed(known)}
    close = get_close_matches(_normalize_name(name), plain, n=1, cutoff=_MIN_SIMILARITY)
    return plain[close[0]] if close else None


def shorten_commit(commit: str) -> str:
    """Shorten a commit, or the sha256 digest in its place, to its first digits."""
    return commit.removeprefix("sha256:")[:SHOWN_DIGITS]


def _normalize_name(name: str) -> str:
    return name.lower().replace("-", "_")
