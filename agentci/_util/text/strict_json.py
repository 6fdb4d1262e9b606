"""Decodes JSON that programs and judge models print, and refuses what parsers read differently."""

import json
import math
from collections import Counter
from typing import Final

from agentci._util.text.json_text import MAX_DEPTH, MAX_INTEGER_DIGITS, is_shallow
from agentci._util.text.suggest import quote_name
from agentci.model.json import Json, JsonObject


class StrictJsonError(ValueError):
    """The text is JSON, but not every parser would read it alike; the message names the part."""


def decode_strict_json(text: str) -> Json:
    """Decode JSON text in which every value has only one reading.

    Raises:
        json.JSONDecodeError: it is not JSON.
        StrictJsonError: a key appears twice in one object, a number is not finite or beyond the
            range of floats, or the value is nested more than ``MAX_DEPTH`` levels deep.
    """
    try:
        value: Json = _DECODER.decode(text)
    except RecursionError:
        raise StrictJsonError(_TOO_DEEP) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and not is_shallow(value, MAX_DEPTH):
        raise StrictJsonError(_TOO_DEEP)
    return value


_TOO_DEEP: Final = f"the JSON is nested more than {MAX_DEPTH} levels deep"


def _make_object(members: list[tuple[str, Json]]) -> JsonObject:
    value = dict(members)
    if len(value) != len(members):
        [(twice, _)] = Counter(name for name, _ in members).most_common(1)
        raise StrictJsonError(f"the key {quote_name(twice)} appears twice in one object")
    return value


def _parse_float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _reject_number(digits)


def _parse_int(digits: str) -> int:
    # An integer beyond the range of floats cannot be compared with one, and with more digits than
    # Python parses it has no value at all.
    if len(digits) > MAX_INTEGER_DIGITS:
        _reject_number(digits)
    return int(digits)


def _reject_number(digits: str) -> float:
    raise StrictJsonError(f"the number {quote_name(digits)} is out of range")


def _reject_constant(name: str) -> float:
    raise StrictJsonError(f"`{name}` is not a JSON number; use null")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_make_object,
    parse_float=_parse_float,
    parse_int=_parse_int,
    parse_constant=_reject_constant,
)
