"""Graders as a service of the Evals API takes them, and what their templates name."""

from collections.abc import Iterator
from typing import Final, TypedDict

from agentci._util.text.templates import named
from agentci.errors import InputError
from agentci.evaluators.grader_payload import SAMPLE
from agentci.evaluators.openai_eval.entries import AnyGrader, Multi
from agentci.evaluators.openai_eval.model_grader_specs import ModelSpec, ScoreModel
from agentci.evaluators.openai_eval.specs import GradedSpec, StringCheck, TextSimilarity
from agentci.model.json import JsonObject
from agentci.model.place import Place

OURS_ALONE: Final = "cosine_tf"


class Bounds(TypedDict, total=False):
    """The least and the greatest score of a grader."""

    low: float
    high: float


def criterion_of(spec: AnyGrader, *, name: str, least: float, place: Place) -> JsonObject:
    """A grader as a testing criterion.

    Args:
        name: of the entry, for a grader without one.
        least: the share of its scores that passes.

    Raises:
        InputError: no service has it.
    """
    if problem := _problem(spec):
        hint = "without `backend` agentci grades by itself"
        raise InputError.of(f"a service cannot grade this: {problem}", place=place, hint=hint)
    criterion = {"name": name, **spec.model_dump(exclude_none=True)}
    if isinstance(spec, GradedSpec):
        bounds = bounds_of(spec)
        low, high = bounds.get("low", 0.0), bounds.get("high", 1.0)
        criterion["pass_threshold"] = low + least * (high - low)
    return criterion


def bounds_of(spec: AnyGrader) -> Bounds:
    """The bounds of a grader's scores, where they are not 0 and 1."""
    return Bounds(low=spec.range[0], high=spec.range[1]) if isinstance(spec, ScoreModel) else {}


def templates_of(spec: AnyGrader) -> Iterator[str]:
    """The templates of a grader, those of its members apart."""
    if isinstance(spec, TextSimilarity | StringCheck):
        yield from (spec.input, spec.reference)
    elif isinstance(spec, ModelSpec):
        yield from (each.text for each in spec.input)


def names(part: str, template: str) -> bool:
    """Whether a template names ``part`` of a namespace."""
    return any(steps[:1] == (part,) for _, steps in named(template))


def _problem(spec: AnyGrader) -> str | None:
    if isinstance(spec, Multi):
        return "`multi` is not allowed in evals"
    if isinstance(spec, ModelSpec) and spec.model is None:
        return "the grader has to name its `model`"
    if isinstance(spec, TextSimilarity) and spec.evaluation_metric == OURS_ALONE:
        return f"{OURS_ALONE} is a metric of agentci"
    used = {path for text in templates_of(spec) for path in named(text)}
    if any(SAMPLE in (namespace, *steps[:1]) for namespace, steps in used):
        return f"only items are sent, and a template names `{SAMPLE}`"
    return None
