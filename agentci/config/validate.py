"""Validate configs: models read their parts, and JSON Schemas describe all errors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.config.checks import find_check_item_problems, list_check_items
from agentci.config.discovery import check_eval_config
from agentci.config.entries import find_entry_type, find_type_problem
from agentci.config.models import EvalConfig
from agentci.config.overrides import find_metric_problem
from agentci.config.schema import (
    UNSHARED_FIELDS,
    EvaluatorTypes,
    KeyHint,
    Schema,
    find_schema_problems,
    make_defaults_model,
    suggest_key,
)
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.checks.names import CASE_PREFIX
from agentci.evaluators.metrics import HOSTED_METRICS
from agentci.evaluators.registry import EVALUATOR_TYPES
from agentci.model.values import Json, JsonObject, Place, Problem

MAX_PROBLEMS: Final = 1000
MAX_SCHEMA_ERRORS: Final = 2000
ENTRY_STEPS: Final = 2  # the path to an entry: `evaluators` and its index

# Top-level config keys that agentevals reads now or read in earlier versions.
_MOVED_KEY_HINTS: Final = {
    "metrics": "list each metric below `evaluators:`, as `- {name: NAME, type: builtin}`",
    "custom_evaluators": "move its entries below `evaluators:`, each with its `type`",
    "max_concurrent_traces": "use `agentci run --jobs` instead",
    "max_concurrent_evals": "use `agentci run --jobs` instead",
}

ModelT = TypeVar("ModelT", bound=BaseModel)


def read_part(  # noqa: PLR0913 (the last three have defaults)
    document: YamlDocument,
    model: type[ModelT],
    *,
    at: KeyPath,
    noun: str,
    data: Json = None,
    make_schema: Callable[[], Schema] | None = None,
    key_hint: KeyHint = suggest_key,
) -> tuple[ModelT | None, tuple[Problem, ...]]:
    """Read one part of a document into its model.

    The model decides whether the part is valid. If not, the JSON Schema of the model describes the
    errors, since it finds all of them; the model adds those of its own code (rules between fields).

    Args:
        at: the path of the part.
        noun: the kind of the part in messages: "evaluator", "case".
        data: the values to read if they differ from those in the document.
        make_schema: makes the schema if it differs from that of the model.
        key_hint: suggests what to do about an unknown key.

    Returns:
        The values, or None and the problems.
    """
    try:
        return model.model_validate(document.value(at) if data is None else data), ()
    except ValidationError as error:
        schema = _make_model_schema(model) if make_schema is None else make_schema()
        found = find_schema_problems(document, schema, at=at, noun=noun, key_hint=key_hint)
        problems = list(dict.fromkeys(islice(found, MAX_SCHEMA_ERRORS)))
        known = {each.place for each in problems}
        for each in _find_rule_errors(error) or ([] if problems else _list_errors(error)):
            place = document.place_of(_find_existing_path((*at, *each["loc"]), document))
            if place not in known:
                problems.append(Problem(message=format_model_error(each), place=place))
        return None, tuple(_drop_yaml_errors(problems, document))


def _drop_yaml_errors(problems: Iterable[Problem], document: YamlDocument) -> Iterator[Problem]:
    """Drop problems of values that the YAML parser has rejected already."""
    invalid = {each.place for each in document.problems if each.severity == "error"}
    return (each for each in problems if each.place not in invalid)


def format_model_error(error: ErrorDetails) -> str:
    """The message of an error that a model reports."""
    return error["msg"].removeprefix("Value error, ")


@lru_cache
def _make_model_schema(model: type[BaseModel]) -> Schema:
    return model.model_json_schema()


def _list_errors(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)


def _find_rule_errors(error: ValidationError) -> list[ErrorDetails]:
    """The errors from the code of a model, which a JSON Schema cannot express."""
    return [each for each in _list_errors(error) if each["type"] == "value_error"]


def _find_existing_path(loc: KeyPath, document: YamlDocument) -> KeyPath:
    """The steps of ``loc`` that exist in the file; pydantic adds the names of union members."""
    path: KeyPath = ()
    for step in loc:
        if document.has((*path, step)):
            path = (*path, step)
    return path


def check_config(
    document: YamlDocument, types: EvaluatorTypes = EVALUATOR_TYPES
) -> tuple[EvalConfig | None, tuple[Problem, ...]]:
    """Read the top level of a config, and find the problems of all its parts.

    Args:
        types: the available evaluator types.

    Returns:
        The config, None if its top level is invalid; and all problems, in file order.
    """
    try:
        check_eval_config(document)
    except InputError as error:
        return None, (*document.problems, *error.problems)
    hint = partial(_suggest_config_key, types)
    config, problems = read_part(document, EvalConfig, at=(), noun="config", key_hint=hint)
    others = chain(problems, _find_part_problems(document, types, hint))
    found = [*document.problems, *islice(others, MAX_SCHEMA_ERRORS)]
    return config, sort_problems([*found, *find_reference_problems(document)])


def _find_part_problems(
    document: YamlDocument, types: EvaluatorTypes, key_hint: KeyHint
) -> Iterator[Problem]:
    defaults, evaluators = document.data.get("defaults"), document.data.get("evaluators")
    if defaults and isinstance(defaults, Mapping):
        model = make_defaults_model(types)
        path: KeyPath = ("defaults",)
        yield from read_part(document, model, at=path, noun="mapping", key_hint=key_hint)[1]
    for index, entry in enumerate(evaluators if isinstance(evaluators, list) else ()):
        kind, path = find_entry_type(entry, types), ("evaluators", index)
        if kind is None:
            problems = [find_type_problem(entry, index, document, types)]
            yield from _drop_yaml_errors(problems, document)
        else:
            model = types[kind].entry
            yield from read_part(document, model, at=path, noun="evaluator", key_hint=key_hint)[1]
    if items := list_check_items(document):
        # Loaded only for configs with checks.
        from agentci.config.check_entries import read_check_entry  # noqa: PLC0415

        for item in items:
            yield from read_check_entry(item, document, read_part)[1]


def _suggest_config_key(
    types: EvaluatorTypes, key: str, path: KeyPath, known: Sequence[str]
) -> str | None:
    """Suggest where an unknown key of a config belongs, or which of the ``known`` was meant."""
    if not path and key in _MOVED_KEY_HINTS:
        return _MOVED_KEY_HINTS[key]
    field = key.replace("-", "_")
    owners = [name for name, each in types.items() if field in each.entry.model_fields]
    if suggest_name(key, known) is None and owners:
        if not path:
            return "set it in an entry of `evaluators`, or in `defaults` for all of them"
        if path[0] == "evaluators" and len(path) == ENTRY_STEPS:
            return f"only evaluators of type {join_with_or(owners)} have it"
    if path == ("defaults",) and field in UNSHARED_FIELDS:
        return "set it in each evaluator"
    return suggest_key(key, path, known)


def sort_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Remove duplicates and sort by file and line, keeping the first ``MAX_PROBLEMS``."""
    each = dict.fromkeys(problems)
    files = list(dict.fromkeys(p.place.file for p in each if p.place is not None))
    ordered = sorted(each, key=lambda problem: _problem_sort_key(problem, files))
    if len(ordered) <= MAX_PROBLEMS:
        return tuple(ordered)
    listed = ordered[:MAX_PROBLEMS]
    is_broken = any(problem.severity == "error" for problem in ordered)
    more = Problem(
        message=f"only the first {MAX_PROBLEMS:,} problems are listed",
        place=listed[-1].place,
        severity="error" if is_broken else "note",
    )
    return (*listed, more)


def _problem_sort_key(problem: Problem, files: Sequence[str]) -> tuple[int, int, int]:
    place = problem.place
    if place is None:
        return (-1, 0, 0)
    return (files.index(place.file), place.line, place.column or 0)


RUBRIC_METRIC_PREFIX: Final = "rubric_based_"
_IGNORED_KEYS: Final = ("output", "output_format")


def find_reference_problems(document: YamlDocument) -> Iterator[Problem]:
    """Check names against each other and against the known metrics; parts may have any shape."""
    entries = _named_entries(document)
    yield from _find_duplicate_names(document, entries)
    yield from _find_entry_metric_problems(document, entries)
    yield from find_check_item_problems(document)
    yield from _find_gate_problems(document, entries)
    yield from _find_ignored_keys(document)


_EntriesByIndex = dict[int, JsonObject]


def _named_entries(document: YamlDocument) -> _EntriesByIndex:
    """The entries that have a name, by their index in ``evaluators``."""
    evaluators = document.data.get("evaluators")
    return {
        index: entry
        for index, entry in enumerate(evaluators if isinstance(evaluators, list) else ())
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str)
    }


def _find_duplicate_names(document: YamlDocument, entries: _EntriesByIndex) -> Iterator[Problem]:
    first: dict[str, Place] = {}
    for index, entry in entries.items():
        name, place = str(entry["name"]), document.place_of(("evaluators", index, "name"))
        if name in first:
            yield Problem(
                message=f"the name {quote_name(name)} is already used by the evaluator on line"
                f" {first[name].line}",
                place=place,
                hint="give each evaluator a unique name",
            )
        first.setdefault(name, place)


def _find_entry_metric_problems(
    document: YamlDocument, entries: _EntriesByIndex
) -> Iterator[Problem]:
    for index, entry in entries.items():
        if entry.get("type") != "builtin":
            continue
        problem = find_metric_problem(
            str(entry["name"]), document.place_of(("evaluators", index, "name"))
        )
        if problem is not None:
            yield problem
        elif entry.get("rubrics") and not str(entry["name"]).startswith(RUBRIC_METRIC_PREFIX):
            yield Problem(
                message=f"{entry['name']} does not use rubrics",
                place=document.place_of(("evaluators", index, "rubrics"), key=True),
                hint="remove `rubrics`",
            )
        hosted = HOSTED_METRICS.get(str(entry["name"]))
        if hosted is not None and hosted.scores_conversation and "turn_score" in entry:
            yield Problem(
                message=f"{entry['name']} scores the whole conversation, not its turns",
                place=document.place_of(("evaluators", index, "turn_score"), key=True),
                hint="remove `turn_score`",
            )


def _find_gate_problems(document: YamlDocument, entries: _EntriesByIndex) -> Iterator[Problem]:
    if "results" in document.data:
        return  # the metrics of results have names, too, and are known only once these are read
    gate = document.data.get("gate")
    thresholds = gate.get("evaluators") if isinstance(gate, Mapping) else None
    own = (str(entry["name"]) for entry in entries.values())
    names = list(dict.fromkeys((*own, *(each.name for each in list_check_items(document)))))
    for name in thresholds if isinstance(thresholds, Mapping) else ():
        # Checks of eval cases are known only once the eval set is read.
        if name not in names and not name.startswith(CASE_PREFIX):
            yield Problem(
                message=f"`gate.evaluators` names unknown evaluator {quote_name(name)}",
                place=document.place_of(("gate", "evaluators", name), key=True),
                hint=suggest_name(name, names)
                or (f"known evaluators: {', '.join(names)}" if names else None),
            )


def _find_ignored_keys(document: YamlDocument) -> Iterator[Problem]:
    for key in _IGNORED_KEYS:
        if key in document.data:
            yield Problem(
                message=f"`{key}` has no effect: agentci writes all report formats",
                place=document.place_of((key,), key=True),
                severity="note",
            )
