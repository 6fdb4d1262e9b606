"""What the pydantic models object to in a config."""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from pydantic import BaseModel, ValidationError

from agentci.config.entry_types import type_of
from agentci.config.models import EvalConfig
from agentci.config.schema import Types, defaults_model
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.model.json import Json
from agentci.model.problem import Problem


class Rejection(Struct, frozen=True, kw_only=True):
    """Something that a model objects to.

    Attributes:
        is_beyond_schema: comes from code of the model, of which its JSON Schema cannot know.
    """

    problem: Problem
    is_beyond_schema: bool


def rejections(document: YamlDocument, types: Types) -> tuple[Rejection, ...]:
    """What the models object to; empty where they accept all of the config."""
    return tuple(each for part in _parts(document, types) for each in _read(*part, document))


def _parts(
    document: YamlDocument, types: Types
) -> Iterator[tuple[KeyPath, type[BaseModel] | None, Json]]:
    """The parts of a config with the model that reads each; None where nothing does."""
    data = document.data
    yield (), EvalConfig, data
    if data.get("defaults"):
        yield ("defaults",), defaults_model(types), data["defaults"]
    evaluators = data.get("evaluators")
    for index, entry in enumerate(evaluators if isinstance(evaluators, list) else ()):
        name = type_of(entry, types)
        yield ("evaluators", index), None if name is None else types[name].entry, entry


def _read(
    path: KeyPath, model: type[BaseModel] | None, value: Json, document: YamlDocument
) -> Iterator[Rejection]:
    if model is None:
        problem = Problem(message="no evaluator of a known type", place=document.place_of(path))
        yield Rejection(problem=problem, is_beyond_schema=False)
        return
    try:
        model.model_validate(dict(value) if isinstance(value, Mapping) else value)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            yield Rejection(
                problem=Problem(
                    message=each["msg"].removeprefix("Value error, "),
                    place=document.place_of(_written((*path, *each["loc"]), document)),
                ),
                is_beyond_schema=each["type"] == "value_error",
            )


def _written(loc: KeyPath, document: YamlDocument) -> KeyPath:
    """The steps of ``loc`` that lead through the file: pydantic also names alternatives in it."""
    path: KeyPath = ()
    for step in loc:
        if document.has((*path, step)):
            path = (*path, step)
    return path
