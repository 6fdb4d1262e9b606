"""Find all problems of a config, each with its position, in file order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from pydantic import BaseModel, ValidationError

from agentci.config.discovery import check_eval_config
from agentci.config.entries import find_entry_type
from agentci.config.models import EvalConfig
from agentci.config.rules import find_reference_problems
from agentci.config.schema import EvaluatorTypes, make_defaults_model
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.registry import EVALUATOR_TYPES
from agentci.model.json import Json
from agentci.model.problem import Problem


class ConfigModelError(Struct, frozen=True, kw_only=True):
    """An error reported by a pydantic model.

    Attributes:
        is_beyond_schema: whether it comes from validation code that the JSON Schema cannot express.
    """

    problem: Problem
    is_beyond_schema: bool


def find_model_errors(
    document: YamlDocument, types: EvaluatorTypes
) -> tuple[ConfigModelError, ...]:
    """Validate the config with its models; empty if they accept all of it."""
    return tuple(
        each
        for part in _iter_config_parts(document, types)
        for each in _validate_part(*part, document)
    )


def _iter_config_parts(
    document: YamlDocument, types: EvaluatorTypes
) -> Iterator[tuple[KeyPath, type[BaseModel] | None, Json]]:
    """The parts of a config with the model of each; None for entries of unknown type."""
    data = document.data
    yield (), EvalConfig, data
    if data.get("defaults"):
        yield ("defaults",), make_defaults_model(types), data["defaults"]
    evaluators = data.get("evaluators")
    for index, entry in enumerate(evaluators if isinstance(evaluators, list) else ()):
        name = find_entry_type(entry, types)
        yield ("evaluators", index), None if name is None else types[name].entry, entry


def _validate_part(
    path: KeyPath, model: type[BaseModel] | None, value: Json, document: YamlDocument
) -> Iterator[ConfigModelError]:
    if model is None:
        problem = Problem(message="no evaluator of a known type", place=document.place_of(path))
        yield ConfigModelError(problem=problem, is_beyond_schema=False)
        return
    try:
        model.model_validate(dict(value) if isinstance(value, Mapping) else value)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            yield ConfigModelError(
                problem=Problem(
                    message=each["msg"].removeprefix("Value error, "),
                    place=document.place_of(_path_in_file((*path, *each["loc"]), document)),
                ),
                is_beyond_schema=each["type"] == "value_error",
            )


def _path_in_file(loc: KeyPath, document: YamlDocument) -> KeyPath:
    """The steps of ``loc`` that exist in the file; pydantic adds the names of union members."""
    path: KeyPath = ()
    for step in loc:
        if document.has((*path, step)):
            path = (*path, step)
    return path


MAX_PROBLEMS: Final = 1000


def find_config_problems(
    document: YamlDocument, types: EvaluatorTypes = EVALUATOR_TYPES
) -> tuple[Problem, ...]:
    """Find all problems of a config, including notes; without errors, the models accept it.

    Args:
        types: the available evaluator types.
    """
    try:
        check_eval_config(document)
    except InputError as error:
        return (*document.problems, *error.problems)
    problems = [
        *document.problems,
        *_find_shape_problems(document, types),
        *find_reference_problems(document),
    ]
    return sort_problems(problems)


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


def _find_shape_problems(document: YamlDocument, types: EvaluatorTypes) -> list[Problem]:
    """Find schema errors, and errors of validation code that the schema cannot express."""
    rejected = find_model_errors(document, types)
    if not rejected:
        return []
    # Values with a YAML error are not reported twice.
    known = {each.place for each in document.problems if each.severity == "error"}
    breaches = _find_schema_problems(document, types)
    places = {breach.place for breach in breaches}
    beyond = [each.problem for each in rejected if each.is_beyond_schema]
    others = [problem for problem in beyond if problem.place not in places]
    found = [*breaches, *others] or [each.problem for each in rejected]
    return [problem for problem in found if problem.place not in known]


def _find_schema_problems(document: YamlDocument, types: EvaluatorTypes) -> tuple[Problem, ...]:
    # The models decide whether there are errors; jsonschema is loaded only to describe them.
    from agentci.config.schema_errors import find_schema_errors  # noqa: PLC0415

    return find_schema_errors(document, types)


def _problem_sort_key(problem: Problem, files: Sequence[str]) -> tuple[int, int, int]:
    place = problem.place
    if place is None:
        return (-1, 0, 0)
    return (files.index(place.file), place.line, place.column or 0)
