"""The shape of ``results.json``, for what others hand in: nothing is taken on trust."""

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from agentci.evaluators.fields import AnyConfidence, Share, Strict
from agentci.model.choices import OnError, OnSkip, OnTurnMismatch
from agentci.model.comparison import Setback
from agentci.model.problem import Severity
from agentci.model.result import Status
from agentci.model.shard import MAX_SHARDS
from agentci.reports.merge.records import MOST, Count, RepeatRecordSpec, Score, TrialRecordSpec

Ordinal: TypeAlias = Annotated[int, Field(ge=1)]
Commit: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")]
CheckId: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]

# The rest of the document is JSON already, and has no shape of ours.
AnyObject: TypeAlias = dict[str, Any]


class PlaceSpec(Strict):
    """A spot in a file."""

    file: str
    line: Ordinal
    column: Ordinal | None


class ResultSpec(Strict):
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
    weight: Annotated[float, Field(ge=0, le=MOST)]
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


class ExchangeSpec(Strict):
    """What was said in one turn."""

    asked: str
    answered: str | None


class CaseSpec(Strict):
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


class ProblemSpec(Strict):
    """Something about the input."""

    severity: Severity
    message: str
    hint: str | None
    place: PlaceSpec | None


class ProvenanceSpec(Strict):
    """An evaluator that is kept elsewhere."""

    config: str
    evaluator: str
    source: str
    repository: str
    revision: str
    ref: str
    commit: str
    digest: str


class BarSpec(Strict):
    """Demands on some checks."""

    min_pass_rate: Share | None
    pass_rate_confidence: Share | None
    min_score: Share | None
    on_error: OnError
    on_skip: OnSkip
    on_turn_mismatch: OnTurnMismatch


class CaseBarSpec(Strict):
    """Demands on whole cases."""

    threshold: Share
    min_pass_rate: Share
    pass_rate_confidence: Share | None


class RegressionBarSpec(Strict):
    """How much worse than a baseline a run may be."""

    max_drop: Share
    confidence: AnyConfidence
    shuts: list[Setback]


class PolicySpec(Strict):
    """The ``gate`` of one config."""

    overall: BarSpec
    evaluators: dict[str, BarSpec]
    cases: CaseBarSpec | None
    regression: RegressionBarSpec | None


class GateSpec(Strict):
    """The gate of one config, and what it is over."""

    config: str
    evaluators: list[str]
    uncovered: Count
    policy: PolicySpec


class ShardSpec(Strict):
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


class DecisionSpec(Strict):
    """What the run made of it."""

    open: bool
    exit_code: Annotated[int, Field(ge=0, le=255)]
    why: list[str]


class TotalsSpec(Strict):
    """What the run counted."""

    checks: Count
    passed: Count
    failed: Count
    errored: Count
    skipped: Count
    score: Score | None


class ToolSpec(Strict):
    """What wrote the report."""

    name: str
    version: str


class ChargeSpec(Strict):
    """What something cost."""

    calls: Count
    tokens: Count
    usd: Annotated[float, Field(ge=0, le=MOST)] | None


class SpendingSpec(Strict):
    """What the judges of a config cost."""

    config: str
    spent: ChargeSpec
    saved: ChargeSpec


class ReportSpec(Strict):
    """A whole ``results.json``."""

    schema_version: Literal[1]
    tool: ToolSpec
    commit: Commit | None = None  # of reports that were written before it was told
    complete: bool
    decision: DecisionSpec
    totals: TotalsSpec
    results: list[ResultSpec]
    evaluators: list[AnyObject]
    cases: list[CaseSpec]
    problems: list[ProblemSpec]
    provenance: list[ProvenanceSpec]
    gates: list[GateSpec]
    judges: list[SpendingSpec]
    comparison: AnyObject | None
    shard: ShardSpec | None
