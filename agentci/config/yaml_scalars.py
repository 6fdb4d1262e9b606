"""What YAML takes a value without quotes for, and where its two versions disagree.

YAML 1.1, which PyYAML and so agentevals read, and YAML 1.2, which editors and most people have in
mind, give different values to some texts. Where one of them is surely meant it is taken, and a
notice says so; where the reader cannot know, the text is refused.
"""

import math
import re
from collections.abc import Callable
from functools import reduce

from msgspec import Struct

from agentci.config.yaml_dates import iso_date

# Of a number; what is longer is a mistake, and work to convert.
MAX_CHARACTERS = 1000

# True and false to YAML 1.1, text to YAML 1.2 and to most people.
SWITCHES = {"yes": True, "on": True, "no": False, "off": False}


class Reading(Struct, frozen=True, kw_only=True):
    """What a text is taken for.

    Attributes:
        refusal: why it is taken for nothing, with ``hint`` as the way out.
        notice: what the user should know about the value.
    """

    value: str | float | bool | None
    refusal: str | None = None
    notice: str | None = None
    hint: str | None = None


def read_plain(text: str) -> Reading:
    """Read a value that stands without quotes."""
    if text in _WORDS:
        return Reading(value=_WORDS[text])
    if text[0] in "0123456789+-.":
        for pattern, read in _FORMS:
            if found := pattern.fullmatch(text):
                is_short = len(text) <= MAX_CHARACTERS or read is _date
                return read(found) if is_short else _endless(text)
    return Reading(value=text)


def _spellings(word: str) -> tuple[str, str, str]:
    return word, word.capitalize(), word.upper()


_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", *_spellings("null"))),
    **{
        text: value
        for word, value in {"true": True, "false": False, **SWITCHES}.items()
        for text in _spellings(word)
    },
}


def _endless(text: str) -> Reading:
    return _refused(
        f"a number of {len(text)} characters is too long", "put it in quotes if it is text"
    )


def _integer(found: re.Match[str]) -> Reading:
    digits = found[0].replace("_", "")
    return Reading(value=int(digits, 0))


def _octal(found: re.Match[str]) -> Reading:
    value = int(found[0], 8)
    return Reading(
        value=value,
        notice=f"{found[0]} is read as the number {value}, as YAML 1.2 does",
        hint="put it in quotes if it is text",
    )


def _leading_zero(found: re.Match[str]) -> Reading:
    text = found[0]
    return _refused(
        f"{text} has a leading zero, which YAML 1.1 and 1.2 read as different values",
        f'write the number without the zero, or "{text}" in quotes if it is text',
    )


def _sexagesimal(found: re.Match[str]) -> Reading:
    text = found[0]
    parts = text.replace("_", "").lstrip("+-").split(":")
    seconds = reduce(lambda so_far, part: so_far * 60 + float(part), parts, 0.0)
    return _refused(
        f"{text} is the number {seconds:.15g} to YAML 1.1 (base 60), and text to YAML 1.2",
        f'write the number, or "{text}" in quotes if it is text',
    )


def _decimal(found: re.Match[str]) -> Reading:
    return _finite(found[0].replace("_", ""), notice=None)


def _scientific(found: re.Match[str]) -> Reading:
    """Read ``1e3``: text to YAML 1.1, which wants a dot and a sign."""
    text = found[0]
    return _finite(
        text, notice=f"{text} is read as the number {float(text):.15g}, as YAML 1.2 does"
    )


def _finite(digits: str, *, notice: str | None) -> Reading:
    value = float(digits)
    if math.isinf(value):
        return _refused(f"{digits} is too large for a number", "put it in quotes if it is text")
    hint = None if notice is None else "put it in quotes if it is text"
    return Reading(value=value, notice=notice, hint=hint)


def _not_finite(found: re.Match[str]) -> Reading:
    return _refused(
        f"{found[0]} cannot be used: evaluators read JSON, which has no such number",
        f'write a number, or "{found[0]}" in quotes if it is text',
    )


def _date(found: re.Match[str]) -> Reading:
    text = found[0]
    value = iso_date(text) or text
    if value == text:
        return Reading(value=value)
    return Reading(
        value=value,
        notice=f"{text} is a date to YAML, and read as {value}",
        hint="put it in quotes to keep it as it is",
    )


def _refused(message: str, hint: str) -> Reading:
    return Reading(value=None, refusal=message, hint=hint)


_Reader = Callable[[re.Match[str]], Reading]

# In the order of trial; the forms of YAML 1.1 are those of https://yaml.org/type/.
_FORMS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]*[0-9a-fA-F][0-9a-fA-F_]*)"), _integer),
    (re.compile(r"[-+]?0b[01_]*[01][01_]*"), _integer),
    (re.compile(r"[-+]?0o[0-7]+"), _octal),
    (re.compile(r"[-+]?0[0-9_]+"), _leading_zero),
    (re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"), _sexagesimal),
    (re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*"), _sexagesimal),
    (re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?"), _decimal),
    (re.compile(r"\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"), _decimal),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"), _scientific),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"), _not_finite),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"), _date),
)
