"""The words that the schema of ``results.json`` is written in."""

from agentci.model.json import Json, JsonObject

TEXT: JsonObject = {"type": "string"}
TEXT_OR_NULL: JsonObject = {"type": ["string", "null"]}
TEXTS: JsonObject = {"type": "array", "items": TEXT}
BOOLEAN: JsonObject = {"type": "boolean"}
COUNT: JsonObject = {"type": "integer", "minimum": 0}
NUMBER_OR_NULL: JsonObject = {"type": ["number", "null"]}


def members(**properties: Json) -> dict[str, Json]:
    """All of ``properties`` are always there."""
    return {"type": "object", "required": list(properties), "properties": properties}


def said(schema: JsonObject, description: str) -> JsonObject:
    """``schema`` with what it is about."""
    return {**schema, "description": description}
