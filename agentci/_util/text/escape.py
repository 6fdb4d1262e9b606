"""Escapes untrusted text for terminals, workflow logs, XML and Markdown."""

import re
from collections.abc import Iterable

from agentci._util.text import truncate

MAX_PROSE = 600
MAX_CODE = 300
MAX_FENCE = 4_000

# Prevents links to and notifications of mentioned users and issues. Escapes do not: GitHub looks
# for mentions and references in the rendered page.
_ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"


def markdown_prose(text: str, limit: int = MAX_PROSE) -> str:
    """Escape text to one line of Markdown prose: a paragraph, a list item or a table cell.

    What is between single backticks is code, as in messages of agentci.
    """
    parts = (
        markdown_code(part, limit) if at % 2 else _escape_prose(part)
        for at, part in enumerate(_CODE.split(_line(text, limit)))
    )
    return _BLOCK_START.sub(r"\1\\\2", "".join(parts))


def _escape_prose(text: str) -> str:
    written = _LINK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", text))
    return _prevent_links(_escape_html(written))


def markdown_code(text: str, limit: int = MAX_CODE) -> str:
    """Format text as inline code on one line, also for table cells."""
    shown = _line(text, limit)
    if shown and not _NEEDS_CODE_TAG.search(shown):
        return f"`{shown}`"
    return f"<code>{_PUNCTUATION.sub(_escape_numeric, _prevent_links(shown))}</code>"


def markdown_html(text: str, limit: int = MAX_PROSE) -> str:
    """Escape text to one line inside an HTML block, where Markdown is not parsed."""
    return _prevent_links(_escape_html(_line(text, limit)))


def markdown_fence(text: str, limit: int = MAX_FENCE, *, language: str = "") -> str:
    """Format text as a code block that its content cannot close."""
    body = escape_for_log(truncate.characters(text, limit)).strip("\n")
    longest = max((len(run) for run in _TICKS.findall(body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{body}\n{ticks}\n"


def markdown_row(cells: Iterable[str]) -> str:
    """Format a table row; the cells are already Markdown."""
    return f"| {' | '.join(cells)} |\n"


def markdown_details(title: str, body: str) -> str:
    """Format Markdown as a folded section; the title is already HTML."""
    return f"<details>\n<summary>{title}</summary>\n\n{body.rstrip()}\n\n</details>\n\n"


# An underscore inside a word has no meaning in Markdown.
_SPECIAL = re.compile(r"[\\`*{}\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
_LINK = re.compile(r"(https?|ftp|mailto|xmpp|www)([:.])", re.IGNORECASE)
_BLOCK_START = re.compile(r"^(\d*)([-+=#.)])")
_MENTION = re.compile(r"@|#(?=\d)|(?i:\bGH-)(?=\d)")
_NEEDS_CODE_TAG = re.compile(r"[`|]")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
# Between single backticks, which no other backtick touches.
_CODE = re.compile(r"(?<!`)`([^`\s|](?:[^`\n|]*[^`\s|])?)`(?!`)")
_TICKS = re.compile(r"`+")


def _line(text: str, limit: int) -> str:
    return escape_for_log_line(truncate.characters(text, limit))


def _escape_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _escape_numeric(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


def _prevent_links(text: str) -> str:
    return _MENTION.sub(rf"\g<0>{_ZERO_WIDTH_SPACE}", text)


REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def remove_control(text: str) -> str:
    r"""Remove terminal sequences, control characters and bidi characters.

    All line ends become ``\n``, and unpaired surrogates become U+FFFD; tabs stay.
    """
    if text.isprintable() or not _SUSPECT.search(text):
        return text
    text = _LINE_END.sub("\n", _TERMINAL_SEQUENCE.sub("", text))
    return replace_surrogates(_INVISIBLE.sub("", text))


def flatten_line(text: str) -> str:
    """Reduce ``remove_control`` text to one line: each run of whitespace becomes one space."""
    return " ".join(remove_control(text).split())


def neutralize_commands(text: str) -> str:
    r"""Break workflow commands: ``::`` at the start of a line, and ``##[`` anywhere.

    Inserts a visible space, since .NET ignores invisible characters in string searches. Only for
    text from ``remove_control``: the runner also ends a line at ``\r``.
    """
    if "::" in text:
        text = _COMMAND.sub(r"\1: :", text)
    return text.replace("##[", "## [")


def escape_for_log(text: str) -> str:
    """Escape untrusted multi-line text for the workflow log."""
    return neutralize_commands(remove_control(text))


def escape_for_log_line(text: str) -> str:
    """Escape untrusted text for the workflow log as one line."""
    return neutralize_commands(flatten_line(text))


def replace_surrogates(text: str) -> str:
    """Replace unpaired surrogates by U+FFFD, so that UTF-8 can encode the text."""
    return text if text.isascii() else _SURROGATE.sub(REPLACEMENT, text)


def escape_for_xml(text: str) -> str:
    """Apply ``remove_control`` and replace the two other characters that XML 1.0 forbids."""
    return _NOT_IN_XML.sub(REPLACEMENT, remove_control(text))


# ECMA-48: control sequences, then strings (titles, hyperlinks, ...) to their end or the line's,
# then all other escape sequences; each introduced by ESC or by its one-character form.
_TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\r\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f]"  # the rest of C0 and C1
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # change the reading order
)
# Everything that ``remove_control`` changes; most text has none of it.
_SUSPECT = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NOT_IN_XML = re.compile(r"[\ufffe\uffff]")

# The runner skips whitespace before ``::``, and may skip zero-width characters.
_COMMAND = re.compile(
    r"^((?:[^\S\n]|[\u00ad\u034f\u180e\u200b-\u200f\u2060-\u206f\ufeff])*)::", re.MULTILINE
)
