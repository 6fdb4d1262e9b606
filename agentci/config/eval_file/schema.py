"""The JSON Schema of eval files, made from the models that read them."""

from functools import cache
from typing import Any, Final

from agentci.config.schema_words import Schema
from agentci.dialects.agentv.types import TYPES, spellings

# Keys of the lists that entries have in turn.
MEMBER_LISTS: Final = ("evaluators", "assertions", "assert")


@cache
def entry_schema(kind: str) -> Schema:
    """The schema of the entries of one type of the table, with all names of that type."""
    schema: dict[str, Any] = TYPES[kind].entry.model_json_schema()
    properties = schema["properties"]
    described = properties["type"].get("description", "")
    properties["type"] = {"enum": [*spellings(kind)], "description": described}
    if "script" in properties:
        properties["command"] = {**properties["script"]}
    if TYPES[kind].has_members:
        members = {"type": "array", "items": {}, "description": "What it is made of."}
        properties.update(dict.fromkeys(MEMBER_LISTS, members))
    return schema
