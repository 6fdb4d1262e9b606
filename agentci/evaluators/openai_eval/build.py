"""Builds evaluators from entries of ``type: openai_eval``."""

from collections.abc import Iterable, Iterator
from typing import Final, TypedDict, assert_never

from agentci._util.text.format import format_criterion
from agentci._util.text.python_code import find_read_keys
from agentci._util.text.suggest import join_with_or
from agentci._util.text.templates import list_template_paths
from agentci.errors import InputError
from agentci.evaluators.evaluator import Definition, define_entry
from agentci.evaluators.evaluator_type import EvaluatorContext
from agentci.evaluators.fields import reject_repeat
from agentci.evaluators.grader_protocol import ITEM, ITEM_POSITION, SAMPLE
from agentci.evaluators.judge_config import JudgeSpec, MissingJudgeError, define_judge
from agentci.evaluators.metrics import DEFAULT_THRESHOLD
from agentci.evaluators.openai_eval import evaluator, graders
from agentci.evaluators.openai_eval.entries import (
    AnyGraderSpec,
    LabelModelSpec,
    ModelGraderSpec,
    MultiGraderSpec,
    OpenAIEvalEntry,
    PythonGraderSpec,
    ScoredGraderSpec,
    ScoreModelSpec,
    StringCheckSpec,
    TextSimilaritySpec,
)
from agentci.evaluators.openai_eval.graders import parse_formula
from agentci.model.judges import ModelSettings, RequiredJudge
from agentci.model.program import RequiredProgram
from agentci.model.requests import (
    NO_REPETITION,
    EvalsService,
    EvaluatorIdentity,
    Repetition,
    RequiredService,
)
from agentci.model.values import JsonObject, Place, replace

# Graders name OpenAI's models.
DEFAULT_PROVIDER: Final = "openai"
# Providers whose embeddings agentci supports.
EMBEDDING_PROVIDERS: Final = ("openai", "azure")


class GraderModels:
    """The models that the graders of an entry use."""

    def __init__(self, entry: OpenAIEvalEntry, context: EvaluatorContext) -> None:
        self._entry = entry
        self._judges = context.judges
        self._grader_place = context.find_place("grader")
        self._place = context.find_place("grader" if entry.judge is None else "judge")

    def require_judge(self, spec: ModelGraderSpec) -> RequiredJudge:
        """Return the judge model of a grader with a prompt.

        Raises:
            InputError: no model is configured.
        """
        fields = _extract_judge_fields(spec)
        if "model" in fields and self._names_no_service():
            fields["provider"] = DEFAULT_PROVIDER
        own = {} if self._entry.judge is None else self._entry.judge.model_dump(exclude_none=True)
        return self._judges.require(
            JudgeSpec.model_validate({**fields, **own}), name=self._entry.name, place=self._place
        )

    def require_embedding_model(self) -> RequiredJudge:
        """Return the model that makes embeddings.

        Raises:
            InputError: no embedding model is configured, or the provider's embeddings are not
                supported.
        """
        # --judge-model does not apply to embedding models.
        required = (
            replace(self._judges, model="").require(
                self._entry.judge, name=self._entry.name, place=self._place
            )
            if any(each is not None and each.embedding_model for each in self._judge_specs())
            else None
        )
        if required is None or not required.judge.settings.embedding_model:
            raise MissingJudgeError.from_message(
                "`cosine` needs an embedding model",
                place=self._grader_place,
                hint="add `judge: {embedding_model: ...}`, or use `cosine_tf`, which compares word "
                "counts, or `backend: remote`",
            )
        settings = required.judge.settings
        if settings.provider not in EMBEDDING_PROVIDERS:
            raise InputError.from_message(
                f"embeddings of provider `{settings.provider}` are not supported",
                place=self._place,
                hint=f"add a `judge` to the entry with provider "
                f"{join_with_or(EMBEDDING_PROVIDERS)}",
            )
        embedding = ModelSettings(
            provider=settings.provider,
            model=settings.embedding_model,
            base_url=settings.base_url,
            api_version=settings.api_version,
            key_variable=settings.key_variable,
            federation=settings.federation,
            output_tokens=0,
            prices=settings.prices,
        )
        return replace(required, judge=replace(required.judge, settings=embedding, samples=1))

    def _judge_specs(self) -> tuple[JudgeSpec | None, ...]:
        return (self._judges.shared, self._entry.judge)

    def _names_no_service(self) -> bool:
        return not self._judges.model and not any(
            each is not None and (each.provider or each.command) for each in self._judge_specs()
        )


def _extract_judge_fields(spec: ModelGraderSpec) -> dict[str, object]:
    sampling = spec.sampling_params if isinstance(spec, ScoreModelSpec) else None
    fields = {
        "model": spec.model,
        "temperature": sampling and sampling.temperature,
        "effort": sampling and sampling.reasoning_effort,
        "max_output_tokens": sampling and sampling.max_completions_tokens,
    }
    return {name: value for name, value in fields.items() if value is not None}


LOCAL_ONLY_METRIC: Final = "cosine_tf"


class ScoreBounds(TypedDict, total=False):
    """The lowest and the highest score of a grader."""

    low: float
    high: float


def make_testing_criterion(
    spec: AnyGraderSpec, *, name: str, threshold: float, place: Place
) -> JsonObject:
    """Make the testing criterion of the Evals API for a grader.

    Args:
        name: the entry's name, for a grader without its own.
        threshold: from 0 to 1.

    Raises:
        InputError: services do not support the grader.
    """
    if problem := _find_unsupported(spec):
        raise InputError.from_message(
            f"`backend: remote` does not support this grader: {problem}",
            place=place,
            hint="remove `backend` to grade locally",
        )
    criterion = {"name": name, **spec.model_dump(exclude_none=True)}
    if isinstance(spec, ScoredGraderSpec):
        bounds = get_score_bounds(spec)
        low, high = bounds.get("low", 0.0), bounds.get("high", 1.0)
        criterion["pass_threshold"] = low + threshold * (high - low)
    return criterion


def get_score_bounds(spec: AnyGraderSpec) -> ScoreBounds:
    """Return the bounds of a grader's scores if they are not 0 and 1."""
    return (
        ScoreBounds(low=spec.range[0], high=spec.range[1])
        if isinstance(spec, ScoreModelSpec)
        else {}
    )


def iterate_templates(spec: AnyGraderSpec) -> Iterator[str]:
    """Yield the templates of a grader, without those of its members."""
    if isinstance(spec, TextSimilaritySpec | StringCheckSpec):
        yield from (spec.input, spec.reference)
    elif isinstance(spec, ModelGraderSpec):
        yield from (each.text for each in spec.input)


def names_field(part: str, template: str) -> bool:
    """Return whether a template uses the field ``part`` of a namespace."""
    return any(steps[:1] == (part,) for _, steps in list_template_paths(template))


def find_item_fields(specs: Iterable[AnyGraderSpec]) -> frozenset[str] | None:
    """Find the fields of ``item`` that graders read; None if they may read any."""
    found: set[str] = set()
    for spec in specs:
        if isinstance(spec, PythonGraderSpec):
            keys = find_read_keys(spec.source, graders.FUNCTION_NAME, ITEM_POSITION)
            if keys is None:
                return None
            found |= keys
        for namespace, steps in (
            p for t in iterate_templates(spec) for p in list_template_paths(t)
        ):
            if namespace == ITEM and not steps:
                return None
            if namespace == ITEM:
                found.add(f"{steps[0]}")
    return frozenset(found)


def _find_unsupported(spec: AnyGraderSpec) -> str | None:
    if isinstance(spec, MultiGraderSpec):
        return "`multi` is not allowed in evals"
    if isinstance(spec, ModelGraderSpec) and spec.model is None:
        return "it has no `model`"
    if isinstance(spec, TextSimilaritySpec) and spec.evaluation_metric == LOCAL_ONLY_METRIC:
        return f"`{LOCAL_ONLY_METRIC}` is a metric of agentci"
    used = {path for text in iterate_templates(spec) for path in list_template_paths(text)}
    if any(SAMPLE in (namespace, *steps[:1]) for namespace, steps in used):
        return f"a template uses `{SAMPLE}`, which is not sent to the service"
    return None


COSINE: Final = "cosine"
IN_EVERY_TURN: Final = "in every turn"


def build_openai_eval(
    entry: OpenAIEvalEntry, context: EvaluatorContext
) -> evaluator.OpenAIEvaluator | evaluator.EvalsApiEvaluator:
    """Make the evaluator of ``entry``.

    Raises:
        InputError: no model is configured, or the backend does not support the grader.
    """
    specs = [*_iterate_specs(entry.grader)]
    _check_cache(entry, specs, context)
    threshold = _find_threshold(entry)
    passing_score = 1.0 if threshold is None else threshold
    identity = EvaluatorIdentity(
        name=entry.name,
        type=entry.type,
        criterion=f"{_describe_threshold(entry.grader, threshold)} {IN_EVERY_TURN}",
        threshold=threshold,
        required=entry.required,
        place=context.place,
        needs_expected=any(
            names_field(evaluator.EXPECTED_FIELD, text)
            for spec in specs
            for text in iterate_templates(spec)
        ),
        repetition=_read_repetition(entry, specs, context),
    )
    place, fields = context.find_place("grader"), find_item_fields(specs)
    if entry.base_url is not None:
        service = EvalsService(base_url=entry.base_url, key_variable=entry.api_key_env or "")
        at = context.find_place("base_url")
        return evaluator.EvalsApiEvaluator(
            identity=identity,
            definition=_define(entry, identity, (), context),
            fields=fields,
            service=RequiredService(service=service, name=entry.name, place=at),
            criterion=make_testing_criterion(
                entry.grader, name=entry.name, threshold=passing_score, place=place
            ),
            timeout_seconds=entry.timeout,
            threshold=passing_score,
            turn_mismatch_fails=context.turn_mismatch_fails,
            **get_score_bounds(entry.grader),
        )
    models = GraderModels(entry, context)
    caller = RequiredProgram(program=graders.GRADE_PROGRAM, name=entry.name, place=place)
    judges = (
        *(models.require_judge(spec) for spec in specs if isinstance(spec, ModelGraderSpec)),
        *(models.require_embedding_model() for spec in specs if _uses_embeddings(spec)),
    )
    return evaluator.OpenAIEvaluator(
        identity=identity,
        definition=_define(entry, identity, judges, context),
        fields=fields,
        grader=_build_grader(entry.grader, entry, models),
        needs=(*judges, *(caller for spec in specs if isinstance(spec, PythonGraderSpec))),
        threshold=passing_score,
        turn_mismatch_fails=context.turn_mismatch_fails,
    )


def _define(
    entry: OpenAIEvalEntry,
    identity: EvaluatorIdentity,
    judges: Iterable[RequiredJudge],
    context: EvaluatorContext,
) -> Definition:
    mismatch = "fail" if context.turn_mismatch_fails else "warn"
    return define_entry(
        entry,
        threshold=identity.threshold,
        on_turn_mismatch=mismatch if identity.needs_expected else None,
        judge=[define_judge(each.judge) for each in judges],
    )


def _check_cache(
    entry: OpenAIEvalEntry, specs: Iterable[AnyGraderSpec], context: EvaluatorContext
) -> None:
    """Reject `cache: true` in an entry without a program; that of `defaults` may be for others."""
    runs_python = any(isinstance(spec, PythonGraderSpec) for spec in specs)
    place = context.find_place("cache")
    if entry.cache and place != context.place and not (runs_python and not entry.base_url):
        raise InputError.from_message(
            "`cache` is for `python` graders with `backend: local`; this entry runs no program",
            place=place,
            hint="remove `cache`",
        )


def _read_repetition(
    entry: OpenAIEvalEntry, specs: Iterable[AnyGraderSpec], context: EvaluatorContext
) -> Repetition:
    """Return the repetition; raises InputError if the grader's result cannot vary."""
    if any(isinstance(spec, ModelGraderSpec | PythonGraderSpec) for spec in specs):
        return entry.repetition
    reject_repeat(entry, of=context.place, at=context.find_place("repeat"))
    return NO_REPETITION


def _uses_embeddings(spec: AnyGraderSpec) -> bool:
    return isinstance(spec, TextSimilaritySpec) and spec.evaluation_metric == COSINE


def _find_threshold(entry: OpenAIEvalEntry) -> float | None:
    if not isinstance(entry.grader, ScoredGraderSpec):
        return None
    own = entry.grader.own_threshold
    given = entry.threshold if own is None else own
    return DEFAULT_THRESHOLD if given is None else given


def _describe_threshold(spec: AnyGraderSpec, threshold: float | None) -> str:
    if isinstance(spec, LabelModelSpec):
        return f"label in {', '.join(spec.passing_labels)}"
    return format_criterion(1 if threshold is None else threshold)


def _build_grader(
    spec: AnyGraderSpec, entry: OpenAIEvalEntry, models: GraderModels
) -> graders.TurnGrader:
    match spec:
        case TextSimilaritySpec():
            return _build_similarity_grader(spec, models)
        case StringCheckSpec():
            operation = spec.operation
            return graders.StringCheckGrader(
                input=spec.input, reference=spec.reference, operation=operation
            )
        case PythonGraderSpec():
            return graders.PythonGrader(
                source=spec.source, timeout_seconds=entry.timeout, cached=entry.cache
            )
        case MultiGraderSpec():
            return graders.MultiGrader(
                members={
                    name: _build_grader(each, entry, models) for name, each in spec.members.items()
                },
                formula=parse_formula(spec.calculate_output),
            )
        case LabelModelSpec() | ScoreModelSpec():
            return _build_model_grader(spec, models)
        case _:
            assert_never(spec)


def _build_similarity_grader(spec: TextSimilaritySpec, models: GraderModels) -> graders.TurnGrader:
    if spec.evaluation_metric == COSINE:
        model = models.require_embedding_model().judge
        return graders.CosineGrader(input=spec.input, reference=spec.reference, model=model)
    return graders.SimilarityGrader(
        input=spec.input, reference=spec.reference, metric=spec.evaluation_metric
    )


def _build_model_grader(
    spec: LabelModelSpec | ScoreModelSpec, models: GraderModels
) -> graders.TurnGrader:
    prompt = graders.GraderPrompt(messages=tuple((each.role, each.text) for each in spec.input))
    judge = models.require_judge(spec).judge
    if isinstance(spec, ScoreModelSpec):
        low, high = spec.range
        return graders.ScoreModelGrader(prompt=prompt, low=low, high=high, judge=judge)
    return graders.LabelModelGrader(
        prompt=prompt, labels=tuple(spec.labels), passing=tuple(spec.passing_labels), judge=judge
    )


def _iterate_specs(spec: AnyGraderSpec) -> Iterator[AnyGraderSpec]:
    yield spec
    if isinstance(spec, MultiGraderSpec):
        yield from spec.members.values()
