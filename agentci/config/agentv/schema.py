"""The JSON Schema of eval files, made from their models, and their keys without effect."""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct, field

from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.agentv import models
from agentci.config.agentv.models import CaseSpec, EvalFile, TurnSpec
from agentci.config.agentv.target import TargetSpec, TrialsSpec
from agentci.config.discovery import CASE_KEYS, CASE_SOURCE_KEYS
from agentci.config.schema import JSON_SCHEMA_DIALECT, Schema, simplify_schema
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.evaluators.agentv.registry import AGENTV_TYPES, UNSUPPORTED_TYPES, list_type_names
from agentci.model.values import JsonObject, Problem

# Read by AgentV, but without effect on how recorded runs are evaluated.
IGNORED_KEYS: Final = frozenset(
    {
        *("$schema", "author", "category", "conversation_id", "evaluator", "license", "note"),
        *("notes", "requires", "tags", "target", "workers", "cache", "on_dependency_failure"),
        *("suite", "experiment", "providers", "defaults", "evaluate_options", "timeout_seconds"),
        *("env", "run", "description", "governance", "on_run_complete", "policy"),
    }
)
# The same for keys of `execution`.
IGNORED_EXECUTION_KEYS: Final = frozenset(
    {
        *("target", "workers", "cache", "cache_path", "budget_usd", "total_budget_usd"),
        *("fail_on_error", "verbose", "keep_workspaces", "otel_file"),
    }
)
# Top-level keys that change the cases or their input, which agentci does not support. Some exist
# only since AgentV 5.
UNSUPPORTED_TOP_LEVEL_KEYS: Final = {
    **dict.fromkeys(("prompts", "default_test"), "they belong in a file with `tests`"),
    "vars": "AgentV reads only the `vars` of cases; move them there",
}
# Evaluators may need these; each value is an alternative.
UNSUPPORTED_KEYS: Final = {
    "preprocessors": "record the agent's answers as text",
    "targets": "one output is evaluated per case; write one eval file per agent",
    "environment": "evaluators see the recorded run, but no files that the agent changed",
    "extensions": "evaluators see the recorded run; nothing is set up for it",
    "nunjucks_filters": "write the filtered values as `vars`",
    "options": "record the agent's answers as text",
    "workspace": "evaluators see the recorded run, but no files that the agent changed",
}
# Keys with the same meaning; AgentV reads the first one that is set.
SYNONYMOUS_KEYS: Final = (
    ("input_messages", "input"),
    ("expected_messages", "expected_output"),
    ("criteria", "expected_outcome", "outcome"),
)


class KeyChecker(Struct, kw_only=True):
    """Checks the keys of the parts of one eval file.

    Attributes:
        problems: unused keys; a warning is reported once for all cases.
    """

    document: YamlDocument
    problems: list[Problem] = field(default_factory=list)
    _reported_messages: set[str] = field(default_factory=set)

    def check_file(self) -> None:
        """Check the top-level keys of the file."""
        known = (*models.EvalFile.model_fields, "assert", models.TEMPLATE_KEY, *IGNORED_KEYS)
        self._check_keys(self.document.data, (), known, unread=UNSUPPORTED_TOP_LEVEL_KEYS)
        self._check_execution(self.document.data, ())

    def check_case(self, case: JsonObject, at: KeyPath) -> None:
        """Check the keys of ``case``, which is at ``at``."""
        known = (*models.CaseSpec.model_fields, "assert", models.TEMPLATE_KEY, *IGNORED_KEYS)
        self._check_keys(case, at, known, unread={})
        self._check_execution(case, at)
        for keys in SYNONYMOUS_KEYS:
            given = [each for each in keys if each in case]
            for other in given[1:]:
                self.warn_ignored_key((*at, other), other, first=given[0])

    def check_turn(self, turn: JsonObject, at: KeyPath) -> None:
        """Check the keys of ``turn``, which is at ``at``."""
        known = (*models.TurnSpec.model_fields, *MEMBER_LIST_KEYS)
        self._check_keys(turn, at, known, unread={})

    def warn_ignored_key(self, at: KeyPath, name: str, *, first: str) -> None:
        """Warn that the value at ``at`` is ignored, since ``first`` has the same meaning."""
        self._add_warning(
            f"`{name}` is ignored, because `{first}` is set", at, hint="keep one of them"
        )

    def _check_execution(self, owner: JsonObject, at: KeyPath) -> None:
        execution = owner.get(models.EXECUTION_KEY)
        if isinstance(execution, Mapping):
            known = (*models.Execution.model_fields, models.TEMPLATE_KEY, *IGNORED_EXECUTION_KEYS)
            self._check_keys(execution, (*at, models.EXECUTION_KEY), known, unread={})

    def _check_keys(
        self, keys: Iterable[str], at: KeyPath, known: Collection[str], *, unread: Mapping[str, str]
    ) -> None:
        """Warn about unknown keys, which AgentV ignores; report an error for keys in ``unread``."""
        for key in keys:
            if key in unread:
                self.problems.append(
                    Problem(
                        message=f"`{key}` is not supported by agentci",
                        place=self.document.place_of((*at, key), key=True),
                        hint=unread[key],
                    )
                )
            elif key in UNSUPPORTED_KEYS:
                self._add_warning(f"`{key}` has no effect", (*at, key), hint=UNSUPPORTED_KEYS[key])
            elif key not in known and not key.startswith("x-"):
                message = f"unknown key {quote_name(key)} is ignored"
                self._add_warning(message, (*at, key), hint=suggest_name(key, list(known)))

    def _add_warning(self, message: str, at: KeyPath, *, hint: str | None = None) -> None:
        if message not in self._reported_messages:
            self._reported_messages.add(message)
            place = self.document.place_of(at, key=True)
            self.problems.append(
                Problem(message=message, place=place, hint=hint, severity="warning")
            )


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
