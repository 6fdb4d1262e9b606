"""Entries of ``composite``."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import Surroundings, identity_of, standard_of
from agentci.evaluators.agentv.code_judge import CodeJudge
from agentci.evaluators.agentv.composite import (
    RESULTS,
    TEMPLATE,
    Aggregator,
    Composite,
    Model,
    PassRate,
    Program,
    WeightedAverage,
    with_results,
)
from agentci.evaluators.agentv.entries.code_judge_entry import DEFAULT_TIMEOUT_SECONDS, SHELL
from agentci.evaluators.agentv.entries.judge_entry import wanted_panel
from agentci.evaluators.agentv.entry_fields import JudgeEntry, NonNegative
from agentci.evaluators.agentv.judge_templates import Vocabulary
from agentci.evaluators.agentv.recorded import RuleJudge
from agentci.evaluators.agentv.verdict import bar_of
from agentci.evaluators.fields import Share, Strict, Text
from agentci.evaluators.judge_config import JudgeSpec
from agentci.evaluators.repeat import Repeated, refuse_repeat
from agentci.model.requests import RunCommand
from agentci.model.values import replace

VOCABULARY: Final = Vocabulary(
    known=frozenset({RESULTS}), needed=frozenset({RESULTS}), around=with_results
)


class AverageSpec(Strict):
    """The mean of the members' scores."""

    type: Literal["weighted_average"]
    weights: dict[str, NonNegative] = Field(
        default={}, description="How much each member counts; 1 where it is left out."
    )


class ProgramSpec(Strict):
    """A program that reads the members' results and prints a score."""

    type: Literal["code_judge", "code_grader", "code-judge", "code-grader"]
    path: Text = Field(description="Line for the shell.")
    cache: bool = Field(
        default=True, description="Whether an earlier reply is taken where nothing has changed."
    )


class ThresholdSpec(Strict):
    """The share of members that pass."""

    type: Literal["threshold"]
    threshold: Share = Field(description="Share that passes.")


class ModelSpec(Strict):
    """A language model that reads the members' results."""

    type: Literal["llm_judge", "llm_grader", "llm-judge", "llm-grader"]
    prompt: Text | None = Field(
        default=None,
        description=f"What it is asked, with `{{{{ {RESULTS} }}}}`: text, or a file of text.",
    )
    judge: JudgeSpec | None = Field(
        default=None, description="Which model judges, where that is not the one of the file."
    )


Spec: TypeAlias = Annotated[
    AverageSpec | ProgramSpec | ThresholdSpec | ModelSpec, Field(discriminator="type")
]


class CompositeEntry(Repeated, JudgeEntry):
    """One score out of those of other evaluators."""

    type: Literal["composite"] = Field(description="One score out of those of other evaluators.")
    aggregator: Spec = Field(description="How their scores become one.")


def build_composite(entry: CompositeEntry, surroundings: Surroundings) -> Composite:
    """Make the evaluator.

    Raises:
        InputError: it has no members, or such as go with no ``repeat``.
    """
    if not surroundings.members:
        raise InputError.of(
            "a composite needs `evaluators`",
            place=surroundings.place,
            hint="list evaluators with `name` and `type` below it",
        )
    _refuse_repeats(surroundings)
    aggregator = _aggregator(entry, surroundings)
    if isinstance(aggregator, WeightedAverage | PassRate) and all(
        isinstance(member, RuleJudge) for member in surroundings.members
    ):
        refuse_repeat(entry, of=surroundings.place, at=surroundings.place_of("repeat"))
    identity, standard = identity_of(entry, surroundings), standard_of(entry, surroundings)
    if isinstance(aggregator, PassRate):
        # The share that passes is the aggregator's own.
        line = aggregator.threshold
        identity = replace(identity, bar=bar_of(line), threshold=line)
        standard = replace(standard, line=line)
    return Composite(
        identity=identity,
        members=surroundings.members,
        aggregator=aggregator,
        standard=standard,
    )


def _refuse_repeats(surroundings: Surroundings) -> None:
    for member in surroundings.members:
        if member.identity.repetition.times > 1:
            raise InputError.of(
                f"the member {quoted(member.identity.name)} of a composite cannot have a `repeat`",
                place=member.identity.place,
                hint="give it to the composite, whose members are all asked as often then",
            )


def _aggregator(entry: CompositeEntry, surroundings: Surroundings) -> Aggregator:
    spec = entry.aggregator
    if isinstance(spec, AverageSpec):
        return WeightedAverage(weights=_weights(spec, surroundings))
    if isinstance(spec, ThresholdSpec):
        return PassRate(threshold=spec.threshold)
    if isinstance(spec, ModelSpec):
        return _model(entry, spec, surroundings)
    return Program(
        judge=CodeJudge(
            identity=identity_of(entry, surroundings),
            run=RunCommand(
                command=(*SHELL, spec.path),
                folder=surroundings.folder(None),
                home=surroundings.home,
                timeout_seconds=DEFAULT_TIMEOUT_SECONDS,
                cached=spec.cache,
            ),
            standard=standard_of(entry, surroundings),
            prefers_assertions=surroundings.era == "v4",
        )
    )


def _model(entry: CompositeEntry, spec: ModelSpec, surroundings: Surroundings) -> Model:
    place = surroundings.place_of("aggregator")
    template = TEMPLATE
    if spec.prompt is not None:
        template = surroundings.templates.read(spec.prompt, place, VOCABULARY)
    wanted = wanted_panel(entry.name, spec.judge, surroundings)
    return Model(wanted=wanted, template=template)


def _weights(spec: AverageSpec, surroundings: Surroundings) -> dict[str, float]:
    """The weights, all of members; AgentV passes others over, and what was meant weighs 1."""
    names = [member.identity.name for member in surroundings.members]
    for name in spec.weights:
        if name not in names:
            raise InputError.of(
                f"there is no member {quoted(name)} to weigh",
                place=surroundings.place_of("aggregator"),
                hint=did_you_mean(name, names) or f"there is {one_of(names)}",
            )
    return spec.weights
