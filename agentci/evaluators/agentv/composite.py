"""``composite``: one score from the scores of other evaluators."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, assert_never

from msgspec import Struct
from pydantic import Field

from agentci._util.text.format import format_criterion
from agentci._util.text.javascript import format_js_number, stringify_json
from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.errors import InputError
from agentci.evaluators.agentv import agentv_evaluator
from agentci.evaluators.agentv.code_judge import DEFAULT_TIMEOUT_SECONDS, SHELL, CodeJudge
from agentci.evaluators.agentv.findings import (
    PASS_SCORE,
    Finding,
    PassThreshold,
    RuleEvaluator,
    format_verdict,
    make_agentv_judgement,
)
from agentci.evaluators.agentv.judge_templates import TemplateVocabulary
from agentci.evaluators.agentv.llm_judge import HolisticScale
from agentci.evaluators.agentv.response_checks import RegexEvaluator
from agentci.evaluators.evaluator import Definition, Facts, define_command, extract_judgement
from agentci.evaluators.fields import (
    Cached,
    RepeatableEntry,
    Share,
    StrictModel,
    Text,
    optional,
    reject_repeat,
)
from agentci.evaluators.judge_config import JudgeSpec, define_judge
from agentci.evaluators.prompts import make_question
from agentci.model.case import Case, Expectation
from agentci.model.judges import AggregateVerdict, AskModel, RequiredJudge
from agentci.model.requests import (
    FIXED_TIMEOUT,
    Compose,
    ConstantJudgement,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    Response,
    RunCommand,
    Task,
)
from agentci.model.values import Json, JsonObject, replace

RESULTS_NAME: Final = "EVALUATOR_RESULTS_JSON"
COMPOSITE_TASK: Final = "You combine several evaluators' results for one answer of an AI agent."


def append_results(text: str) -> str:
    """Make a template with the results below ``text``."""
    return f"{text}\n\n{{{{ {RESULTS_NAME} }}}}"


DEFAULT_TEMPLATE: Final = append_results(
    "Rate the overall quality of the answer from the results of all evaluators:"
)


class WeightedAverage(Struct, frozen=True, kw_only=True):
    """The mean of the members' scores; the default weight is 1.

    Attributes:
        requires_all: whether all members with a weight must pass, whatever the mean is.
    """

    weights: Mapping[str, float]
    requires_all: bool = False


class PassRate(Struct, frozen=True, kw_only=True):
    """The share of members that pass."""

    threshold: float


class ProgramAggregator(Struct, frozen=True, kw_only=True):
    """A program that reads the members' results; ``code_judge`` runs it and parses its output."""

    code_judge: CodeJudge


class ModelAggregator(Struct, frozen=True, kw_only=True):
    """A judge model whose prompt has the members' results instead of ``RESULTS_NAME``."""

    required_judge: RequiredJudge
    template: str = DEFAULT_TEMPLATE


Aggregator: TypeAlias = WeightedAverage | PassRate | ProgramAggregator | ModelAggregator


class CompositeEvaluator(Struct, frozen=True, kw_only=True):
    """A ``composite`` evaluator; it errors if a member errors.

    Attributes:
        definition: see ``ComparableEvaluator``.
    """

    identity: EvaluatorIdentity
    definition: Definition
    members: tuple[agentv_evaluator.AgentvEvaluator, ...]
    aggregator: Aggregator
    threshold: PassThreshold

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The prerequisites of the members and of the aggregator."""
        aggregator = self.aggregator
        own = (aggregator.required_judge,) if isinstance(aggregator, ModelAggregator) else ()
        return (*(each for member in self.members for each in member.needs), *own)

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return what the members read; the aggregator reads only their results."""
        return [member.read_expectation(expectation) for member in self.members]

    def ask(self, case: Case) -> Compose:
        """Evaluate all members, then combine their scores."""
        return Compose(
            parts=tuple((member.identity.name, member.ask(case)) for member in self.members),
            then=self._aggregate,
        )

    def read(self, response: Response) -> Judgement:
        """Return the judgement."""
        return extract_judgement(response)

    def _aggregate(self, responses: tuple[Response, ...]) -> Task:
        judgements = {
            member.identity.name: member.read(response)
            for member, response in zip(self.members, responses, strict=True)
        }
        aggregator = self.aggregator
        if isinstance(aggregator, ProgramAggregator):
            return self._ask_program(aggregator.code_judge, judgements)
        if isinstance(aggregator, ModelAggregator):
            return self._ask_model(aggregator, judgements)
        if isinstance(aggregator, PassRate):
            return self._make_composite_judgement(
                _count_passes(judgements, aggregator.threshold), judgements
            )
        finding = _average_scores(judgements, aggregator.weights)
        if aggregator.requires_all:
            weighted = (each for name, each in judgements.items() if aggregator.weights[name])
            verdict = all(each.passed is True for each in weighted)
            reason = None if verdict else "not all evaluators of the set passed"
            finding = replace(finding, verdict=verdict, reason=reason)
        return self._make_composite_judgement(finding, judgements)

    def _ask_program(self, judge: CodeJudge, judgements: Mapping[str, Judgement]) -> Compose:
        members = _format_results(judgements, with_assertions=True)
        results = stringify_json({"results": members}, indent=2)
        request = judge.make_command(results)

        def read(responses: tuple[Response, ...]) -> Task:
            return self._make_composite_judgement(judge.read_finding(responses[0]), judgements)

        return Compose(parts=((self.identity.name, request),), then=read)

    def _ask_model(self, model: ModelAggregator, judgements: Mapping[str, Judgement]) -> Compose:
        scale = HolisticScale()
        instructions = f"{COMPOSITE_TASK} {scale.instructions}"
        results = {RESULTS_NAME: stringify_json(_format_results(judgements), indent=2)}
        question = make_question(
            instructions, model.template, results, scale.form, leaves_unknown=True
        )
        request = AskModel(prompt=question, judge=model.required_judge.judge)

        def read(responses: tuple[Response, ...]) -> Task:
            if not isinstance(responses[0], AggregateVerdict):
                raise TypeError(f"expected a model's verdict, got {type(responses[0]).__name__}")
            return self._make_composite_judgement(scale.make_finding(responses[0]), judgements)

        return Compose(parts=((self.identity.name, request),), then=read)

    def _make_composite_judgement(
        self, finding: Finding, judgements: Mapping[str, Judgement]
    ) -> ConstantJudgement:
        judgement = make_agentv_judgement(finding, self.threshold)
        members: JsonObject = {name: _summarize_member(each) for name, each in judgements.items()}
        details = {**judgement.details, "members": members}
        return ConstantJudgement(judgement=replace(judgement, details=details))


def _average_scores(judgements: Mapping[str, Judgement], weights: Mapping[str, float]) -> Finding:
    total = sum(weights.get(name, 1.0) for name in judgements)
    weighted = sum(_get_score(each) * weights.get(name, 1.0) for name, each in judgements.items())
    return Finding(
        score=weighted / total if total else 0.0,
        hits=_prefix_lines({name: each.hits for name, each in judgements.items()}),
        misses=_prefix_lines({name: each.misses for name, each in judgements.items()}),
        reasoning=_join_reasoning(judgements),
    )


def _count_passes(judgements: Mapping[str, Judgement], threshold: float) -> Finding:
    passed = sum(each.passed is True for each in judgements.values())
    share = passed / len(judgements)
    found = _average_scores(judgements, {})
    shown = format_js_number(threshold)
    line = f"{passed}/{len(judgements)} evaluators passed (threshold: {shown})"
    if share >= threshold:
        return replace(found, score=share, hits=(line, *found.hits))
    return replace(found, score=share, misses=(line, *found.misses))


def _get_score(judgement: Judgement) -> float:
    """Return the score, which every evaluator of an eval file gives."""
    return judgement.score or 0.0


def _prefix_lines(findings: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(f"[{name}] {line}" for name, lines in findings.items() for line in lines)


def _join_reasoning(judgements: Mapping[str, Judgement]) -> str | None:
    lines = [f"{name}: {each.reasoning}" for name, each in judgements.items() if each.reasoning]
    return "; ".join(lines) or None


def _format_results(
    judgements: Mapping[str, Judgement], *, with_assertions: bool = False
) -> JsonObject:
    """Format the members' results for a program or a model, in AgentV's camelCase.

    Args:
        with_assertions: also lists hits and misses as ``assertions``, as AgentV 4 does.
    """
    return {
        name: {
            **_format_result(judgement),
            **({"assertions": _list_assertions(judgement)} if with_assertions else {}),
        }
        for name, judgement in judgements.items()
    }


def _list_assertions(judgement: Judgement) -> list[Json]:
    texts = [(text, True) for text in judgement.hits] + [(text, False) for text in judgement.misses]
    return [{"text": text, "passed": passed} for text, passed in texts]


def _describe_verdict(judgement: Judgement) -> str:
    """Return AgentV's verdict for a judgement; rubrics may fail with any score."""
    score = _get_score(judgement)
    return "fail" if score >= PASS_SCORE and not judgement.passed else format_verdict(score)


def _format_result(judgement: Judgement) -> JsonObject:
    fields: dict[str, Json] = {
        "score": judgement.score,
        "verdict": _describe_verdict(judgement),
        "hits": judgement.hits,
        "misses": judgement.misses,
        "expectedAspectCount": max(len(judgement.hits) + len(judgement.misses), 1),
        "reasoning": judgement.reasoning,
        "details": judgement.details or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _summarize_member(judgement: Judgement) -> JsonObject:
    nested = judgement.details.get("members")
    summary: JsonObject = {"score": judgement.score, "verdict": _describe_verdict(judgement)}
    return summary if nested is None else {**summary, "members": nested}


COMPOSITE_VOCABULARY: Final = TemplateVocabulary(
    known=frozenset({RESULTS_NAME}), required=frozenset({RESULTS_NAME}), wrap=append_results
)


class WeightedAverageSpec(StrictModel):
    """The mean of the members' scores."""

    type: Literal["weighted_average"]
    weights: dict[str, agentv_evaluator.NonNegative] = optional(
        "Weight of each member; by default 1.", default={}
    )


class ProgramAggregatorSpec(StrictModel):
    """A program that reads the members' results and prints a score."""

    type: Literal["code_judge", "code_grader", "code-judge", "code-grader"]
    path: Text = Field(description="The program, as one line for the shell.")
    cache: Cached = False


class CompositePassRateSpec(StrictModel):
    """The share of members that pass."""

    type: Literal["threshold"]
    threshold: Share = Field(description="Share of members that must pass.")


class ModelAggregatorSpec(StrictModel):
    """A language model that reads the members' results."""

    type: Literal["llm_judge", "llm_grader", "llm-judge", "llm-grader"]
    prompt: Text | None = optional(
        f"Prompt template with `{{{{ {RESULTS_NAME} }}}}`: text, or the path of a text file."
    )
    judge: JudgeSpec | None = optional("The judge model; by default that of the file.")


AggregatorSpec: TypeAlias = Annotated[
    WeightedAverageSpec | ProgramAggregatorSpec | CompositePassRateSpec | ModelAggregatorSpec,
    Field(discriminator="type"),
]


class CompositeEntry(RepeatableEntry, agentv_evaluator.AgentvEntry):
    """One score from the scores of other evaluators."""

    type: Literal["composite"] = Field(description="One score from other evaluators' scores.")
    aggregator: AggregatorSpec = Field(description="How the scores are combined.")


class AssertSetEntry(agentv_evaluator.AgentvEntry):
    """One score from the scores of other evaluators, by their weights."""

    type: Literal["assert_set"] = Field(
        description="The mean of other evaluators' scores, by their `weight`."
    )
    threshold: Share | None = optional(
        "Threshold of the mean; by default all members with a weight must pass."
    )


def build_assert_set(
    entry: AssertSetEntry, context: agentv_evaluator.AgentvContext
) -> CompositeEvaluator:
    """Make the evaluator.

    Raises:
        InputError: the entry has no members, or one has a ``repeat``.
    """
    _check_members(context, "assert-set", hint="list evaluators in `assert`")
    own = entry.threshold
    if own is not None and entry.min_score is None:
        entry = entry.model_copy(update={"min_score": own})
    aggregator = WeightedAverage(
        weights={each.identity.name: each.identity.weight for each in context.members},
        requires_all=own is None,
    )
    return CompositeEvaluator(
        identity=agentv_evaluator.make_agentv_identity(entry, context),
        definition=agentv_evaluator.define_agentv_entry(
            entry,
            context,
            aggregator={"weights": aggregator.weights},
            evaluators=[member.definition for member in context.members],
        ),
        members=context.members,
        aggregator=aggregator,
        threshold=agentv_evaluator.make_pass_threshold(entry, context),
    )


def build_composite(
    entry: CompositeEntry, context: agentv_evaluator.AgentvContext
) -> CompositeEvaluator:
    """Make the evaluator.

    Raises:
        InputError: the entry has no members, or has or contains a ``repeat`` that is not allowed.
    """
    _check_members(context, "composite", hint="list evaluators with `name` and `type`")
    aggregator = _build_aggregator(entry, context)
    if isinstance(aggregator, WeightedAverage | PassRate) and all(
        isinstance(member, RuleEvaluator | RegexEvaluator) for member in context.members
    ):
        reject_repeat(entry, of=context.place, at=context.find_place("repeat"))
    identity = agentv_evaluator.make_agentv_identity(entry, context)
    threshold = agentv_evaluator.make_pass_threshold(entry, context)
    if isinstance(aggregator, PassRate):
        # The aggregator has its own threshold.
        pass_score = aggregator.threshold
        identity = replace(identity, criterion=format_criterion(pass_score), threshold=pass_score)
        threshold = replace(threshold, score=pass_score)
    return CompositeEvaluator(
        identity=identity,
        definition=agentv_evaluator.define_agentv_entry(
            entry,
            context,
            min_score=threshold.score,
            aggregator=_define_aggregator(aggregator, entry.aggregator.type, context),
            evaluators=[member.definition for member in context.members],
        ),
        members=context.members,
        aggregator=aggregator,
        threshold=threshold,
    )


def _check_members(context: agentv_evaluator.AgentvContext, kind: str, *, hint: str) -> None:
    if not context.members:
        raise InputError.from_message(
            f"`{kind}` needs `evaluators`", place=context.place, hint=hint
        )
    for member in context.members:
        if member.identity.repetition.times > 1:
            raise InputError.from_message(
                f"the member {quote_name(member.identity.name)} of a composite cannot "
                "have `repeat`",
                place=member.identity.place,
                hint="set `repeat` on the composite; it repeats all members",
            )


def _build_aggregator(entry: CompositeEntry, context: agentv_evaluator.AgentvContext) -> Aggregator:
    spec = entry.aggregator
    if isinstance(spec, WeightedAverageSpec):
        return WeightedAverage(weights=_check_weights(spec, context))
    if isinstance(spec, CompositePassRateSpec):
        return PassRate(threshold=spec.threshold)
    if isinstance(spec, ModelAggregatorSpec):
        place = context.find_place("aggregator")
        template = DEFAULT_TEMPLATE
        if spec.prompt is not None:
            template = context.templates.read(spec.prompt, place, COMPOSITE_VOCABULARY)
        required_judge = agentv_evaluator.make_required_judge(entry.name, spec.judge, context)
        return ModelAggregator(required_judge=required_judge, template=template)
    return ProgramAggregator(
        code_judge=CodeJudge(
            identity=agentv_evaluator.make_agentv_identity(entry, context),
            run=RunCommand(
                command=(*SHELL, spec.path),
                folder=context.folder(None),
                home=context.home,
                timeout_seconds=DEFAULT_TIMEOUT_SECONDS,
                timeout_hint=FIXED_TIMEOUT,
                cached=spec.cache,
            ),
            threshold=agentv_evaluator.make_pass_threshold(entry, context),
            prefers_assertions=context.version == "v4",
            reads_verdict=True,
        )
    )


def _define_aggregator(
    aggregator: Aggregator, kind: str, context: agentv_evaluator.AgentvContext
) -> Facts:
    match aggregator:
        case WeightedAverage(weights=weights):
            return {"type": kind, "weights": weights}
        case PassRate(threshold=threshold):
            return {"type": kind, "threshold": threshold}
        case ModelAggregator(required_judge=required, template=template):
            return {"prompt": template, "judge": define_judge(required.judge)}
        case ProgramAggregator(code_judge=judge):
            run = judge.run
            command = define_command(run.command, folder=run.folder, home=run.home)
            return {"path": command, "version": context.version}
        case _:
            assert_never(aggregator)


def _check_weights(
    spec: WeightedAverageSpec, context: agentv_evaluator.AgentvContext
) -> dict[str, float]:
    """Return the weights if all of them name members.

    AgentV ignores other names, so that a misspelled member gets the weight 1.
    """
    names = [member.identity.name for member in context.members]
    for name in spec.weights:
        if name not in names:
            raise InputError.from_message(
                f"`weights` names {quote_name(name)}, which is not a member of the composite",
                place=context.find_place("aggregator"),
                hint=suggest_name(name, names) or f"use {join_with_or(names)}",
            )
    return spec.weights
