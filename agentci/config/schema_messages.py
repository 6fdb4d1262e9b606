"""JSON Schema in plain words: what a value must be, what it is instead, and the way out."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from agentci._util.text import truncate
from agentci._util.text.suggest import MAX_SHOWN, did_you_mean, one_of, quoted
from agentci.config.yaml_scalars import SWITCHES
from agentci.evaluators.fields import GRADER_PATTERN, IMAGE_PATTERN, NAME_PATTERN, SHA256_PATTERN
from agentci.model.json import Json

Schema: TypeAlias = dict[str, Any]

_TYPES: Final = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "string": "text",
    "object": "a mapping",
    "null": "nothing",
}
_PATTERNS: Final = {
    GRADER_PATTERN: "FILE.py:FUNCTION",
    IMAGE_PATTERN: "the name of an image",
    NAME_PATTERN: "text that is not blank",
    SHA256_PATTERN: "64 hexadecimal digits",
}


def expected(schema: Schema) -> str:
    """What a value must be: "a number from 0 to 1", "EXACT, IN_ORDER or ANY_ORDER"."""
    if choices := _choices_of(schema):
        return one_of(choices)
    if branches := schema.get("anyOf"):
        return " or ".join(expected(each) for each in branches if each.get("type") != "null")
    name = str(schema.get("type", "object"))
    match name:
        case "number" | "integer":
            return f"{_TYPES[name]}{_range(schema)}"
        case "array":
            is_text = schema.get("items", {}).get("type") == "string"
            few = " with at least one item" if schema.get("minItems") else ""
            return f"a list{' of text' if is_text else ''}{few}"
        case _:
            return _PATTERNS.get(schema.get("pattern", ""), _TYPES[name])


def shown(value: Json, written: str | None) -> str:
    """What a value is.

    Args:
        written: its text in the file, where that stands without quotes.
    """
    match value:
        case str():
            return f"the text {quoted(value)}" if value else "empty"
        case Mapping():
            return "a mapping"
        case Sequence():
            return "a list" if value else "an empty list"
        case _:
            return _shown_scalar(value, written)


def way_out(schema: Schema, value: Json, written: str | None) -> str | None:
    """What to write instead, where that can be told from what stands there."""
    types = set(_types(schema))
    match value:
        case str():
            return _way_out_of_text(value, types, _choices_of(schema))
        case bool() | int() | float() if "string" in types and not _choices_of(schema):
            return f'put it in quotes: "{_short(value, written)}"'
        case int() | float() if not isinstance(value, bool) and _LEAST_PERCENT <= value <= _PERCENT:
            is_share = any(0 < each.get("maximum", 0) <= 1 for each in _leaves(schema))
            return f"write {value / _PERCENT:g} for {value:g} percent" if is_share else None
        case _ if "array" in types:
            return "begin every item of a list with `- `"
        case _:
            return None


_PERCENT: Final = 100
# From here on a share is surely meant in percent.
_LEAST_PERCENT: Final = 10


def _shown_scalar(value: float | None, written: str | None) -> str:
    if value is None:
        return written or "nothing"
    if isinstance(value, bool) and written is not None and written.lower() in SWITCHES:
        return f"{written}, which YAML reads as {json.dumps(value)}"
    return _short(value, written)


def _short(value: float, written: str | None) -> str:
    return truncate.short(written or json.dumps(value), MAX_SHOWN)


def _way_out_of_text(text: str, types: set[str], choices: Sequence[str]) -> str | None:
    if choices:
        return did_you_mean(text, choices)
    if types & {"number", "integer"}:
        return _way_out_of_number(text)
    if "boolean" in types and text.lower() in {"true", "false", *SWITCHES}:
        return "remove the quotes"
    return None


def _way_out_of_number(text: str) -> str | None:
    if found := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text):
        return f"write {float(found[1]) / _PERCENT:g}"
    if re.fullmatch(r"\s*\d*,\d+\s*", text):
        return f"write {text.strip().replace(',', '.')}"
    if re.fullmatch(r"\s*[-+]?\d*\.?\d+\s*", text):
        return "remove the quotes"
    return None


def _choices_of(schema: Schema) -> tuple[str, ...]:
    """The only texts that ``schema`` allows; empty where it is not about a choice."""
    if "const" in schema:
        return (str(schema["const"]),)
    if "enum" in schema:
        return tuple(map(str, schema["enum"]))
    lists = [_choices_of(branch) for branch in schema.get("anyOf", ())]
    return next((choices for choices in lists if choices), ())


def _range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        return ""
    return f" of at least {low}" if high is None else f" from {low} to {high}"


def _types(schema: Schema) -> Iterator[str]:
    return (str(each["type"]) for each in _leaves(schema) if "type" in each)


def _leaves(schema: Schema) -> Iterator[Schema]:
    """The alternatives of a schema, each without alternatives of its own."""
    if "anyOf" not in schema:
        yield schema
    for branch in schema.get("anyOf", ()):
        yield from _leaves(branch)
