"""Texts as the words that measures count: as machine translation and as ROUGE take them apart."""

import re
import string
from typing import Final

# What is written for these in web pages counts as the character itself.
ENTITIES: Final = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))

# Punctuation is a word of its own, but for the apostrophe; points, commas and hyphens are parts of
# numbers.
_PUNCTUATION: Final = "".join(mark for mark in string.punctuation if mark not in "',-.")
_RULES: Final = (
    (re.compile(f"([{re.escape(_PUNCTUATION)}])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ALPHANUMERIC: Final = re.compile(r"[a-z0-9]+")


def words_13a(text: str) -> list[str]:
    """The words of ``text`` as mteval-v13a, the scorer of the WMT campaigns, counts them.

    Case counts.
    """
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for written, character in ENTITIES:
        text = text.replace(written, character)
    text = f" {text} "
    for pattern, spaced in _RULES:
        text = pattern.sub(spaced, text)
    return text.split()


def words_rouge(text: str) -> list[str]:
    """The words of ``text`` as ROUGE counts them without stemming: runs of a-z and 0-9."""
    return _ALPHANUMERIC.findall(text.lower())
