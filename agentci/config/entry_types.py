"""Entries of ``evaluators:`` whose type is missing, unknown or for eval files."""

from collections.abc import Mapping
from typing import Any, Final

from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.config.overrides import Programs
from agentci.config.schema import Types
from agentci.config.schema_messages import shown
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.evaluator_type import EvaluatorType
from agentci.evaluators.metrics.registry import ASKING, HOSTED, METRICS
from agentci.evaluators.metrics.registry import NOT_YET as METRICS_NOT_YET
from agentci.evaluators.registry import EVALUATOR_TYPES, OF_EVAL_FILES
from agentci.model.json import Json, JsonObject
from agentci.model.problem import Problem
from agentci.model.values import replace


def types_in(document: YamlDocument, programs: Programs) -> Types:
    """Our own types of evaluators, and those of other packages that a config makes use of.

    Raises:
        InputError: a package brings one of these that is broken.
    """
    evaluators = document.data.get("evaluators")
    found: dict[str, EvaluatorType[Any]] = {}
    for index, entry in enumerate(evaluators if isinstance(evaluators, list) else []):
        name = entry.get("type") if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or name in {*EVALUATOR_TYPES, *OF_EVAL_FILES, *found}:
            continue
        try:
            theirs = programs.type_named(name)
        except InputError as error:
            place = document.place_of(("evaluators", index, "type"))
            raise InputError([replace(each, place=place) for each in error.problems]) from None
        if theirs is not None:
            found[name] = theirs
    return EVALUATOR_TYPES.also(found)


def type_of(entry: Json, types: Types) -> str | None:
    """The type of an entry, None where it has none of ``types``."""
    name = entry.get("type") if isinstance(entry, Mapping) else None
    return name if isinstance(name, str) and name in types else None


def type_problem(entry: Json, index: int, document: YamlDocument, types: Types) -> Problem:
    """Say why an entry has none of ``types``."""
    path = ("evaluators", index)
    if not isinstance(entry, Mapping):
        what = shown(entry, document.written(path))
        return Problem(
            message=f"each evaluator must be a mapping with `name` and `type`, not {what}",
            place=document.place_of(path),
            hint=_as_entry(entry),
        )
    if "type" in entry:
        return _wrong_type(entry["type"], (*path, "type"), document, types)
    name = entry.get("name")
    return Problem(
        message=f"{f'the evaluator {quoted(name)}' if isinstance(name, str) else 'an evaluator'}"
        " has no 'type'",
        place=document.place_of(path),
        hint=f"add `type: {_likely_type(entry)}`",
    )


def _wrong_type(value: Json, path: KeyPath, document: YamlDocument, types: Types) -> Problem:
    name = value if isinstance(value, str) else ""
    if name in OF_EVAL_FILES:
        return Problem(
            message=f"type {name!r} is for eval files of AgentV",
            place=document.place_of(path),
            hint=OF_EVAL_FILES[name],
        )
    return Problem(
        message=f"type must be {one_of(list(types))}, not {shown(value, document.written(path))}",
        place=document.place_of(path),
        hint=did_you_mean(name, list(types)),
    )


def _likely_type(entry: JsonObject) -> str:
    if "path" in entry:
        return "code"
    name = entry.get("name")
    known = isinstance(name, str) and name in {*METRICS, *ASKING, *HOSTED, *METRICS_NOT_YET}
    return "builtin" if known else "builtin` or `type: code"


_EXAMPLE: Final = "- {name: tool_trajectory_avg_score, type: builtin}"


def _as_entry(entry: Json) -> str:
    is_metric = isinstance(entry, str) and entry in {*METRICS, *ASKING, *HOSTED}
    return f"write `- {{name: {entry}, type: builtin}}`" if is_metric else f"like `{_EXAMPLE}`"
