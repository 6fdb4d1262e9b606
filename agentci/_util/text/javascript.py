"""Formats values like JavaScript, for results that must equal those of JavaScript tools."""

import json
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal

from agentci._util.text.json_text import make_strict
from agentci.model.json import Json


def format_js_number(value: float) -> str:
    """Format ``3500``, ``0.5``: whole numbers have no decimals."""
    return str(int(value)) if float(value).is_integer() else repr(value)


def format_js_fixed(value: float, digits: int) -> str:
    """Format like ``value.toFixed(digits)``: ties round away from zero."""
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
