"""Turn every JSON Schema error into a readable problem with its position."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from pydantic import ValidationError as Rejection
from pydantic_core import ErrorDetails

from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.config.entries import find_entry_type, find_type_problem
from agentci.config.schema import (
    UNSHARED_FIELDS,
    EvaluatorTypes,
    Schema,
    describe_expected,
    describe_value,
    make_config_schema,
    suggest_fix,
)
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.model.json import JsonObject
from agentci.model.problem import Problem

MAX_SCHEMA_ERRORS: Final = 2000
ENTRY_STEPS: Final = 2  # the path to an entry: `evaluators` and its index

# Top-level config keys that agentevals reads now or read in earlier versions.
_MOVED_KEY_HINTS: Final = {
    "metrics": "list each metric below `evaluators:`, as `- {name: NAME, type: builtin}`",
    "custom_evaluators": "move its entries below `evaluators:`, each with its `type`",
    "max_concurrent_traces": "give --jobs to `agentci run` instead",
    "max_concurrent_evals": "give --jobs to `agentci run` instead",
}


def find_schema_errors(document: YamlDocument, types: EvaluatorTypes) -> tuple[Problem, ...]:
    """Find schema errors of a config with evaluators of ``types``, up to ``MAX_SCHEMA_ERRORS``."""
    reader = _SchemaErrorReader(document, types)
    errors = Draft202012Validator(make_config_schema(types)).iter_errors(document.data)
    problems = (problem for error in errors for problem in reader.find_problems(error))
    return tuple(dict.fromkeys(islice(problems, MAX_SCHEMA_ERRORS)))


def find_part_errors(
    document: YamlDocument, schema: Schema, rejection: Rejection, *, at: KeyPath, noun: str
) -> tuple[Problem, ...]:
    """Find the errors in one part of a document.

    Args:
        schema: the schema of the part.
        rejection: the error of the part's model, used if the schema finds nothing.
        at: the path of the part.
        noun: the kind of the part: ``evaluator`` or ``case``.
    """
    reader = _SchemaErrorReader(document, {}, at=at, noun=noun)
    errors = Draft202012Validator(schema).iter_errors(document.value(at))
    problems = (problem for error in errors for problem in reader.find_problems(error))
    found = tuple(dict.fromkeys(islice(problems, MAX_SCHEMA_ERRORS)))
    rejections = rejection.errors(include_url=False, include_input=False)
    # The schema covers everything except our own rules. If one of those failed, the other errors
    # come from alternatives of the same value that the user did not mean.
    ours = [each for each in rejections if each["type"] == "value_error"]
    return found or tuple(
        Problem(
            message=_format_model_message(each),
            place=document.place_of((*at, *each["loc"])),
        )
        for each in ours or rejections
    )


def _format_model_message(error: ErrorDetails) -> str:
    """Format a pydantic error; for a union, list the known types."""
    match error["type"]:
        case "union_tag_invalid":
            names = error["ctx"]["expected_tags"].replace("'", "").split(", ")
            known = [name for name in names if "-" not in name]
            return f"type must be {join_with_or(known)}, not {quote_name(error['ctx']['tag'])}"
        case "union_tag_not_found":
            return f"{error['loc'][-1]} has no 'type'"
        case _:
            return error["msg"].removeprefix("Value error, ")


def format_subject(path: KeyPath) -> str:
    """The name of the value at ``path`` in messages; an entry's fields appear without its path."""
    match path:
        case ("evaluators", int(), *rest) if rest:
            names = rest
        case _:
            names = list(path)
    dotted = ".".join(name for name in names if isinstance(name, str))
    last = names[-1]
    return f"item {last + 1} of {dotted}" if isinstance(last, int) else dotted


def _is_deeper(error: ValidationError) -> bool:
    """Whether the error is inside an alternative, so that this alternative was meant."""
    return bool(error.path) or error.validator in ("additionalProperties", "required")


class _SchemaErrorReader:
    def __init__(
        self,
        document: YamlDocument,
        types: EvaluatorTypes,
        *,
        at: KeyPath = (),
        noun: str = "evaluator",
    ) -> None:
        self._document = document
        self._types = types
        self._at = at
        self._noun = noun

    def find_problems(self, error: ValidationError) -> Iterator[Problem]:
        """Describe ``error``; for a union, describe only the alternative that was meant."""
        path: KeyPath = (*self._at, *error.absolute_path)
        schema = error.schema if isinstance(error.schema, dict) else {}
        match error.validator:
            case "oneOf" if "discriminator" in schema:
                yield from self._tagged_problems(error, schema, path)
            case "oneOf":
                yield from self._entry_problems(error, path)
            case "anyOf" if deeper := [each for each in error.context or () if _is_deeper(each)]:
                for each in deeper:
                    yield from self.find_problems(each)
            case "additionalProperties":
                yield from self._unknown_keys(schema, path)
            case "required":
                yield from self._missing_keys(schema, path)
            case _:
                yield self._wrong_value(schema, path)

    def _entry_problems(self, error: ValidationError, path: KeyPath) -> Iterator[Problem]:
        """Read only the schema branch of the entry's type."""
        entry, index = self._document.value(path), path[-1]
        kind = find_entry_type(entry, self._types)
        if kind is None and isinstance(index, int):
            yield find_type_problem(entry, index, self._document, self._types)
        for each in error.context or ():
            if kind is not None and each.schema_path[0] == list(self._types).index(kind):
                yield from self.find_problems(each)

    def _tagged_problems(
        self, error: ValidationError, schema: Schema, path: KeyPath
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
                    hint=suggest_name(key, known)
                    if self._at
                    else _find_key_hint(key, path, known, self._types),
                )

    def _missing_keys(self, schema: Schema, path: KeyPath) -> Iterator[Problem]:
        mapping = self._mapping(path)
        name = mapping.get("name", mapping.get("id"))
        article = "an" if self._noun[0] in "aeiou" else "a"
        owner = f"the {self._noun} {quote_name(name)}" if isinstance(name, str) else ""
        owner = owner or f"{article} {self._noun}"
        if len(path) > (len(self._at) or ENTRY_STEPS):
            owner = format_subject(path[len(self._at) :])
        for key in schema["required"]:
            if key not in mapping:
                yield Problem(
                    message=f"{owner if path else 'the config'} has no {key!r}",
                    place=self._document.place_of(path),
                    hint=f"add `{key}: ...`",
                )

    def _wrong_value(self, schema: Schema, path: KeyPath) -> Problem:
        value, written = self._document.value(path), self._document.plain_text(path)
        name = format_subject(path[len(self._at) :] or (self._noun,))
        return Problem(
            message=(
                f"{name} must be {describe_expected(schema)}, not {describe_value(value, written)}"
            ),
            place=self._document.place_of(path),
            hint=suggest_fix(schema, value, written),
        )

    def _mapping(self, path: KeyPath) -> JsonObject:
        value = self._document.value(path)
        return value if isinstance(value, Mapping) else {}


def _find_key_hint(
    key: str, path: KeyPath, known: Sequence[str], types: EvaluatorTypes
) -> str | None:
    """Suggest where an unknown key belongs, or which of the ``known`` keys was meant."""
    if not path and key in _MOVED_KEY_HINTS:
        return _MOVED_KEY_HINTS[key]
    field = key.replace("-", "_")
    owners = [name for name, each in types.items() if field in each.entry.model_fields]
    close = suggest_name(key, known)
    if close is None and owners and not path:
        return "it belongs to an entry of `evaluators`, or to `defaults` for all of them"
    if close is None and owners and path[0] == "evaluators" and len(path) == ENTRY_STEPS:
        return f"only evaluators of type {join_with_or(owners)} have it"
    if path == ("defaults",) and field in UNSHARED_FIELDS:
        return "every evaluator needs its own"
    return close or f"known here: {', '.join(name for name in known if name.islower())}"
