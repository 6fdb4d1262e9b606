"""Resolve plain YAML scalars, with notes and errors where YAML 1.1 and 1.2 disagree."""

import math
import re
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from functools import reduce

from msgspec import Struct

_DATE_PATTERN = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DATETIME_PATTERN = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?:[Tt]|[ \t]+)"
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]*))?"
    r"(?:[ \t]*(?P<zone>Z|(?P<sign>[-+])(?P<hours>[0-9]{1,2})(?::(?P<minutes>[0-9]{2}))?))?"
)


def format_iso_date(text: str) -> str | None:
    """Format a date or time in ISO 8601, as agentevals passes it to evaluators; else None."""
    try:
        if found := _DATE_PATTERN.fullmatch(text):
            return date(int(found[1]), int(found[2]), int(found[3])).isoformat()
        if found := _DATETIME_PATTERN.fullmatch(text):
            return _parse_datetime(found).isoformat().replace("+00:00", "Z")
    except ValueError:
        # A date that does not exist, such as 30 February, is text.
        return None
    return None


def _parse_datetime(found: re.Match[str]) -> datetime:
    return datetime(
        int(found["year"]),
        int(found["month"]),
        int(found["day"]),
        int(found["hour"]),
        int(found["minute"]),
        int(found["second"]),
        int((found["fraction"] or "")[:6].ljust(6, "0")),
        _parse_timezone(found),
    )


def _parse_timezone(found: re.Match[str]) -> timezone | None:
    if found["zone"] == "Z":
        return UTC
    if found["sign"] is None:
        return None
    offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    return timezone(-offset if found["sign"] == "-" else offset)


# Longer numbers are mistakes, and slow to convert.
MAX_NUMBER_CHARACTERS = 1000

# YAML 1.1 reads these as booleans, YAML 1.2 and most people as text.
BOOLEAN_WORDS = {"yes": True, "on": True, "no": False, "off": False}


class ResolvedScalar(Struct, frozen=True, kw_only=True):
    """The value of a plain scalar.

    Attributes:
        error: why the text has no usable value; ``hint`` suggests a fix.
        note: what the user should know about the value.
    """

    value: str | float | bool | None
    error: str | None = None
    note: str | None = None
    hint: str | None = None


def resolve_plain_scalar(text: str) -> ResolvedScalar:
    """Resolve an unquoted value."""
    if text in _CONSTANTS:
        return ResolvedScalar(value=_CONSTANTS[text])
    if text[0] in "0123456789+-.":
        for pattern, read in _SCALAR_PATTERNS:
            if found := pattern.fullmatch(text):
                is_short = len(text) <= MAX_NUMBER_CHARACTERS or read is _resolve_date
                return read(found) if is_short else _make_length_error(text)
    return ResolvedScalar(value=text)


def _list_case_variants(word: str) -> tuple[str, str, str]:
    return word, word.capitalize(), word.upper()


_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", *_list_case_variants("null"))),
    **{
        text: value
        for word, value in {"true": True, "false": False, **BOOLEAN_WORDS}.items()
        for text in _list_case_variants(word)
    },
}


def _make_length_error(text: str) -> ResolvedScalar:
    return _make_scalar_error(
        f"a number of {len(text)} characters is too long", "put it in quotes if it is a string"
    )


def _resolve_integer(found: re.Match[str]) -> ResolvedScalar:
    digits = found[0].replace("_", "")
    value = int(digits, 0)
    return ResolvedScalar(value=value) if _is_in_range(value) else _make_size_error(found[0])


def _resolve_octal(found: re.Match[str]) -> ResolvedScalar:
    value = int(found[0], 8)
    if not _is_in_range(value):
        return _make_size_error(found[0])
    return ResolvedScalar(
        value=value,
        note=f"{found[0]} is read as the number {value} (YAML 1.2)",
        hint="put it in quotes if it is a string",
    )


def _reject_leading_zero(found: re.Match[str]) -> ResolvedScalar:
    text = found[0]
    return _make_scalar_error(
        f"{text} is ambiguous: YAML 1.1 and 1.2 read the leading zero differently",
        f'write the number without the zero, or "{text}" in quotes if it is a string',
    )


def _reject_sexagesimal(found: re.Match[str]) -> ResolvedScalar:
    text = found[0]
    parts = text.replace("_", "").lstrip("+-").split(":")
    seconds = reduce(lambda so_far, part: so_far * 60 + float(part), parts, 0.0)
    return _make_scalar_error(
        f"{text} is ambiguous: the number {seconds:.15g} in YAML 1.1 (base 60), a string in 1.2",
        f'write the number, or "{text}" in quotes if it is a string',
    )


def _resolve_decimal(found: re.Match[str]) -> ResolvedScalar:
    return _resolve_finite(found[0].replace("_", ""), notice=None)


def _resolve_scientific(found: re.Match[str]) -> ResolvedScalar:
    """Read ``1e3`` as a number; YAML 1.1 reads it as text, since it requires a dot and a sign."""
    text = found[0]
    return _resolve_finite(
        text, notice=f"{text} is read as the number {float(text):.15g} (YAML 1.2)"
    )


def _resolve_finite(digits: str, *, notice: str | None) -> ResolvedScalar:
    value = float(digits)
    if math.isinf(value):
        return _make_size_error(digits)
    hint = None if notice is None else "put it in quotes if it is a string"
    return ResolvedScalar(value=value, note=notice, hint=hint)


def _is_in_range(value: int) -> bool:
    """Return whether an integer can be compared and combined with floats."""
    return abs(value) <= sys.float_info.max


def _make_size_error(text: str) -> ResolvedScalar:
    return _make_scalar_error(
        f"{text} is too large for a number", "put it in quotes if it is a string"
    )


def _reject_not_finite(found: re.Match[str]) -> ResolvedScalar:
    return _make_scalar_error(
        f"{found[0]} is not supported: JSON, which evaluators read, has no such number",
        f'write a number, or "{found[0]}" in quotes if it is a string',
    )


def _resolve_date(found: re.Match[str]) -> ResolvedScalar:
    text = found[0]
    value = format_iso_date(text) or text
    if value == text:
        return ResolvedScalar(value=value)
    return ResolvedScalar(
        value=value,
        note=f"{text} is a date in YAML, read as {value}",
        hint="put it in quotes to keep it unchanged",
    )


def _make_scalar_error(message: str, hint: str) -> ResolvedScalar:
    return ResolvedScalar(value=None, error=message, hint=hint)


_ScalarResolver = Callable[[re.Match[str]], ResolvedScalar]

# Tried in this order. The YAML 1.1 forms are from https://yaml.org/type/.
_SCALAR_PATTERNS: tuple[tuple[re.Pattern[str], _ScalarResolver], ...] = (
    (
        re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]*[0-9a-fA-F][0-9a-fA-F_]*)"),
        _resolve_integer,
    ),
    (re.compile(r"[-+]?0b[01_]*[01][01_]*"), _resolve_integer),
    (re.compile(r"[-+]?0o[0-7]+"), _resolve_octal),
    (re.compile(r"[-+]?0[0-9_]+"), _reject_leading_zero),
    (re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"), _reject_sexagesimal),
    (re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*"), _reject_sexagesimal),
    (re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?"), _resolve_decimal),
    (re.compile(r"\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"), _resolve_decimal),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"), _resolve_scientific),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"), _reject_not_finite),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"), _resolve_date),
)
