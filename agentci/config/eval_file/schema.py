"""The JSON Schema of eval files, made from the models that read them."""

from functools import cache
from typing import Any

from agentci.config.schema_words import Schema
from agentci.dialects.agentv.types import TYPES, spellings


@cache
def entry_schema(kind: str) -> Schema:
    """The schema of the entries of one type of the table, with all names of that type."""
    schema: dict[str, Any] = TYPES[kind].entry.model_json_schema()
    properties = schema["properties"]
    described = properties["type"].get("description", "")
    properties["type"] = {"enum": [*spellings(kind)], "description": described}
    if "script" in properties:
        properties["command"] = {**properties["script"]}
    return schema
