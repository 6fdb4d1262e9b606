"""The JSON Schema of configs, made from the models that read them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, Field, create_model

from agentci.config.models import EvalConfig
from agentci.config.schema_messages import Schema
from agentci.evaluators.evaluator_type import EvaluatorType
from agentci.evaluators.fields import Strict
from agentci.evaluators.metrics.registry import ASKING, HOSTED, METRICS
from agentci.evaluators.registry import EVALUATOR_TYPES

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID: Final = "config.schema.json"

Types: TypeAlias = Mapping[str, EvaluatorType[Any]]

# What makes an evaluator that one: no two can share it.
OWN_FIELDS: Final = frozenset({"name", "type", "path", "grader", "ref", "sha256"})


def json_schema(types: Types = EVALUATOR_TYPES) -> Schema:
    """The schema of configs whose evaluators are of ``types``, for editors and for validation."""
    schema = EvalConfig.model_json_schema()
    definitions = schema.setdefault("$defs", {})
    branches = [{"$ref": _add(definitions, each.entry)} for each in types.values()]
    properties = schema["properties"]
    properties["evaluators"]["items"] = {"oneOf": branches}
    properties["defaults"] = {
        "$ref": _add(definitions, defaults_model(types)),
        "description": properties["defaults"]["description"],
    }
    names = [*METRICS, *ASKING, *HOSTED]
    definitions["BuiltinEntry"]["properties"]["name"]["examples"] = names
    return {"$schema": DIALECT, "$id": SCHEMA_ID, **readable(schema)}


def defaults_model(types: Types = EVALUATOR_TYPES) -> type[BaseModel]:
    """The model of ``defaults``: every field that entries of one of ``types`` can share."""
    fields: dict[str, Any] = {}
    for each in types.values():
        for name, field in each.entry.model_fields.items():
            optional = Field(default=None, description=field.description)
            if name not in OWN_FIELDS:
                fields.setdefault(name, (field.rebuild_annotation(), optional))
    return create_model("Defaults", __base__=Strict, **fields)


def _add(definitions: Schema, model: type[BaseModel]) -> str:
    schema = model.model_json_schema()
    definitions.update(schema.pop("$defs", {}))
    definitions[schema["title"]] = schema
    return f"#/$defs/{schema['title']}"


def readable(schema: Schema) -> Schema:
    """Leave out what tells an editor nothing: titles that repeat the key, any JSON as a name."""
    definitions = {name: part for name, part in schema["$defs"].items() if name != "JsonValue"}
    return {key: _plain(part) for key, part in {**schema, "$defs": definitions}.items()}


def _plain(part: Any) -> Any:
    match part:
        case dict():
            return dict(_plain_items(part))
        case list():
            return [_plain(item) for item in part]
        case _:
            return part


def _plain_items(part: Schema) -> Iterator[tuple[str, Any]]:
    for key, value in part.items():
        is_title = key == "title" and isinstance(value, str)
        is_no_default = key == "default" and value is None
        if not (is_title or is_no_default or value == "#/$defs/JsonValue"):
            yield key, _plain(value)
