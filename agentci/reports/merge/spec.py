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

# No score is beyond; the sum of those that are might be none.
MAX_MAGNITUDE: Final = 10**9

Count: TypeAlias = Annotated[int, Field(ge=0)]
Score: TypeAlias = Annotated[float, Field(ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE)]


class TrialSpec(StrictModel):
    """One run of a case."""

    attempt: Count
    score: Score | None
    reason: str | None


class TrialRecordSpec(StrictModel):
    """Several runs of a case."""

    strategy: TrialStrategy
    trials: Annotated[list[TrialSpec], Field(min_length=1)]
    cost_limited: bool

    def record(self) -> TrialRecord:
        """What was written."""
        return TrialRecord(
            strategy=self.strategy,
            trials=tuple(TrialScore(**each.model_dump()) for each in self.trials),
            cost_limited=self.cost_limited,
        )


class RepeatSpec(StrictModel):
    """One answer about a case."""

    status: Status
    score: Score | None
    reason: str | None


class RepeatRecordSpec(StrictModel):
    """Several answers about a case."""

    by: RepeatAggregation
    flip_rate: Share | None
    repeats: Annotated[list[RepeatSpec], Field(min_length=1)]

    def record(self) -> RepeatRecord:
        """What was written."""
        return RepeatRecord(
            aggregation=self.by,
            flip_rate=self.flip_rate,
            repeats=tuple(RepeatOutcome(**each.model_dump()) for each in self.repeats),
        )


Ordinal: TypeAlias = Annotated[int, Field(ge=1)]
Commit: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")]
CheckId: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]

# The rest of the document is JSON already, and has no shape of ours.
AnyObject: TypeAlias = dict[str, Any]


class PlaceSpec(StrictModel):
    """A spot in a file."""

    file: str
    line: Ordinal
    column: Ordinal | None


class ResultSpec(StrictModel):
    """One check."""

    id: str
    config: str
    case: str
    trace: str
    golden: str | None
    recording: str
    evaluator: str
    type: str
    status: Status
    score: Score | None
    bar: str
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
    """What was said in one turn."""

    asked: str
    answered: str | None


class ResultsCaseSpec(StrictModel):
    """What was judged."""

    id: str
    trace: str
    group: str
    golden: str | None
    no_golden_because: str | None
    recording: str
    turns: Count
    dialogue: list[ExchangeSpec]
    warnings: list[str]
    performance: AnyObject | None

    @model_validator(mode="after")
    def _of_all_turns(self) -> Self:
        if self.turns != len(self.dialogue):
            raise ValueError("`turns` is not how many the `dialogue` has")
        return self


class ProblemSpec(StrictModel):
    """Something about the input."""

    severity: Severity
    message: str
    hint: str | None
    place: PlaceSpec | None


class ProvenanceSpec(StrictModel):
    """An evaluator that is kept elsewhere."""

    config: str
    evaluator: str
    source: str
    repository: str
    revision: str
    ref: str
    commit: str
    digest: str


class ResultsThresholdSpec(StrictModel):
    """Demands on some checks."""

    min_pass_rate: Share | None
    pass_rate_confidence: Share | None
    min_score: Share | None
    on_error: OnError
    on_skip: OnSkip
    on_turn_mismatch: OnTurnMismatch


class ResultsCaseThresholdSpec(StrictModel):
    """Demands on whole cases."""

    threshold: Share
    min_pass_rate: Share
    pass_rate_confidence: Share | None


class ResultsRegressionSpec(StrictModel):
    """How much worse than a baseline a run may be."""

    max_drop: Share
    confidence: AnyConfidence
    shuts: list[RegressionOutcome]


class ResultsPolicySpec(StrictModel):
    """The ``gate`` of one config."""

    overall: ResultsThresholdSpec
    evaluators: dict[str, ResultsThresholdSpec]
    cases: ResultsCaseThresholdSpec | None
    regression: ResultsRegressionSpec | None


class ResultsGateSpec(StrictModel):
    """The gate of one config, and what it is over."""

    config: str
    evaluators: list[str]
    uncovered: Count
    policy: ResultsPolicySpec


class ShardSpec(StrictModel):
    """What a report is a part of."""

    index: Annotated[int, Field(ge=1, le=MAX_SHARDS)]
    total: Annotated[int, Field(ge=1, le=MAX_SHARDS)]
    of: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    checks: list[CheckId]
    dealt_by: dict[CheckId, CheckId]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.index > self.total:
            raise ValueError("`index` is above `total`")
        return self


class DecisionSpec(StrictModel):
    """What the run made of it."""

    open: bool
    exit_code: Annotated[int, Field(ge=0, le=255)]
    why: list[str]


class TotalsSpec(StrictModel):
    """What the run counted."""

    checks: Count
    passed: Count
    failed: Count
    errored: Count
    skipped: Count
    score: Score | None


class ToolSpec(StrictModel):
    """What wrote the report."""

    name: str
    version: str


class ChargeSpec(StrictModel):
    """What something cost."""

    calls: Count
    tokens: Count
    usd: Annotated[float, Field(ge=0, le=MAX_MAGNITUDE)] | None


class SpendingSpec(StrictModel):
    """What the judges of a config cost."""

    config: str
    spent: ChargeSpec
    saved: ChargeSpec


class ReportSpec(StrictModel):
    """A whole ``results.json``."""

    schema_version: Literal[1]
    tool: ToolSpec
    commit: Commit | None = None  # of reports that were written before it was told
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
