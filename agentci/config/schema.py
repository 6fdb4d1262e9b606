"""Make the JSON Schema of configs from their models, and describe its terms for messages."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, Field, create_model

from agentci._util.text import truncate
from agentci._util.text.suggest import MAX_SHOWN, join_with_or, quote_name, suggest_name
from agentci.config.models import EvalConfig
from agentci.config.yaml_scalars import BOOLEAN_WORDS
from agentci.evaluators.evaluator_type import EvaluatorType
from agentci.evaluators.fields import (
    GRADER_PATTERN,
    IMAGE_PATTERN,
    NAME_PATTERN,
    SHA256_PATTERN,
    StrictModel,
)
from agentci.evaluators.metrics.registry import HOSTED_METRICS, JUDGED_METRIC_PURPOSES, METRICS
from agentci.evaluators.registry import EVALUATOR_TYPES
from agentci.model.json import Json

Schema: TypeAlias = dict[str, Any]

_TYPE_NOUNS: Final = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "string": "text",
    "object": "a mapping",
    "null": "nothing",
}
_PATTERN_NOUNS: Final = {
    GRADER_PATTERN: "FILE.py:FUNCTION",
    IMAGE_PATTERN: "the name of an image",
    NAME_PATTERN: "text that is not blank",
    SHA256_PATTERN: "64 hexadecimal digits",
}


def describe_expected(schema: Schema) -> str:
    """The values a schema allows: "a number from 0 to 1", "EXACT, IN_ORDER or ANY_ORDER"."""
    if choices := _find_choices(schema):
        return join_with_or(choices)
    if branches := schema.get("anyOf"):
        return " or ".join(
            describe_expected(each) for each in branches if each.get("type") != "null"
        )
    name = str(schema.get("type", "object"))
    match name:
        case "number" | "integer":
            return f"{_TYPE_NOUNS[name]}{_describe_range(schema)}"
        case "array":
            is_text = schema.get("items", {}).get("type") == "string"
            few = " with at least one item" if schema.get("minItems") else ""
            return f"a list{' of text' if is_text else ''}{few}"
        case _:
            return _PATTERN_NOUNS.get(schema.get("pattern", ""), _TYPE_NOUNS[name])


def describe_value(value: Json, written: str | None) -> str:
    """Describe a value found in a file.

    Args:
        written: its text in the file if it is unquoted.
    """
    match value:
        case str():
            return f"the text {quote_name(value)}" if value else "empty"
        case Mapping():
            return "a mapping"
        case Sequence():
            return "a list" if value else "an empty list"
        case _:
            return _describe_scalar(value, written)


def suggest_fix(schema: Schema, value: Json, written: str | None) -> str | None:
    """Suggest what to write instead, if that can be derived from the value."""
    types = set(_describe_types(schema))
    match value:
        case str():
            return _suggest_text_fix(value, types, _find_choices(schema))
        case bool() | int() | float() if "string" in types and not _find_choices(schema):
            return f'put it in quotes: "{_format_short_number(value, written)}"'
        case int() | float() if (
            not isinstance(value, bool) and _MIN_PERCENT <= value <= _MAX_PERCENT
        ):
            is_share = any(0 < each.get("maximum", 0) <= 1 for each in _iter_alternatives(schema))
            return f"write {value / _MAX_PERCENT:g} for {value:g} percent" if is_share else None
        case _ if "array" in types:
            return "begin every item of a list with `- `"
        case _:
            return None


_MAX_PERCENT: Final = 100
# At or above this, a number given for a share must be a percentage.
_MIN_PERCENT: Final = 10


def _describe_scalar(value: float | None, written: str | None) -> str:
    if value is None:
        return written or "nothing"
    if isinstance(value, bool) and written is not None and written.lower() in BOOLEAN_WORDS:
        return f"{written}, which YAML reads as {json.dumps(value)}"
    return _format_short_number(value, written)


def _format_short_number(value: float, written: str | None) -> str:
    return truncate.short(written or json.dumps(value), MAX_SHOWN)


def _suggest_text_fix(text: str, types: set[str], choices: Sequence[str]) -> str | None:
    if choices:
        return suggest_name(text, choices)
    if types & {"number", "integer"}:
        return _suggest_number_fix(text)
    if "boolean" in types and text.lower() in {"true", "false", *BOOLEAN_WORDS}:
        return "remove the quotes"
    return None


def _suggest_number_fix(text: str) -> str | None:
    if found := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text):
        return f"write {float(found[1]) / _MAX_PERCENT:g}"
    if re.fullmatch(r"\s*\d*,\d+\s*", text):
        return f"write {text.strip().replace(',', '.')}"
    if re.fullmatch(r"\s*[-+]?\d*\.?\d+\s*", text):
        return "remove the quotes"
    return None


def _find_choices(schema: Schema) -> tuple[str, ...]:
    """The only texts that ``schema`` allows; empty if it is not a choice."""
    if "const" in schema:
        return (str(schema["const"]),)
    if "enum" in schema:
        return tuple(map(str, schema["enum"]))
    lists = [_find_choices(branch) for branch in schema.get("anyOf", ())]
    return next((choices for choices in lists if choices), ())


def _describe_range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        return ""
    return f" of at least {low}" if high is None else f" from {low} to {high}"


def _describe_types(schema: Schema) -> Iterator[str]:
    return (str(each["type"]) for each in _iter_alternatives(schema) if "type" in each)


def _iter_alternatives(schema: Schema) -> Iterator[Schema]:
    """The alternatives of a schema, nested alternatives flattened."""
    if "anyOf" not in schema:
        yield schema
    for branch in schema.get("anyOf", ()):
        yield from _iter_alternatives(branch)


JSON_SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID: Final = "config.schema.json"

EvaluatorTypes: TypeAlias = Mapping[str, EvaluatorType[Any]]

# These fields identify one evaluator, so `defaults` cannot set them.
UNSHARED_FIELDS: Final = frozenset({"name", "type", "path", "grader", "ref", "sha256"})


def make_config_schema(types: EvaluatorTypes = EVALUATOR_TYPES) -> Schema:
    """Make the schema of configs with evaluators of ``types``, for editors and for validation."""
    schema = EvalConfig.model_json_schema()
    definitions = schema.setdefault("$defs", {})
    branches = [{"$ref": _add_definition(definitions, each.entry)} for each in types.values()]
    properties = schema["properties"]
    properties["evaluators"]["items"] = {"oneOf": branches}
    properties["defaults"] = {
        "$ref": _add_definition(definitions, make_defaults_model(types)),
        "description": properties["defaults"]["description"],
    }
    names = [*METRICS, *JUDGED_METRIC_PURPOSES, *HOSTED_METRICS]
    definitions["BuiltinEntry"]["properties"]["name"]["examples"] = names
    return {"$schema": JSON_SCHEMA_DIALECT, "$id": SCHEMA_ID, **simplify_schema(schema)}


def make_defaults_model(types: EvaluatorTypes = EVALUATOR_TYPES) -> type[BaseModel]:
    """Make the model of ``defaults``: every field that entries of ``types`` can share."""
    fields: dict[str, Any] = {}
    for each in types.values():
        for name, field in each.entry.model_fields.items():
            optional = Field(default=None, description=field.description)
            if name not in UNSHARED_FIELDS:
                fields.setdefault(name, (field.rebuild_annotation(), optional))
    return create_model("Defaults", __base__=StrictModel, **fields)


def _add_definition(definitions: Schema, model: type[BaseModel]) -> str:
    schema = model.model_json_schema()
    definitions.update(schema.pop("$defs", {}))
    definitions[schema["title"]] = schema
    return f"#/$defs/{schema['title']}"


def simplify_schema(schema: Schema) -> Schema:
    """Remove what does not help in an editor: titles, null defaults and the ``JsonValue`` type."""
    definitions = {name: part for name, part in schema["$defs"].items() if name != "JsonValue"}
    return {key: _simplify_part(part) for key, part in {**schema, "$defs": definitions}.items()}


def _simplify_part(part: Any) -> Any:
    match part:
        case dict():
            return dict(_simplify_items(part))
        case list():
            return [_simplify_part(item) for item in part]
        case _:
            return part


def _simplify_items(part: Schema) -> Iterator[tuple[str, Any]]:
    for key, value in part.items():
        is_title = key == "title" and isinstance(value, str)
        is_no_default = key == "default" and value is None
        if not (is_title or is_no_default or value == "#/$defs/JsonValue"):
            yield key, _simplify_part(value)
