"""Keeps foreign text harmless where it is shown: on terminals, in workflow logs, in XML.

Markdown has a module of its own; workflow commands are made in ``agentci.github``.
"""

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def plain(text: str) -> str:
    r"""Keep what a reader can see: no terminal sequences, control or bidi characters.

    Every kind of line end becomes ``\n``, half a surrogate pair becomes U+FFFD; tabs stay.
    """
    if text.isprintable() or not _SUSPECT.search(text):
        return text
    text = _LINE_END.sub("\n", _TERMINAL_SEQUENCE.sub("", text))
    return encodable(_UNSEEN.sub("", text))


def plain_line(text: str) -> str:
    """``plain`` text on one line: runs of line ends, tabs and spaces become one space."""
    return " ".join(plain(text).split())


def inert(text: str) -> str:
    r"""Break what the runner would obey: ``::`` that starts a line, and ``##[`` anywhere.

    A visible space is put in, since .NET skips invisible characters when it looks for strings.
    Only for text whose line ends are ``plain``: the runner also ends a line at a lone ``\r``.
    """
    if "::" in text:
        text = _COMMAND.sub(r"\1: :", text)
    return text.replace("##[", "## [")


def log(text: str) -> str:
    """Text of any origin, on several lines, that may be printed to a workflow's log."""
    return inert(plain(text))


def one_line(text: str) -> str:
    """Text of any origin that may be printed to a workflow's log as one line."""
    return inert(plain_line(text))


def encodable(text: str) -> str:
    """Text that UTF-8 can encode: half a surrogate pair becomes U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub(REPLACEMENT, text)


def xml(text: str) -> str:
    """``plain`` text without the two characters left that XML 1.0 does not allow."""
    return _NOT_IN_XML.sub(REPLACEMENT, plain(text))


# ECMA-48: control sequences, then strings (titles, hyperlinks, ...) to their end or the line's,
# then all other escape sequences; each introduced by ESC or by its one-character form.
_TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\r\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f]"  # what is left of C0 and C1
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # change the order of what is read
)
# All that ``plain`` changes; most text has none of it.
_SUSPECT = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NOT_IN_XML = re.compile(r"[\ufffe\uffff]")

# Before its ``::`` the runner skips white space, and may skip what has no width.
_COMMAND = re.compile(
    r"^((?:[^\S\n]|[\u00ad\u034f\u180e\u200b-\u200f\u2060-\u206f\ufeff])*)::", re.MULTILINE
)
