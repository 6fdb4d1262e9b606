"""Make the JSON Schema of configs from their models, and describe its errors as problems."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import BaseModel, Field, create_model

from agentci._util.text import truncate
from agentci._util.text.format import DURATION_PATTERN
from agentci._util.text.suggest import (
    MAX_SHOWN,
    find_nearest,
    join_with_or,
    quote_name,
    suggest_name,
)
from agentci.config.discovery import CONFIG_KEYS, EVAL_SET_KEY
from agentci.config.models import EvalConfig
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.config.yaml_parse import BOOLEAN_WORDS
from agentci.evaluators.checks.names import SWITCHES
from agentci.evaluators.evaluator_type import EvaluatorType
from agentci.evaluators.fields import (
    COST_PATTERN,
    GRADER_PATTERN,
    IMAGE_PATTERN,
    NAME_PATTERN,
    SHA256_PATTERN,
    VARIABLE_PATTERN,
    StrictModel,
)
from agentci.evaluators.metrics import HOSTED_METRICS, JUDGED_METRIC_PURPOSES, METRICS
from agentci.evaluators.registry import EVALUATOR_TYPES
from agentci.model.values import Json, JsonObject, Problem

Schema: TypeAlias = dict[str, Any]

JSON_SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID: Final = "config.schema.json"

EvaluatorTypes: TypeAlias = Mapping[str, EvaluatorType[Any]]

# These fields identify one evaluator, so `defaults` cannot set them.
UNSHARED_FIELDS: Final = frozenset({"name", "type", "path", "grader", "ref", "sha256"})


def make_config_schema() -> Schema:
    """Make the schema of whole configs, for editors."""
    schema = EvalConfig.model_json_schema()
    definitions = schema.setdefault("$defs", {})
    branches = [
        {"$ref": _add_definition(definitions, each.entry)} for each in EVALUATOR_TYPES.values()
    ]
    properties = schema["properties"]
    properties["evaluators"]["items"] = {"oneOf": branches}
    properties["defaults"] = {
        "$ref": _add_definition(definitions, make_defaults_model(EVALUATOR_TYPES)),
        "description": properties["defaults"]["description"],
    }
    schema["anyOf"] = [{"required": [key]} for key in (*CONFIG_KEYS, EVAL_SET_KEY)]
    properties["checks"]["items"] = make_check_schema(definitions)
    names = [*METRICS, *JUDGED_METRIC_PURPOSES, *HOSTED_METRICS]
    definitions["BuiltinEntry"]["properties"]["name"]["examples"] = names
    return {"$schema": JSON_SCHEMA_DIALECT, "$id": SCHEMA_ID, **simplify_schema(schema)}


def make_check_schema(definitions: Schema) -> Schema:
    """The schema of an item of ``checks``: its name with its value, or the long form."""
    from agentci.evaluators.checks.registry import CHECKS  # noqa: PLC0415 (only for whole schemas)

    references = [_add_definition(definitions, each.entry) for each in CHECKS.values()]
    values: Schema = {}
    for reference in references:
        own = definitions[reference.rsplit("/", 1)[-1]]
        check = own["properties"]["check"]
        # The description of the check is that of its short form.
        value = {**own["properties"]["value"], "description": own["description"]}
        values.update(dict.fromkeys(check.get("enum", [check.get("const")]), value))
    short = {
        "type": "object",
        "description": "A check and its value.",
        "properties": values,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    names = {"enum": [*SWITCHES], "description": "A check whose value is `true`."}
    return {"anyOf": [short, names, *({"$ref": reference} for reference in references)]}


def make_defaults_model(types: EvaluatorTypes) -> type[BaseModel]:
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


if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

# Gets an unknown key, the path of its mapping and the known keys; returns a hint.
KeyHint: TypeAlias = Callable[[str, KeyPath, Sequence[str]], str | None]


def suggest_key(key: str, _path: KeyPath, known: Sequence[str]) -> str:
    """Suggest the known key that ``key`` probably means, or list the known keys."""
    return suggest_name(key, known) or (
        f"known keys: {', '.join(name for name in known if name.islower())}"
    )


def find_schema_problems(
    document: YamlDocument, schema: Schema, *, at: KeyPath, noun: str, key_hint: KeyHint
) -> Iterator[Problem]:
    """Find all schema errors in one part of a document.

    Args:
        schema: the schema of the part.
        at: the path of the part.
        noun: the kind of the part in messages: "evaluator", "case".
        key_hint: suggests what to do about an unknown key.
    """
    # Loaded only to describe errors, because most runs have none.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    reader = _SchemaErrorReader(document, at=at, noun=noun, key_hint=key_hint)
    for error in Draft202012Validator(schema).iter_errors(document.value(at)):
        yield from reader.find_problems(error)


class _SchemaErrorReader:
    def __init__(
        self, document: YamlDocument, *, at: KeyPath, noun: str, key_hint: KeyHint
    ) -> None:
        self._document = document
        self._at = at
        self._noun = noun
        self._key_hint = key_hint

    def find_problems(self, error: "ValidationError") -> Iterator[Problem]:
        """Describe ``error``; for a union, describe only the alternative that was meant."""
        path: KeyPath = (*self._at, *error.absolute_path)
        schema = error.schema if isinstance(error.schema, dict) else {}
        match error.validator:
            case "oneOf" if "discriminator" in schema:
                yield from self._tagged_problems(error, schema, path)
            case "anyOf" if deeper := [each for each in error.context or () if _is_deeper(each)]:
                for each in deeper:
                    yield from self.find_problems(each)
            case "additionalProperties":
                yield from self._unknown_keys(schema, path)
            case "required":
                yield from self._missing_keys(schema, path)
            case _:
                yield self._wrong_value(schema, path)

    def _tagged_problems(
        self, error: "ValidationError", schema: Schema, path: KeyPath
    ) -> Iterator[Problem]:
        """Read only the schema branch selected by the discriminator key."""
        key, mapping = (schema["discriminator"][name] for name in ("propertyName", "mapping"))
        branches = {mapping[tag]: tag for tag in mapping}
        tags = [branches[each["$ref"]] for each in schema["oneOf"]]
        value = self._document.value(path)
        if not isinstance(value, Mapping):
            yield self._wrong_value(schema, path)
        elif key not in value:
            yield from self._missing_keys({"required": [key]}, path)
        elif value[key] in tags:
            for each in error.context or ():
                if each.schema_path[0] == tags.index(value[key]):
                    yield from self.find_problems(each)
        else:
            yield self._wrong_value({"enum": tags}, (*path, key))

    def _unknown_keys(self, schema: Schema, path: KeyPath) -> Iterator[Problem]:
        properties = schema["properties"]
        known = [name for name, each in properties.items() if not each.get("deprecated")]
        own = tuple(schema.get("patternProperties", {}))
        for key in self._mapping(path):
            if key not in properties and not any(re.search(pattern, key) for pattern in own):
                yield Problem(
                    message=f"unknown key {quote_name(key)}",
                    place=self._document.place_of((*path, key), key=True),
                    hint=self._key_hint(key, path, known),
                )

    def _missing_keys(self, schema: Schema, path: KeyPath) -> Iterator[Problem]:
        mapping, owner = self._mapping(path), self._format_subject(path)
        # A misspelled key is reported as such.
        is_closed = schema.get("additionalProperties") is False
        unknown = [key for key in mapping if is_closed and key not in schema["properties"]]
        for key in schema["required"]:
            if key not in mapping and not any(find_nearest(each, (key,)) for each in unknown):
                examples = schema.get("properties", {}).get(key, {}).get("examples")
                example = _write_yaml(examples[0]) if examples else "..."
                yield Problem(
                    message=f"{owner} has no `{key}`",
                    place=self._document.place_of(path),
                    hint=f"add `{key}: {example}`",
                )

    def _format_subject(self, path: KeyPath) -> str:
        """The name of the value at ``path``, relative to the list item that the part is in.

        Such an item is called by its own name, if it has one.
        """
        if path == self._at and isinstance((0, *path)[-1], int):
            mapping = self._mapping(path)
            name = mapping.get("name", mapping.get("id"))
            if isinstance(name, str):
                return f"{self._noun} {quote_name(name)}"
            return f"{'an' if self._noun[0] in 'aeiou' else 'a'} {self._noun}"
        indexes = [index for index, step in enumerate(self._at) if isinstance(step, int)]
        steps = path[indexes[-1] + 1 :] if indexes else path
        dotted = f"`{'.'.join(name for name in steps if isinstance(name, str))}`"
        return f"item {steps[-1] + 1} of {dotted}" if isinstance(steps[-1], int) else dotted

    def _wrong_value(self, schema: Schema, path: KeyPath) -> Problem:
        value, written = self._document.value(path), self._document.plain_text(path)
        required = f"be {_describe_expected(schema)}, not {describe_value(value, written)}"
        if value == "" and "string" in _describe_types(schema) and not _find_choices(schema):
            required = "not be empty"
        return Problem(
            message=f"{self._format_subject(path)} must {required}",
            place=self._document.place_of(path),
            hint=_suggest_fix(schema, value, written) or _show_example(schema, path),
        )

    def _mapping(self, path: KeyPath) -> JsonObject:
        value = self._document.value(path)
        return value if isinstance(value, Mapping) else {}


def _is_deeper(error: "ValidationError") -> bool:
    """Whether the error is inside an alternative, so that this alternative was meant."""
    return bool(error.path) or error.validator in ("additionalProperties", "required")


_TYPE_NOUNS: Final = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "string": "a string",
    "object": "a mapping",
    "null": "null",
}
_PATTERN_NOUNS: Final = {
    GRADER_PATTERN: "FILE.py:FUNCTION",
    IMAGE_PATTERN: "an image name",
    NAME_PATTERN: "a string that is not blank",
    COST_PATTERN: "US dollars such as 0.05 or $0.05",
    DURATION_PATTERN: "a time such as 5s, 800ms or 1m30s",
    VARIABLE_PATTERN: "the name of an environment variable",
    SHA256_PATTERN: "64 hexadecimal digits",
}


MAX_LISTED_CHOICES: Final = 16


def _describe_expected(schema: Schema) -> str:
    """The values that a schema allows: "a number from 0 to 1", "EXACT, IN_ORDER or ANY_ORDER"."""
    if choices := _find_choices(schema):
        is_long = len(choices) > MAX_LISTED_CHOICES
        return f"one of {len(choices)} names" if is_long else join_with_or(choices)
    if branches := schema.get("anyOf"):
        return join_with_or(
            [_describe_expected(each) for each in branches if each.get("type") != "null"]
        )
    name = str(schema.get("type", "object"))
    match name:
        case "number" | "integer":
            return f"{_TYPE_NOUNS[name]}{_describe_range(schema)}"
        case "array":
            is_text = schema.get("items", {}).get("type") == "string"
            few = " with at least one item" if schema.get("minItems") else ""
            return f"a list{' of strings' if is_text else ''}{few}"
        case _:
            few = " that is not empty" if schema.get("minProperties") else ""
            return f"{_PATTERN_NOUNS.get(schema.get('pattern', ''), _TYPE_NOUNS[name])}{few}"


def describe_value(value: Json, written: str | None) -> str:
    """Describe a value found in a file.

    Args:
        written: its text in the file if it is unquoted.
    """
    match value:
        case str():
            return f"the string {quote_name(value)}" if value else "an empty string"
        case Mapping():
            return "a mapping" if value else "an empty mapping"
        case Sequence():
            return "a list" if value else "an empty list"
        case _:
            return _describe_scalar(value, written)


def _suggest_fix(schema: Schema, value: Json, written: str | None) -> str | None:
    """Suggest what to write instead, if that can be derived from the value."""
    types = set(_describe_types(schema))
    match value:
        case str():
            fix = _suggest_text_fix(value, types, schema)
        case int() | float() if types & {"number", "integer"} and not isinstance(value, bool):
            fix = _suggest_share(schema, value)
        case bool() | int() | float() if _takes_any_text(schema, types):
            number = _format_short_number(value, written)
            is_time = schema.get("pattern") == DURATION_PATTERN
            fix = f"add a unit: `{number}s`" if is_time else f'put it in quotes: "{number}"'
        case None if "array" in types and "examples" not in schema:
            fix = NO_VALUE_HINT
        case Mapping() if value and "array" in types:
            fix = "begin every item of a list with `- `"
        case _:
            fix = None
    return fix


def _takes_any_text(schema: Schema, types: set[str]) -> bool:
    """Whether a quoted number is a likely value: not that of a choice, nor the name of a file."""
    is_text = isinstance(next(iter(schema.get("examples", ())), ""), str)
    return "string" in types and is_text and not _find_choices(schema)


def _suggest_share(schema: Schema, value: float) -> str | None:
    is_share = any(0 < each.get("maximum", 0) <= 1 for each in _iter_alternatives(schema))
    if not is_share or not _MIN_PERCENT <= value <= _MAX_PERCENT:
        return None
    return f"write {value / _MAX_PERCENT:g} for {value:g} percent"


def _show_example(schema: Schema, path: KeyPath) -> str | None:
    """Show a right value with its key, or as an item of a list; None if the choices are listed."""
    example = None if _find_choices(schema) else _make_example(schema)
    if example is None:
        return None
    return f"for example `{path[-1]}: {example}`" if isinstance(path[-1], str) else example


def _make_example(schema: Schema) -> str | None:
    """Make a short value that a schema allows, in YAML; None if none is known."""
    if "examples" in schema:
        return _write_yaml(schema["examples"][0])
    if "anyOf" in schema:
        return next(filter(None, map(_make_example, schema["anyOf"])), None)
    choices, low, high = _find_choices(schema), schema.get("minimum", 0), schema.get("maximum")
    match schema.get("type"):
        case _ if choices:
            example: str | None = choices[0]
        case "number" if high == 1:
            example = f"{_EXAMPLE_SHARE:g}"
        case "number" | "integer":
            example = f"{max(low, min(_EXAMPLE_NUMBER, high or _EXAMPLE_NUMBER)):g}"
        case "array":
            item = _make_example(schema.get("items", {}))
            example = f"[{item or 'a, b'}]" if _holds_texts(schema) or item else None
        case _:
            example = _PATTERN_EXAMPLES.get(schema.get("pattern", ""))
    return example


_EXAMPLE_NUMBER: Final = 10
_EXAMPLE_SHARE: Final = 0.8
_PATTERN_EXAMPLES: Final = {
    GRADER_PATTERN: "graders.py:grade",
    COST_PATTERN: "0.05",
    DURATION_PATTERN: "5s",
    VARIABLE_PATTERN: "API_TOKEN",
}


def _write_yaml(value: Json) -> str:
    match value:
        case Mapping():
            return f"{{{', '.join(f'{key}: {_write_yaml(each)}' for key, each in value.items())}}}"
        case str():
            return value if re.fullmatch(r"[\w./*:-]+", value) else f"'{value}'"
        case Sequence():
            return f"[{', '.join(map(_write_yaml, value))}]"
        case _:
            return json.dumps(value)


NO_VALUE_HINT: Final = "write a value, or remove the key"
_MAX_PERCENT: Final = 100
# At or above this, a number given for a share must be a percentage.
_MIN_PERCENT: Final = 10


def _describe_scalar(value: float | None, written: str | None) -> str:
    if value is None:
        return written or "null"
    if isinstance(value, bool) and written is not None and written.lower() in BOOLEAN_WORDS:
        return f"{written}, which YAML reads as {json.dumps(value)}"
    return _format_short_number(value, written)


def _format_short_number(value: float, written: str | None) -> str:
    return truncate.short(written or json.dumps(value), MAX_SHOWN)


def _holds_texts(schema: Schema) -> bool:
    """Whether a schema is that of a list that may hold texts."""
    items = schema.get("items", {})
    is_open = not items or items.get("$ref") == "#/$defs/JsonValue"
    return schema.get("type") == "array" and (is_open or items.get("type") == "string")


def _suggest_text_fix(text: str, types: set[str], schema: Schema) -> str | None:
    first = next(iter(schema.get("examples", ())), [""])
    is_of_texts = not isinstance(first, list) or isinstance(first[0], str)
    if text and is_of_texts and any(map(_holds_texts, _iter_alternatives(schema))):
        is_name = re.fullmatch(r"[\w.*-]+", text)
        return f"write `[{text}]`" if is_name else "write it as a list"
    if choices := _find_choices(schema):
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
        constant = schema["const"]
        return (constant if isinstance(constant, str) else json.dumps(constant),)
    if "enum" in schema:
        return tuple(map(str, schema["enum"]))
    lists = [_find_choices(branch) for branch in schema.get("anyOf", ())]
    # Beside `true`, other values are options, not names that are not listed.
    return next((each for each in lists if each and (each != _TRUE or len(lists) == 1)), ())


_TRUE: Final = ("true",)


def _describe_range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        return ""
    return f" of at least {low:,}" if high is None else f" from {low:,} to {high:,}"


def _describe_types(schema: Schema) -> Iterator[str]:
    return (str(each["type"]) for each in _iter_alternatives(schema) if "type" in each)


def _iter_alternatives(schema: Schema) -> Iterator[Schema]:
    """The alternatives of a schema, nested alternatives flattened."""
    if "anyOf" not in schema:
        yield schema
    for branch in schema.get("anyOf", ()):
        yield from _iter_alternatives(branch)
