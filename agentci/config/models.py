"""Models of the parts of a config, except for the entries of its evaluators."""

from typing import Annotated, Final, Self, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, WithJsonSchema, model_validator

from agentci.evaluators.fields import (
    AnyConfidence,
    Confidence,
    ConfigVersion,
    MatchType,
    Share,
    StrictModel,
    Text,
)
from agentci.evaluators.judge_config import SharedJudgeSpec
from agentci.model.choices import GroupBy, OnError, OnSkip, OnTurnMismatch
from agentci.model.gate import RegressionOutcome
from agentci.recordings.registry import AUTO, FORMATS

EXTENSION_PREFIX: Final = "x-"


def _check_trace_format(name: str) -> str:
    if name not in (AUTO, *FORMATS):
        raise ValueError(f"there is no trace format {name!r}")
    return name


TraceFormat: TypeAlias = Annotated[
    str,
    AfterValidator(_check_trace_format),
    WithJsonSchema({"type": "string", "enum": [AUTO, *FORMATS]}),
]


class PassRateSpec(StrictModel):
    """The required pass rate, and the confidence in it."""

    min_pass_rate: Share = Field(
        default=1.0, description="Share of checks that have to pass, from 0 to 1."
    )
    pass_rate_confidence: Confidence | None = Field(
        default=None,
        description="How sure it has to be that of all cases like these at least `min_pass_rate` "
        "would pass, such as 0.95; by default the share in this run is enough.",
    )

    @model_validator(mode="after")
    def _check_confidence_is_provable(self) -> Self:
        if self.pass_rate_confidence is not None and not 0 < self.min_pass_rate < 1:
            raise ValueError(
                "pass_rate_confidence needs a min_pass_rate above 0 and below 1 beside it: no "
                "number of cases proves that all pass"
            )
        return self


class ThresholdSpec(PassRateSpec):
    """Thresholds for the checks of one evaluator.

    If `min_pass_rate` or `min_score` is set, these checks no longer count towards that threshold of
    the whole gate. Fields that are not set keep the values of the whole gate.
    """

    min_score: Share | None = Field(
        default=None, description="Mean score that has to be reached, from 0 to 1."
    )
    on_error: OnError = Field(
        default="fail", description="What a check that could not be judged does to the gate."
    )
    on_skip: OnSkip = Field(
        default="allow",
        description="What a check that had nothing to judge, or a golden case without a "
        "recording, does to the gate.",
    )
    on_turn_mismatch: OnTurnMismatch = Field(
        default="fail",
        description="Whether missing or unexpected turns fail a check whatever its score.",
    )


class GateSpec(ThresholdSpec):
    """Thresholds for the gate to pass."""

    max_regression: Share | None = Field(
        default=None,
        description="How far the mean score of an evaluator may drop below that of a `--baseline`; "
        "without it a comparison only informs.",
    )
    regression_confidence: AnyConfidence = Field(
        default=0.95, description="How sure it has to be that such a drop is no chance."
    )
    regression_shuts: list[RegressionOutcome] = Field(
        default=["fail"], description="Outcomes of a comparison that fail the gate."
    )
    evaluators: dict[str, ThresholdSpec] = Field(
        default={}, description="Demands on single evaluators, by name."
    )


class CaseThresholdSpec(PassRateSpec):
    """Thresholds for whole cases, using the weighted mean score of each case's checks.

    Single checks then do not have to pass, unless `min_pass_rate` of the gate or of their evaluator
    requires it, or their entry sets `required: true`.
    """

    threshold: Share | None = Field(
        default=None, description="Score that passes; by default as for evaluators."
    )
    min_pass_rate: Share = Field(
        default=1.0, description="Share of cases that have to pass, from 0 to 1."
    )


class EvalFileGateSpec(GateSpec):
    """Thresholds for the gate to pass."""

    cases: CaseThresholdSpec | None = Field(
        default=None, description="What whole cases have to reach, in place of every check."
    )


def _allow_extension_keys(schema: dict[str, JsonValue]) -> None:
    schema["patternProperties"] = {f"^{EXTENSION_PREFIX}": {}}


class EvalConfig(StrictModel, json_schema_extra=_allow_extension_keys):
    """Evaluators and a gate for recorded agent runs; eval configs of agentevals work unchanged."""

    version: ConfigVersion = Field(default=1, description="Version of this format.")
    evaluators: list[dict[str, JsonValue]] = Field(
        min_length=1, description="What judges every case, in the order of the reports."
    )
    defaults: dict[str, JsonValue] = Field(
        default={}, description="Fields for all evaluators that know them and set none themselves."
    )
    traces: Text | list[Text] = Field(
        default=[], description="Recordings to judge: a path or glob, or a list of them."
    )
    group_by: GroupBy | None = Field(
        default=None,
        description="Whether a case is one trace, or all traces of a conversation.",
    )
    eval_set: Text | None = Field(default=None, description="File of golden cases (ADK eval set).")
    dataset: Text | None = Field(
        default=None,
        description="File of rows that the agent was asked by (JSON Lines), for graders; without "
        "recordings the rows say what it answered.",
    )
    trace_format: TraceFormat | None = Field(
        default=None, description="Format of the recordings; by default seen from their content."
    )
    threshold: Share | None = Field(
        default=None, description="Threshold of the built-in evaluators that set none."
    )
    trajectory_match_type: MatchType | None = Field(
        default=None, description="Match type of the built-in evaluators that set none."
    )
    judge_model: Text | None = Field(
        default=None, description="Model that judges for the built-in evaluators that name none."
    )
    judge: SharedJudgeSpec | None = Field(
        default=None, description="Which model judges, where evaluators ask one."
    )
    gate: GateSpec = Field(default_factory=GateSpec)
    output_format: JsonValue = Field(
        default=None, description="Read by agentevals; has no effect here.", deprecated=True
    )
    output: JsonValue = Field(
        default=None, description="Read by agentevals; has no effect here.", deprecated=True
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_extension_keys(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return {key: value for key, value in data.items() if not key.startswith(EXTENSION_PREFIX)}

    @property
    def globs(self) -> tuple[str, ...]:
        """The paths and globs of ``traces``, always as a tuple."""
        return (self.traces,) if isinstance(self.traces, str) else tuple(self.traces)
