"""The JSON Schema of eval files, made from the models that read them."""

from functools import cache
from typing import Any, Final

from agentci.config.agentv.models import CaseSpec, EvalFile, TurnSpec
from agentci.config.agentv.target import TargetSpec, TrialsSpec
from agentci.config.detect import CASE_KEYS
from agentci.config.schema import DIALECT, readable
from agentci.config.schema_messages import Schema
from agentci.evaluators.agentv.types import NOT_YET, TYPES, spellings

SCHEMA_ID: Final = "evalfile.schema.json"

# Keys of the lists that entries have in turn.
MEMBER_LISTS: Final = ("evaluators", "assertions", "assert")
# Keys of lists of evaluators, by the part of a file.
LISTS: Final = {
    "EvalFile": ("assertions", "assert"),
    "CaseSpec": MEMBER_LISTS,
    "Execution": ("evaluators", "assertions"),
    "TurnSpec": ("assertions", "assert"),
    "CompositeEntry": MEMBER_LISTS,
}

# Of cases in other files.
PATH: Final[Schema] = {"type": "string", "minLength": 1}
INCLUDED: Final[Schema] = {
    "type": "object",
    "properties": {"include": {**PATH, "description": "File whose `assertions` stand here."}},
    "required": ["include"],
    "additionalProperties": False,
}


@cache
def entry_schema(kind: str) -> Schema:
    """The schema of the entries of one type of the table, with all names of that type."""
    return _named(TYPES[kind].entry.model_json_schema(), [*spellings(kind)])


def eval_file_schema() -> Schema:
    """The schema of eval files, for editors and other programs."""
    schema: Schema = EvalFile.model_json_schema()
    definitions: Schema = schema["$defs"]
    definitions.update(_entries())
    definitions.update(CaseSpec.model_json_schema()["$defs"])
    definitions["TurnSpec"] = TurnSpec.model_json_schema()
    definitions["CaseSpec"] = {
        key: value for key, value in CaseSpec.model_json_schema().items() if key != "$defs"
    }
    turns = next(
        each for each in definitions["CaseSpec"]["properties"]["turns"]["anyOf"] if "items" in each
    )
    turns["items"] = {"$ref": "#/$defs/TurnSpec"}
    entries = [{"$ref": f"#/$defs/{name}"} for name in dict.fromkeys(_titles().values())]
    # A text is a criterion for a model to judge by.
    text = {"type": "string", "minLength": 1}
    evaluators = {
        "type": "array",
        "items": {"anyOf": [*entries, INCLUDED, _of_ones_own(), text]},
        "description": "What judges.",
    }
    for part, keys in LISTS.items():
        properties = (schema if part == "EvalFile" else definitions[part])["properties"]
        properties.update(dict.fromkeys(keys, evaluators))
    case = {"anyOf": [{"$ref": "#/$defs/CaseSpec"}, PATH]}
    cases = {"anyOf": [{"type": "array", "minItems": 1, "items": case}, PATH]}
    for key in CASE_KEYS:
        described = schema["properties"][key]["description"]
        schema["properties"][key] = {**cases, "description": described}
    definitions |= {each.__name__: each.model_json_schema() for each in (TargetSpec, TrialsSpec)}
    target = {
        "anyOf": [{"type": "string"}, {"$ref": "#/$defs/TargetSpec"}],
        "description": "The agent; a mere name has no effect here.",
    }
    schema["properties"]["target"] = target
    trials = {"$ref": "#/$defs/TrialsSpec", "description": "Several runs of each case."}
    definitions["Execution"]["properties"] |= {"target": target, "trials": trials}
    schema["anyOf"] = [{"required": [key]} for key in CASE_KEYS]
    return {"$schema": DIALECT, "$id": SCHEMA_ID, **readable(schema)}


def _of_ones_own() -> Schema:
    """Entries whose type is the name of a program: editors cannot know which there are."""
    known = [name for kind in TYPES for name in spellings(kind)]
    known += [spelt for name in NOT_YET for spelt in (name, name.replace("_", "-"))]
    type_of = {**PATH, "not": {"enum": list(dict.fromkeys(known))}}
    return {"type": "object", "properties": {"type": type_of}, "required": ["type"]}


def _titles() -> dict[str, str]:
    """The name of the definition for each type; some types share their fields."""
    return {kind: each.entry.__name__ for kind, each in TYPES.items()}


def _entries() -> Schema:
    definitions: Schema = {}
    titles = _titles()
    for title in dict.fromkeys(titles.values()):
        kinds = [kind for kind in TYPES if titles[kind] == title]
        schema = TYPES[kinds[0]].entry.model_json_schema()
        definitions.update(schema.pop("$defs", {}))
        definitions[title] = _named(schema, [each for kind in kinds for each in spellings(kind)])
    return definitions


def _named(schema: dict[str, Any], names: list[str]) -> Schema:
    """A schema of entries whose type may be called by any of ``names``."""
    properties = schema["properties"]
    described = properties["type"].get("description", "")
    properties["type"] = {"enum": names, "description": described}
    if "script" in properties:
        properties["command"] = {**properties["script"]}
    if schema["title"] == "CompositeEntry":
        properties.update({key: {"type": "array"} for key in MEMBER_LISTS})
    return schema
