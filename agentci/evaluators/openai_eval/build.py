"""Evaluators out of entries of ``type: openai_eval``."""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from agentci.evaluators.agentevals.threshold import DEFAULT_THRESHOLD, bar_of
from agentci.evaluators.context import Surroundings
from agentci.evaluators.openai_eval.entries import AnyGrader, Multi, OpenAIEvalEntry
from agentci.evaluators.openai_eval.evals_api import RemoteEvaluator
from agentci.evaluators.openai_eval.evaluator import OpenAIEvaluator
from agentci.evaluators.openai_eval.formula import parse_formula
from agentci.evaluators.openai_eval.judge_models import Panels
from agentci.evaluators.openai_eval.model_grader_specs import LabelModel, ModelSpec, ScoreModel
from agentci.evaluators.openai_eval.model_graders import LabelGrader, Prompt, ScoreGrader
from agentci.evaluators.openai_eval.multi_grader import MultiGrader
from agentci.evaluators.openai_eval.python_grader import CALLER, FunctionGrader
from agentci.evaluators.openai_eval.specs import (
    GradedSpec,
    PythonFunction,
    StringCheck,
    TextSimilarity,
)
from agentci.evaluators.openai_eval.template_data import EXPECTED
from agentci.evaluators.openai_eval.testing_criteria import (
    bounds_of,
    criterion_of,
    names,
    templates_of,
)
from agentci.evaluators.openai_eval.text_graders import (
    CosineGrader,
    Grader,
    SimilarityGrader,
    StringGrader,
)
from agentci.evaluators.repeat import refuse_repeat
from agentci.model.grading import EvalsService, WantedService
from agentci.model.identity import ONCE, Identity, Repetition
from agentci.model.program import Wanted

COSINE: Final = "cosine"
IN_EVERY_TURN: Final = "in every turn"


def build_openai_eval(
    entry: OpenAIEvalEntry, surroundings: Surroundings
) -> OpenAIEvaluator | RemoteEvaluator:
    """Make the evaluator that grades as ``entry`` says.

    Raises:
        InputError: it asks a model, and nobody said which one; or its backend has no such grader.
    """
    specs = [*_specs(entry.grader)]
    threshold = _threshold(entry)
    least = 1.0 if threshold is None else threshold
    identity = Identity(
        name=entry.name,
        type=entry.type,
        bar=f"{_bar(entry.grader, threshold)} {IN_EVERY_TURN}",
        threshold=threshold,
        required=entry.required,
        place=surroundings.place,
        needs_golden=any(names(EXPECTED, text) for spec in specs for text in templates_of(spec)),
        repetition=_repetition(entry, specs, surroundings),
    )
    place = surroundings.place_of("grader")
    if entry.base_url is not None:
        service = EvalsService(base_url=entry.base_url, key_variable=entry.api_key_env or "")
        at = surroundings.place_of("base_url")
        return RemoteEvaluator(
            identity=identity,
            wanted=WantedService(service=service, name=entry.name, place=at),
            criterion=criterion_of(entry.grader, name=entry.name, least=least, place=place),
            timeout_seconds=entry.timeout,
            least=least,
            turn_mismatch_fails=surroundings.turn_mismatch_fails,
            **bounds_of(entry.grader),
        )
    panels = Panels(entry, surroundings)
    caller = Wanted(program=CALLER, name=entry.name, place=place)
    return OpenAIEvaluator(
        identity=identity,
        grader=_grader(entry.grader, entry, panels),
        needs=(
            *(panels.wanted(spec) for spec in specs if isinstance(spec, ModelSpec)),
            *(panels.wanted_for_embeddings() for spec in specs if _is_cosine(spec)),
            *(caller for spec in specs if isinstance(spec, PythonFunction)),
        ),
        least=least,
        turn_mismatch_fails=surroundings.turn_mismatch_fails,
    )


def _repetition(
    entry: OpenAIEvalEntry, specs: Iterable[AnyGrader], surroundings: Surroundings
) -> Repetition:
    """How often it is asked; raises InputError where that is of no use."""
    if any(isinstance(spec, ModelSpec | PythonFunction) for spec in specs):
        return entry.repetition
    refuse_repeat(entry, of=surroundings.place, at=surroundings.place_of("repeat"))
    return ONCE


def _is_cosine(spec: AnyGrader) -> bool:
    return isinstance(spec, TextSimilarity) and spec.evaluation_metric == COSINE


def _threshold(entry: OpenAIEvalEntry) -> float | None:
    """What a turn has to reach; None where it is not about more or less."""
    if not isinstance(entry.grader, GradedSpec):
        return None
    own = entry.grader.own_threshold
    given = entry.threshold if own is None else own
    return DEFAULT_THRESHOLD if given is None else given


def _bar(spec: AnyGrader, threshold: float | None) -> str:
    if isinstance(spec, LabelModel):
        return f"label in {', '.join(spec.passing_labels)}"
    return "1" if threshold is None else bar_of(threshold)


def _grader(spec: AnyGrader, entry: OpenAIEvalEntry, panels: Panels) -> Grader:
    match spec:
        case TextSimilarity():
            return _similarity_grader(spec, panels)
        case StringCheck():
            operation = spec.operation
            return StringGrader(input=spec.input, reference=spec.reference, operation=operation)
        case PythonFunction():
            return FunctionGrader(source=spec.source, timeout_seconds=entry.timeout)
        case Multi():
            return MultiGrader(
                members={name: _grader(each, entry, panels) for name, each in spec.members.items()},
                formula=parse_formula(spec.calculate_output),
            )
        case LabelModel() | ScoreModel():
            return _model_grader(spec, panels)
        case _:
            assert_never(spec)


def _similarity_grader(spec: TextSimilarity, panels: Panels) -> Grader:
    mine, its, metric = spec.input, spec.reference, spec.evaluation_metric
    if metric == COSINE:
        return CosineGrader(input=mine, reference=its, panel=panels.for_embeddings())
    return SimilarityGrader(input=mine, reference=its, metric=metric)


def _model_grader(spec: LabelModel | ScoreModel, panels: Panels) -> Grader:
    prompt = Prompt(messages=tuple((each.role, each.text) for each in spec.input))
    panel = panels.panel(spec)
    if isinstance(spec, ScoreModel):
        low, high = spec.range
        return ScoreGrader(prompt=prompt, low=low, high=high, panel=panel)
    return LabelGrader(
        prompt=prompt,
        labels=tuple(spec.labels),
        passing=tuple(spec.passing_labels),
        panel=panel,
    )


def _specs(spec: AnyGrader) -> Iterator[AnyGrader]:
    """A grader and all in it."""
    yield spec
    if isinstance(spec, Multi):
        yield from spec.members.values()
