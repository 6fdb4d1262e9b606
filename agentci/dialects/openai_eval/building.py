"""Evaluators out of entries of ``type: openai_eval``."""

from collections.abc import Iterator
from typing import Final, assert_never

from agentci.dialects.agentevals.threshold import DEFAULT_THRESHOLD, bar_of
from agentci.dialects.openai_eval.entries import (
    GraderEntry,
    Multi,
    OpenAIEvalEntry,
    StringCheck,
    TextSimilarity,
    Threshold,
)
from agentci.dialects.openai_eval.evaluator import OpenAIEvaluator
from agentci.dialects.openai_eval.formula import parse_formula
from agentci.dialects.openai_eval.graders import Comparison, Grader, SimilarityGrader, StringGrader
from agentci.dialects.openai_eval.multi import MultiGrader
from agentci.dialects.openai_eval.rows import EXPECTED
from agentci.model.identity import Identity
from agentci.model.place import Place
from agentci.text.templates import named

IN_EVERY_TURN: Final = "in every turn"


def build_openai_eval(
    entry: OpenAIEvalEntry, *, place: Place, turn_mismatch_fails: bool
) -> OpenAIEvaluator:
    """Make the evaluator that grades as ``entry`` says."""
    threshold = _threshold(entry)
    return OpenAIEvaluator(
        identity=Identity(
            name=entry.name,
            type=entry.type,
            bar=f"{1 if threshold is None else bar_of(threshold)} {IN_EVERY_TURN}",
            threshold=threshold,
            required=entry.required,
            place=place,
            needs_golden=any(map(_names_golden, _templates(entry.grader))),
        ),
        grader=_grader(entry.grader),
        least=1.0 if threshold is None else threshold,
        turn_mismatch_fails=turn_mismatch_fails,
    )


def _threshold(entry: OpenAIEvalEntry) -> float | None:
    """What a turn has to reach; None where it is not about more or less."""
    if not isinstance(entry.grader, Threshold):
        return None
    given = entry.threshold if entry.grader.pass_threshold is None else entry.grader.pass_threshold
    return DEFAULT_THRESHOLD if given is None else given


def _grader(spec: GraderEntry) -> Grader:
    match spec:
        case TextSimilarity():
            comparison = Comparison(input=spec.input, reference=spec.reference)
            return SimilarityGrader(metric=spec.evaluation_metric, comparison=comparison)
        case StringCheck():
            comparison = Comparison(input=spec.input, reference=spec.reference)
            return StringGrader(operation=spec.operation, comparison=comparison)
        case Multi():
            return MultiGrader(
                members={name: _grader(each) for name, each in spec.members.items()},
                formula=parse_formula(spec.calculate_output),
            )
        case _:
            assert_never(spec)


def _templates(spec: GraderEntry) -> Iterator[str]:
    match spec:
        case TextSimilarity() | StringCheck():
            yield from (spec.input, spec.reference)
        case Multi():
            for each in spec.members.values():
                yield from _templates(each)
        case _:
            assert_never(spec)


def _names_golden(template: str) -> bool:
    return any(steps[:1] == (EXPECTED,) for _, steps in named(template))
