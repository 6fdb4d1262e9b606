"""Foreign text inside Markdown that it cannot break: GitHub's dialect, its HTML included."""

import re
from collections.abc import Iterable

from agentci._util.text import escape, truncate

MAX_PROSE = 600
MAX_CODE = 300
MAX_FENCE = 4_000

# Keeps a name from being linked, and its bearer from being called, where an escape would not:
# mentions and references are looked for in the finished page.
_ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"


def prose(text: str, limit: int = MAX_PROSE) -> str:
    """Text on one line, as it is, wherever prose may stand: a paragraph, an item, a cell."""
    written = _SPECIAL.sub(r"\\\g<0>", _line(text, limit))
    written = _LINK.sub(r"\1\\\2", _BLOCK_START.sub(r"\1\\\2", written))
    return _unlinked(_named(written))


def code(text: str, limit: int = MAX_CODE) -> str:
    """Text on one line in the type of code, in a cell too."""
    shown = _line(text, limit)
    if shown and not _HARD_IN_CODE.search(shown):
        return f"`{shown}`"
    return f"<code>{_PUNCTUATION.sub(_numbered, _unlinked(shown))}</code>"


def html(text: str, limit: int = MAX_PROSE) -> str:
    """Text on one line inside a block of HTML, where Markdown is not read."""
    return _unlinked(_named(_line(text, limit)))


def fence(text: str, limit: int = MAX_FENCE) -> str:
    """Text on its lines as a block of code that nothing in it can close."""
    body = escape.log(truncate.characters(text, limit)).strip("\n")
    longest = max((len(run) for run in _TICKS.findall(body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}\n{body}\n{ticks}\n"


def row(cells: Iterable[str]) -> str:
    """A row of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |\n"


def folded(title: str, body: str, *, unfolded: bool) -> str:
    """Markdown that opens on a click; the title is HTML already."""
    tag = "<details open>" if unfolded else "<details>"
    return f"{tag}\n<summary>{title}</summary>\n\n{body.rstrip()}\n\n</details>\n\n"


# An underscore inside a word stands for nothing else.
_SPECIAL = re.compile(r"[\\`*{}\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
_LINK = re.compile(r"(https?|ftp|mailto|xmpp|www)([:.])", re.IGNORECASE)
_BLOCK_START = re.compile(r"^(\d*)([-+=#.)])")
_MENTION = re.compile(r"@|#(?=\d)|(?i:\bGH-)(?=\d)")
_HARD_IN_CODE = re.compile(r"[`|]")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_TICKS = re.compile(r"`+")


def _line(text: str, limit: int) -> str:
    return escape.one_line(truncate.characters(text, limit))


def _named(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _numbered(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


def _unlinked(text: str) -> str:
    return _MENTION.sub(rf"\g<0>{_ZERO_WIDTH_SPACE}", text)
