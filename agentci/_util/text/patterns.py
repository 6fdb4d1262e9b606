"""Patterns: names with ``*`` and ``?``, and regular expressions in linear time, by RE2."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Protocol

from agentci._util.text.escape import replace_surrogates
from agentci.errors import InputError

# What differs from run to run in a text: a UUID, also after `_`, the path of a temporary file, and
# a time since 1970 in seconds to nanoseconds.
UUID: Final = r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F])"
TEMPORARY_PATH: Final = r"(?:/tmp|/var/folders)/[^\s'\"`:,;)]+"
EPOCH: Final = r"\b1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b"


def matches_any(patterns: Sequence[str], name: str) -> bool:
    """Return whether one of the patterns matches the whole name, in the same case."""
    return any(matches_name(pattern, name) for pattern in patterns)


@lru_cache(maxsize=4096)
def matches_name(pattern: str, name: str) -> bool:
    """Return whether a name with ``*`` and ``?`` matches the whole ``name``."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


RE2_HINT = (
    "patterns are RE2 (https://github.com/google/re2/wiki/Syntax): without look-around, "
    "back-references and repeats above 1000"
)


class SafeMatch(Protocol):
    """Where a pattern was found."""

    def span(self, group: int = 0, /) -> tuple[int, int]:
        """Return start and end, as indexes of the text; -1 for a group that took no part."""

    def group(self, group: int = 0, /) -> str:
        """Return the text of a group."""


class SafePattern:
    """A compiled pattern.

    Raises:
        ValueError: RE2 does not accept ``written``; the message says what is wrong in it.
        InputError: google-re2 is not installed.
    """

    __slots__ = ("_compiled", "written")

    def __init__(self, written: str) -> None:
        try:
            import re2  # noqa: PLC0415 (a shared library that few runs need)
        except ImportError as error:
            raise InputError.from_message(
                f"google-re2, which searches patterns, cannot be imported ({error})",
                hint="install it: pip install google-re2",
            ) from None
        options = re2.Options()
        options.log_errors = False  # it would write to stderr
        self.written = written
        try:
            self._compiled = re2.compile(replace_surrogates(written), options)
        except re2.error as error:
            raise ValueError(_describe(error)) from None

    def search(self, text: str) -> SafeMatch | None:
        """Find the first match; None if there is none."""
        found: SafeMatch | None = self._compiled.search(replace_surrogates(text))
        return found

    def finditer(self, text: str) -> list[SafeMatch]:
        """Find all matches that do not overlap, from left to right."""
        return list(self._compiled.finditer(replace_surrogates(text)))

    def matches_whole(self, text: str) -> bool:
        """Return whether the pattern matches all of ``text``."""
        return self._compiled.fullmatch(replace_surrogates(text)) is not None


@lru_cache(maxsize=1024)
def compile_pattern(written: str) -> SafePattern:
    """Compile a pattern once; see ``SafePattern``."""
    return SafePattern(written)


def _describe(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
