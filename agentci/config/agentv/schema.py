"""Make the JSON Schema of eval files from their models."""

from functools import cache
from typing import Any, Final

from agentci.config.agentv.models import CaseSpec, EvalFile, TurnSpec
from agentci.config.agentv.target import TargetSpec, TrialsSpec
from agentci.config.discovery import CASE_KEYS, CASE_SOURCE_KEYS
from agentci.config.schema import JSON_SCHEMA_DIALECT, Schema, simplify_schema
from agentci.evaluators.agentv.registry import AGENTV_TYPES, UNSUPPORTED_TYPES, list_type_names

SCHEMA_ID: Final = "evalfile.schema.json"

# Keys of evaluator lists nested in entries.
MEMBER_LIST_KEYS: Final = ("evaluators", "assertions", "assert")
# Keys of evaluator lists, by the part of a file.
EVALUATOR_LISTS: Final = {
    "EvalFile": ("assertions", "assert"),
    "CaseSpec": MEMBER_LIST_KEYS,
    "Execution": ("evaluators", "assertions"),
    "TurnSpec": ("assertions", "assert"),
    "CompositeEntry": MEMBER_LIST_KEYS,
    "AssertSetEntry": MEMBER_LIST_KEYS,
}

# Paths of files with cases.
PATH_SCHEMA: Final[Schema] = {"type": "string", "minLength": 1}
INCLUDE_SCHEMA: Final[Schema] = {
    "type": "object",
    "properties": {
        "include": {**PATH_SCHEMA, "description": "File whose `assertions` are inserted here."}
    },
    "required": ["include"],
    "additionalProperties": False,
}


@cache
def make_entry_schema(kind: str) -> Schema:
    """Make the schema for entries of one registered type, with all names of that type."""
    return _with_type_names(AGENTV_TYPES[kind].entry.model_json_schema(), [*list_type_names(kind)])


def make_eval_file_schema() -> Schema:
    """Make the schema of eval files, for editors and other programs."""
    schema: Schema = EvalFile.model_json_schema()
    definitions: Schema = schema["$defs"]
    definitions.update(_make_entry_definitions())
    definitions.update(CaseSpec.model_json_schema()["$defs"])
    definitions["TurnSpec"] = TurnSpec.model_json_schema()
    definitions["CaseSpec"] = {
        key: value for key, value in CaseSpec.model_json_schema().items() if key != "$defs"
    }
    turns = next(
        each for each in definitions["CaseSpec"]["properties"]["turns"]["anyOf"] if "items" in each
    )
    turns["items"] = {"$ref": "#/$defs/TurnSpec"}
    entries = [
        {"$ref": f"#/$defs/{name}"} for name in dict.fromkeys(_list_definition_names().values())
    ]
    # Text in a list is a criterion for a judge.
    text = {"type": "string", "minLength": 1}
    evaluators = {
        "type": "array",
        "items": {"anyOf": [*entries, INCLUDE_SCHEMA, _make_custom_type_schema(), text]},
        "description": "Evaluators.",
    }
    for part, keys in EVALUATOR_LISTS.items():
        properties = (schema if part == "EvalFile" else definitions[part])["properties"]
        properties.update(dict.fromkeys(keys, evaluators))
    case = {"anyOf": [{"$ref": "#/$defs/CaseSpec"}, PATH_SCHEMA]}
    cases = {"anyOf": [{"type": "array", "minItems": 1, "items": case}, PATH_SCHEMA]}
    for key in CASE_KEYS:
        described = schema["properties"][key]["description"]
        schema["properties"][key] = {**cases, "description": described}
    definitions |= {each.__name__: each.model_json_schema() for each in (TargetSpec, TrialsSpec)}
    target = {
        "anyOf": [{"type": "string"}, {"$ref": "#/$defs/TargetSpec"}],
        "description": "The agent; a name has no effect.",
    }
    schema["properties"]["target"] = target
    schema["properties"]["gate"] = {
        "anyOf": [{"const": "agentv"}, {"$ref": "#/$defs/EvalFileGateSpec"}],
        "description": "Thresholds for the gate to pass; `agentv`: AgentV's verdict of each case.",
    }
    trials = {"$ref": "#/$defs/TrialsSpec", "description": "Several runs of each case."}
    definitions["Execution"]["properties"] |= {"target": target, "trials": trials}
    schema["anyOf"] = [{"required": [key]} for key in CASE_SOURCE_KEYS]
    return {"$schema": JSON_SCHEMA_DIALECT, "$id": SCHEMA_ID, **simplify_schema(schema)}


def _make_custom_type_schema() -> Schema:
    """Allow entries of custom types, whose names are not known to editors."""
    known = [name for kind in AGENTV_TYPES for name in list_type_names(kind)]
    known += [spelling for name in UNSUPPORTED_TYPES for spelling in (name, name.replace("_", "-"))]
    type_of = {**PATH_SCHEMA, "not": {"enum": list(dict.fromkeys(known))}}
    return {"type": "object", "properties": {"type": type_of}, "required": ["type"]}


def _list_definition_names() -> dict[str, str]:
    """The name of the definition for each type; some types share their fields."""
    return {kind: each.entry.__name__ for kind, each in AGENTV_TYPES.items()}


def _make_entry_definitions() -> Schema:
    definitions: Schema = {}
    titles = _list_definition_names()
    for title in dict.fromkeys(titles.values()):
        kinds = [kind for kind in AGENTV_TYPES if titles[kind] == title]
        schema = AGENTV_TYPES[kinds[0]].entry.model_json_schema()
        definitions.update(schema.pop("$defs", {}))
        definitions[title] = _with_type_names(
            schema, [each for kind in kinds for each in list_type_names(kind)]
        )
    return definitions


def _with_type_names(schema: dict[str, Any], names: list[str]) -> Schema:
    """The schema of entries whose type has any of ``names``."""
    properties = schema["properties"]
    described = properties["type"].get("description", "")
    properties["type"] = {"enum": names, "description": described}
    if "script" in properties:
        properties["command"] = {**properties["script"]}
    if schema["title"] in ("CompositeEntry", "AssertSetEntry"):
        properties.update({key: {"type": "array"} for key in MEMBER_LIST_KEYS})
    return schema
