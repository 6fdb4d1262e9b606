"""Formats values like JavaScript, for results that must equal those of JavaScript tools."""

import json
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from agentci._util.text.json_text import make_strict
from agentci.model.values import Json

_INDEX: Final = re.compile("[0-9]{1,9}")
# JavaScript writes larger numbers with an exponent.
MAX_FIXED: Final = 1e21


def format_js_number(value: float) -> str:
    """Format ``3500``, ``0.5``: whole numbers have no decimals."""
    return str(int(value)) if float(value).is_integer() else repr(value)


def format_js_fixed(value: float, digits: int) -> str:
    """Format like ``value.toFixed(digits)``: ties round away from zero."""
    if not abs(value) < MAX_FIXED:
        return repr(float(value)).replace("inf", "Infinity")
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


def stringify_json(value: Json, *, indent: int | None = None) -> str:
    """Format like ``JSON.stringify``: compact, or with ``indent`` spaces per level."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(
        make_strict(_convert_whole_floats(value)),
        ensure_ascii=False,
        indent=indent,
        separators=separators,
    )


def _convert_whole_floats(value: Json) -> Json:
    match value:
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            return {key: _convert_whole_floats(each) for key, each in value.items()}
        case list() | tuple():
            return [_convert_whole_floats(each) for each in value]
        case _:
            return value


def equal_json(one: Json, other: Json) -> bool:
    """Compare deeply: 1 equals 1.0 but not true; lists compare in order, objects by key."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping):
        same = isinstance(other, Mapping) and one.keys() == other.keys()
        return same and all(equal_json(value, other[key]) for key, value in one.items())  # type: ignore[index,call-overload]  # (a mapping, by `same`)
    if isinstance(one, list | tuple):
        same = isinstance(other, list | tuple) and len(one) == len(other)
        return same and all(map(equal_json, one, other))  # type: ignore[arg-type]  # (a list, by `same`)
    return get_javascript_type(one) == get_javascript_type(other) and one == other


def get_javascript_type(value: Json) -> str:
    """Return the value's type as JavaScript's ``typeof`` names it."""
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "object"


def find_at_path(value: Json, path: str) -> tuple[bool, Json]:
    """Return whether a path such as ``items[0].price`` exists, and its value."""
    for step in filter(None, re.split(r"[.\[\]]", path)):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and _INDEX.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return False, None
    return True, value
