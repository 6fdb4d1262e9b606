"""Parses untrusted JSON into plain values.

Numbers that JSON does not have (NaN, 1e999) become null, and lone surrogates become U+FFFD, because
neither can be written again.
"""

import json
import math
import re
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Final

import msgspec

from agentci._util.text.json_text import MAX_INTEGER_DIGITS, decode_json, is_shallow
from agentci.model.values import Json, JsonObject

MAX_DEPTH: Final = 64
INT64_LIMIT: Final = 2**63
# A tuple, because `isinstance` with a union type builds the union on every call.
_NUMERIC: Final = (int, float, str)

_SURROGATE_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def replace_lone_surrogates(text: str) -> str:
    """Replace escapes of lone surrogates in JSON text, keeping its length and all positions."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _SURROGATE_ESCAPE.sub(lambda escape: "\\ufffd" if escape["lone"] else escape[0], text)


def parse_nested_json(text: str) -> Json:
    """Parse JSON text inside a recording.

    Raises:
        ValueError: if it is not JSON, or is nested deeper than ``MAX_DEPTH``.
    """
    try:
        value = decode_json(replace_lone_surrogates(text), LENIENT_DECODER)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and not is_shallow(value, MAX_DEPTH):
        raise ValueError("nested too deeply")
    if (name := find_repeated_key(text, value)) is not None:
        raise ValueError(f"key {name!r} appears twice")
    return value


def find_repeated_key(text: str, value: Json) -> str | None:
    """Return a key that appears twice in one object of a JSON text; None if there is none.

    Decoders keep only the last value. Counting the keys again in the encoded value takes a
    fraction of the time of a decoder that looks at each.

    Args:
        value: the decoded text.
    """
    try:
        keys = msgspec.json.encode(value).count(b'":')
    except (ValueError, TypeError, OverflowError, RecursionError):
        keys = -1
    if keys == _count_keys(text):
        return None
    try:
        _KEY_CHECKER.decode(text)
    except _RepeatedKeyError as error:
        return str(error)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return None


def _count_keys(text: str) -> int | None:
    """Count the keys in a JSON text; None if it may have keys that are written in another way.

    Single characters are searched for first, as that is much faster.
    """
    spaced = " :" in text
    if (
        (spaced and "  :" in text)
        or ("\\" in text and r"\u0022" in text)
        or ("\t" in text and "\t:" in text)
        or ("\n" in text and "\n:" in text)
        or ("\r" in text and "\r:" in text)
    ):
        return None
    return text.count('":') + (text.count('" :') if spaced else 0)


class _RepeatedKeyError(Exception):
    pass


def _check_keys(members: list[tuple[str, Json]]) -> None:
    seen: set[str] = set()
    for name, _ in members:
        if name in seen:
            raise _RepeatedKeyError(name)
        seen.add(name)


def _ignore(_: str) -> None:
    return None


_KEY_CHECKER: Final = json.JSONDecoder(
    object_pairs_hook=_check_keys, parse_float=_ignore, parse_int=_ignore, parse_constant=_ignore
)


def parse_json_or_text(text: str) -> Json:
    """Return the value of JSON text, or the text itself if it is not JSON."""
    try:
        return parse_nested_json(text)
    except ValueError:
        return text


def parse_value(raw: Json) -> Json:
    """Return the value of JSON text; text that is not JSON, or only ``null``, stays unchanged."""
    value = parse_json_or_text(raw) if isinstance(raw, str) else raw
    return raw if value is None else value


def parse_argument_text(text: str) -> Json:
    """Return the arguments in a text; None if they are JSON that was cut off.

    Nothing and ``null`` mean that there are none, and other text is an argument of its own.
    Malformed JSON has no arguments, as in agentevals 0.11.0.
    """
    stripped = text.strip()
    if stripped in ("", "null"):
        return {}
    try:
        return parse_nested_json(stripped)
    except JSONDecodeError as error:
        if not stripped.startswith(("{", "[")):
            return text
        return None if is_cut_off(error) else {}
    except ValueError:
        return None


def is_cut_off(error: JSONDecodeError) -> bool:
    """Return whether invalid JSON may be the beginning of valid JSON."""
    text = error.doc.rstrip()
    if text.endswith(("}", "]")):
        return False
    rest = len(text) - error.pos
    return rest <= _LONGEST_LITERAL or error.msg.startswith("Unterminated string")


_LONGEST_LITERAL: Final = len("false")


def iterate_objects(value: Json) -> Iterator[JsonObject]:
    """Iterate over the objects in a list; yields nothing for other values."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield item


def parse_int64(value: Json) -> int | None:
    """Parse a number or its text as a 64-bit integer, truncating; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, _NUMERIC):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        number = _parse_float_as_int(value)
    return number if -INT64_LIMIT <= number < INT64_LIMIT else None


def parse_finite_float(value: Json) -> float | None:
    """Parse a number or its text as a float; None for anything else, including NaN and infinity."""
    if isinstance(value, bool) or not isinstance(value, _NUMERIC):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _parse_float_as_int(value: float | str) -> int:
    number = parse_finite_float(value)
    return INT64_LIMIT if number is None else int(number)


def _float(text: str) -> float | None:
    return parse_finite_float(text)


def _int(text: str) -> int | None:
    # Like a float beyond its range, with which it could not be compared.
    return None if len(text) > MAX_INTEGER_DIGITS else int(text)


def _constant(_: str) -> None:
    return None


LENIENT_DECODER: Final = json.JSONDecoder(
    parse_float=_float, parse_int=_int, parse_constant=_constant
)
