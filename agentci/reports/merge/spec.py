"""Pydantic models that validate an untrusted `results.json`."""

from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from agentci.evaluators.fields import AnyConfidence, Share, StrictModel
from agentci.model.choices import OnError, OnSkip, OnTurnMismatch, RepeatAggregation
from agentci.model.gate import RegressionOutcome
from agentci.model.problem import Severity
from agentci.model.result import (
    RepeatOutcome,
    RepeatRecord,
    Status,
    TrialRecord,
    TrialScore,
    TrialStrategy,
)
from agentci.model.shard import MAX_SHARDS

# Larger scores are rejected: their sum could overflow to infinity.
MAX_MAGNITUDE: Final = 10**9

Count: TypeAlias = Annotated[int, Field(ge=0)]
Score: TypeAlias = Annotated[float, Field(ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE)]


class TrialSpec(StrictModel):
    """One run of a case."""

    attempt: Count
    score: Score | None
    reason: str | None


class TrialRecordSpec(StrictModel):
    """All runs of a case that was run several times."""

    strategy: TrialStrategy
    trials: Annotated[list[TrialSpec], Field(min_length=1)]
    cost_limited: bool

    def record(self) -> TrialRecord:
        """Convert to the model type."""
        return TrialRecord(
            strategy=self.strategy,
            trials=tuple(TrialScore(**each.model_dump()) for each in self.trials),
            cost_limited=self.cost_limited,
        )


class RepeatSpec(StrictModel):
    """One evaluation of a case."""

    status: Status
    score: Score | None
    reason: str | None


class RepeatRecordSpec(StrictModel):
    """All evaluations of a case whose evaluator ran several times."""

    by: RepeatAggregation
    flip_rate: Share | None
    repeats: Annotated[list[RepeatSpec], Field(min_length=1)]

    def record(self) -> RepeatRecord:
        """Convert to the model type."""
        return RepeatRecord(
            aggregation=self.by,
            flip_rate=self.flip_rate,
            repeats=tuple(RepeatOutcome(**each.model_dump()) for each in self.repeats),
        )


Ordinal: TypeAlias = Annotated[int, Field(ge=1)]
Commit: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")]
CheckId: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]

# JSON objects without a fixed shape.
AnyObject: TypeAlias = dict[str, Any]


class PlaceSpec(StrictModel):
    """A position in a file."""

    file: str
    line: Ordinal
    column: Ordinal | None


class ResultSpec(StrictModel):
    """The result of one check."""

    id: str
    config: str
    case: str
    trace: str
    eval_case: str | None
    file: str
    evaluator: str
    type: str
    status: Status
    score: Score | None
    criterion: str
    threshold: Score | None
    required: bool
    weight: Annotated[float, Field(ge=0, le=MAX_MAGNITUDE)]
    turn_scores: list[float | None]
    hits: list[str]
    misses: list[str]
    reasoning: str | None
    details: AnyObject
    reason: str | None
    warnings: list[str]
    seconds: float | None
    cached: bool
    trials: TrialRecordSpec | None
    repeats: RepeatRecordSpec | None
    fingerprint: str
    place: PlaceSpec


class ExchangeSpec(StrictModel):
    """The question and answer of one turn."""

    user: str
    answer: str | None


class ResultsCaseSpec(StrictModel):
    """A case that was evaluated."""

    id: str
    trace: str
    group: str
    eval_case: str | None
    unmatched_reason: str | None
    file: str
    turn_count: Count
    turns: list[ExchangeSpec]
    warnings: list[str]
    performance: AnyObject | None

    @model_validator(mode="after")
    def _of_all_turns(self) -> Self:
        if self.turn_count != len(self.turns):
            raise ValueError("`turn_count` is not the number of `turns`")
        return self


class ProblemSpec(StrictModel):
    """An error, warning or note about the input."""

    severity: Severity
    message: str
    hint: str | None
    place: PlaceSpec | None


class ProvenanceSpec(StrictModel):
    """The origin of a remote evaluator."""

    config: str
    evaluator: str
    source: str
    repository: str
    revision: str
    ref: str
    commit: str
    digest: str


class ResultsThresholdSpec(StrictModel):
    """Thresholds for a set of checks."""

    min_pass_rate: Share | None
    pass_rate_confidence: Share | None
    min_score: Share | None
    on_error: OnError
    on_skip: OnSkip
    on_turn_mismatch: OnTurnMismatch


class ResultsCaseThresholdSpec(StrictModel):
    """Thresholds for whole cases."""

    threshold: Share
    min_pass_rate: Share
    pass_rate_confidence: Share | None


class ResultsRegressionSpec(StrictModel):
    """Limits for regressions against a baseline."""

    max_drop: Share
    confidence: AnyConfidence
    fail_on: list[RegressionOutcome]


class ResultsPolicySpec(StrictModel):
    """The ``gate`` of one config."""

    overall: ResultsThresholdSpec
    evaluators: dict[str, ResultsThresholdSpec]
    cases: ResultsCaseThresholdSpec | None
    regression: ResultsRegressionSpec | None


class ResultsGateSpec(StrictModel):
    """The gate of one config and the evaluators that it covers."""

    config: str
    evaluators: list[str]
    uncovered: Count
    policy: ResultsPolicySpec


class ShardSpec(StrictModel):
    """The part of a run that a shard's report covers."""

    index: Annotated[int, Field(ge=1, le=MAX_SHARDS)]
    total: Annotated[int, Field(ge=1, le=MAX_SHARDS)]
    of: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    checks: list[CheckId]
    assigned_by: dict[CheckId, CheckId]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.index > self.total:
            raise ValueError("`index` is above `total`")
        return self


class DecisionSpec(StrictModel):
    """The decision of the run."""

    passed: bool
    exit_code: Annotated[int, Field(ge=0, le=255)]
    reasons: list[str]


class TotalsSpec(StrictModel):
    """The counts of the run."""

    checks: Count
    passed: Count
    failed: Count
    errored: Count
    skipped: Count
    score: Score | None


class ToolSpec(StrictModel):
    """The program that wrote the report."""

    name: str
    version: str


class ChargeSpec(StrictModel):
    """The cost of model calls."""

    calls: Count
    tokens: Count
    usd: Annotated[float, Field(ge=0, le=MAX_MAGNITUDE)] | None


class SpendingSpec(StrictModel):
    """The cost of the judges of one config."""

    config: str
    spent: ChargeSpec
    saved: ChargeSpec


class ReportSpec(StrictModel):
    """A complete ``results.json``."""

    schema_version: Literal[1]
    tool: ToolSpec
    commit: Commit | None = None  # older reports lack it
    complete: bool
    decision: DecisionSpec
    totals: TotalsSpec
    results: list[ResultSpec]
    evaluators: list[AnyObject]
    cases: list[ResultsCaseSpec]
    problems: list[ProblemSpec]
    provenance: list[ProvenanceSpec]
    gates: list[ResultsGateSpec]
    judges: list[SpendingSpec]
    comparison: AnyObject | None
    shard: ShardSpec | None
