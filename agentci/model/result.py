"""Results of checks, and the report of a run."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from agentci.model.case import CaseSummary
from agentci.model.choices import RepeatAggregation
from agentci.model.gate import Comparison, Gate
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.problem import Place, Problem
from agentci.model.shard import ShardInfo

TrialStrategy: TypeAlias = Literal["pass_at_k", "mean", "confidence_interval"]


class TrialSettings(Struct, frozen=True, kw_only=True):
    """How often a case is run, and what becomes of the scores.

    Attributes:
        count: runs of a case at most.
        strategy: the best run counts, the mean of all, or the lower end of its 95 % confidence
            interval.
        cost_limit_usd: no further run once those of a case have cost as much.
    """

    count: int
    strategy: TrialStrategy
    place: Place
    cost_limit_usd: float | None = None


class TrialScore(Struct, frozen=True, kw_only=True):
    """What one evaluator said of one run.

    Attributes:
        attempt: counted from 0.
        score: None where the run could not be judged.
        reason: why not.
    """

    attempt: int
    score: float | None
    reason: str | None = None


class TrialRecord(Struct, frozen=True, kw_only=True):
    """What a result was made of.

    Attributes:
        cost_limited: whether the limit of costs kept further runs from being made.
    """

    strategy: TrialStrategy
    trials: tuple[TrialScore, ...]
    cost_limited: bool = False


class ModelCost(Struct, frozen=True, kw_only=True):
    """What something costs, or can cost at most."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: "ModelCost") -> "ModelCost":
        return ModelCost(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            usd=self.usd + other.usd,
        )

    def __sub__(self, other: "ModelCost") -> "ModelCost":
        return self + ModelCost(calls=-other.calls, tokens=-other.tokens, usd=-other.usd)


class JudgeSpending(Struct, frozen=True, kw_only=True):
    """What the judges of one config cost.

    Attributes:
        config: as shown to the user.
        spent: in this run, on whatever came of it.
        saved: by replies of earlier runs.
        priced: whether the dollars are known, since all of its models have prices.
    """

    config: str
    spent: ModelCost
    saved: ModelCost
    priced: bool

    def __add__(self, other: "JudgeSpending") -> "JudgeSpending":
        """Of the same config, in two parts of a run."""
        return JudgeSpending(
            config=self.config,
            spent=self.spent + other.spent,
            saved=self.saved + other.saved,
            priced=self.priced and other.priced,
        )


def sum_by_config(parts: Iterable[JudgeSpending]) -> tuple[JudgeSpending, ...]:
    """What all parts of a run spent on the judges of each config."""
    whole: dict[str, JudgeSpending] = {}
    for each in parts:
        known = whole.get(each.config)
        whole[each.config] = each if known is None else known + each
    return tuple(whole.values())


class CallPayload(Struct, frozen=True, kw_only=True):
    """One text that went one way.

    Attributes:
        name: "stdin", "reply".
        content: what of it is shown.
        size: how many bytes all of it has.
        notes: how ``content`` differs from it, in words.
    """

    name: str
    content: str
    size: int
    notes: tuple[str, ...] = ()


class EvaluatorCall(Struct, frozen=True, kw_only=True):
    """One thing that was asked of a program, a model or a service.

    Attributes:
        name: on whose behalf, an evaluator or a part of one.
        outcome: what was asked, and how that ended.
        texts: in the order in which they went.
    """

    name: str
    outcome: str
    texts: tuple[CallPayload, ...]


class EvaluatorCalls(Struct, frozen=True, kw_only=True):
    """Those of the checks of a run, as far as there was room for them.

    Attributes:
        json_by_check: a list of ``EvaluatorCall`` by check id, as JSON that a page can hold.
        omitted_checks: ids of checks that there was no room for.
        kept_in_parts: the runs of which this report was merged had them.
    """

    json_by_check: Mapping[str, str] = field(default_factory=dict)
    omitted_checks: frozenset[str] = frozenset()
    kept_in_parts: bool = False


Status: TypeAlias = Literal["passed", "failed", "errored", "skipped"]

# Exit codes of the process, by what shut the gate.
EXIT_GATE_FAILED: Final = 1
EXIT_INVALID_INPUT: Final = 2
EXIT_ERRORED: Final = 3


class RepeatOutcome(Struct, frozen=True, kw_only=True):
    """What one of several answers of an evaluator about the same case was.

    Attributes:
        score: None where there is none.
        reason: as in ``CheckResult``.
    """

    status: Status
    score: float | None
    reason: str | None = None


class RepeatRecord(Struct, frozen=True, kw_only=True):
    """All answers that a result was made of.

    Attributes:
        flip_rate: the share of them whose verdict is another than that of most, 0 to 1; None where
            one could not be judged.
        repeats: in the order of asking.
    """

    aggregation: RepeatAggregation
    flip_rate: float | None
    repeats: tuple[RepeatOutcome, ...]


class CheckResult(Struct, frozen=True, kw_only=True):
    """One evaluator beside one case.

    Attributes:
        id: digest of config path, case id and evaluator name; the same on every run.
        config: the config file, as shown to the user.
        reason: why it errored or was skipped, or passed or failed in spite of its score; else None.
        trials: what it was made of, where the case was run several times.
        repeats: what it was made of, where the evaluator was asked several times; of several runs
            of a case those of the one that is shown.
        fingerprint: digest of what it was judged by: the evaluator and the golden case.
    """

    id: str
    config: str
    case: CaseSummary
    evaluator: EvaluatorIdentity
    status: Status
    judgement: Judgement | None = None
    reason: str | None = None
    seconds: float = 0.0
    cached: bool = False
    trials: TrialRecord | None = None
    repeats: RepeatRecord | None = None
    fingerprint: str = ""


class Totals(Struct, frozen=True, kw_only=True):
    """Counts over all results; ``score`` is the mean of what passed or failed, or None."""

    checks: int
    passed: int
    failed: int
    errored: int
    skipped: int
    score: float | None


class Decision(Struct, frozen=True, kw_only=True):
    """Whether the gate is open, the process's exit code, and why, the weightiest reason first.

    A shard never opens it: where nothing keeps it shut (exit code 0), other shards still may.
    """

    open: bool
    exit_code: int
    why: tuple[str, ...]

    @property
    def is_failure(self) -> bool:
        """Whether something was found that keeps the gate shut."""
        return self.exit_code != 0


class Provenance(Struct, frozen=True, kw_only=True):
    """What an evaluator from elsewhere was when it judged.

    Attributes:
        config, evaluator: whose program it is.
        source, repository, revision, ref: as the config names it, completed by its source.
        commit: what the revision meant.
        digest: of all its files; two that have the same one are the same evaluator.
    """

    config: str
    evaluator: str
    source: str
    repository: str
    revision: str
    ref: str
    commit: str
    digest: str


class Report(Struct, frozen=True, kw_only=True):
    """Everything that is said about one run.

    Attributes:
        complete: False where the run was broken off; ``results`` then holds what was judged.
        results: config order, then case, then evaluator.
        problems: broken recordings (errors), and warnings and notices about the input.
        provenance: of the evaluators that are kept elsewhere.
        gates: of all configs, in their order.
        shard_info: what of a whole it is about; None for a whole run.
        spending: of the judges of all configs that have some, in their order.
        comparison: with a baseline, where one was named.
        commit: that was checked out while it was judged; empty where nobody knows one.
        evaluator_calls: what evaluators were sent and what came back, for ``report.html`` alone.
    """

    complete: bool
    decision: Decision
    totals: Totals
    results: tuple[CheckResult, ...]
    problems: tuple[Problem, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    gates: tuple[Gate, ...] = ()
    shard_info: ShardInfo | None = None
    spending: tuple[JudgeSpending, ...] = ()
    comparison: Comparison | None = None
    commit: str = ""
    evaluator_calls: EvaluatorCalls = EvaluatorCalls()
