"""Names in messages: quoted, listed, or suggested for a misspelled one."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from agentci._util.text import truncate

MAX_SHOWN: Final = 40
SHOWN_DIGITS: Final = 12

# Share of equal letters above which one name is probably a misspelling of the other.
_MIN_SIMILARITY: Final = 0.65

# Names of fewer letters differ by one without being misspelled; longer ones may have two errors.
_MIN_LETTERS: Final = 5
_MIN_LETTERS_FOR_TWO: Final = 14
_WORD: Final = re.compile(r"[A-Z]*[a-z]+|[A-Z]+|[^\W\d_]+")
_DIGITS: Final = re.compile(r"\d+")


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


def find_misspelled(name: str, known: Iterable[str]) -> str | None:
    """Find the name that ``name`` is a misspelling of, where similar names may be correct, too.

    Names of which a word starts with another letter (``get_user``, ``set_user``), or that have
    other numbers, are different names.
    """
    return next((each for each in known if each != name and _is_misspelled(name, each)), None)


def _is_misspelled(name: str, meant: str) -> bool:
    words, meant_words = (_WORD.findall(each) for each in (name, meant))
    given, right = ("".join(each).lower() for each in (words, meant_words))
    if _DIGITS.findall(name) != _DIGITS.findall(meant):
        return False
    if given == right:
        return bool(given)
    compared = len(words) if len(words) == len(meant_words) else 1
    starts = zip(words[:compared], meant_words[:compared], strict=False)
    if any(one[0].lower() != other[0].lower() for one, other in starts):
        return False
    from rapidfuzz.distance import OSA  # noqa: PLC0415 (few runs have unknown names)

    letters = min(len(given), len(right))
    allowed = 0 if letters < _MIN_LETTERS else 1 if letters < _MIN_LETTERS_FOR_TWO else 2
    # Letters that are inserted, removed, replaced, or swapped with the next one.
    return OSA.distance(given, right) <= allowed


def shorten_commit(commit: str) -> str:
    """Shorten a commit, or a sha256 digest instead of one, to its first digits."""
    return commit.removeprefix("sha256:")[:SHOWN_DIGITS]


def _normalize_name(name: str) -> str:
    return name.lower().replace("-", "_")
