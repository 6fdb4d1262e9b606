"""Gate thresholds, and the comparison of a run with a baseline."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct, field

from agentci.model.choices import OnError, OnSkip, OnTurnMismatch

ComparisonOutcome: TypeAlias = Literal[
    "pass", "fail", "inconclusive", "insufficient-data", "non-comparable", "stale"
]
# What is no pass: what a gate may be shut by.
RegressionOutcome: TypeAlias = Literal[
    "fail", "inconclusive", "insufficient-data", "non-comparable", "stale"
]
COMPARISON_OUTCOMES: Final[tuple[ComparisonOutcome, ...]] = get_args(ComparisonOutcome)


class RegressionThresholds(Struct, frozen=True, kw_only=True):
    """How much worse than the baseline a run may be.

    Attributes:
        max_drop: of the mean score of an evaluator over the checks of both runs, 0 to 1.
        confidence: how sure it has to be that a drop is none by chance, from 0 to below 1.
        shuts: the outcomes that shut the gate.
    """

    max_drop: float = 0.0
    confidence: float = 0.95
    shuts: tuple[RegressionOutcome, ...] = ("fail",)


class ChangedCheck(Struct, frozen=True, kw_only=True):
    """A check that passed in one run and failed in the other.

    Attributes:
        before, after: its scores; None where it had none.
    """

    case: str
    before: float | None
    after: float | None


class EvaluatorComparison(Struct, frozen=True, kw_only=True):
    """The checks of one evaluator that both runs judged.

    Attributes:
        config: the config file, as shown to the user.
        pairs: how many they are.
        before, after: their mean scores; None without any.
        chance: of a drop like this one if nothing had changed, raised by Holm's rule for the number
            of evaluators; None where that was not asked.
        why: the outcome in words.
    """

    config: str
    evaluator: str
    required: bool
    pairs: int
    before: float | None
    after: float | None
    regressions: tuple[ChangedCheck, ...]
    improvements: tuple[ChangedCheck, ...]
    chance: float | None
    outcome: ComparisonOutcome
    why: str


class Comparison(Struct, frozen=True, kw_only=True):
    """A run beside a baseline.

    Attributes:
        baseline: where it was found, as shown to the user.
        refused: why nothing can be compared; empty where something can.
        added, gone: how many checks only this run has, and only the baseline.
        commit: that the baseline is of; empty where it does not say.
        stale: why it may be of another commit than it should be; empty where it is of the right
            one. A comparison is stale as a whole: no evaluator of its own is.
    """

    baseline: str
    trends: tuple[EvaluatorComparison, ...] = ()
    refused: str = ""
    added: int = 0
    gone: int = 0
    commit: str = ""
    stale: str = ""


class GateThresholds(Struct, frozen=True, kw_only=True):
    """The demands on a set of checks.

    Attributes:
        min_pass_rate: passed over passed and failed, 0 to 1; None for an evaluator whose checks
            count among those of all others.
        pass_rate_confidence: how sure it has to be that the pass rate of all cases like these is as
            high, 0 to 1; None asks it of this run alone. Of no effect on a rate of 0 or 1.
        min_score: mean over the checks that have a score, 0 to 1; None asks for nothing, or for
            an evaluator, counts it among the others.
        on_error: whether a check that could not be judged shuts the gate or only warns.
        on_skip: whether a check that had nothing to judge, or a golden case that no recording
            matched, shuts the gate.
        on_turn_mismatch: whether missing or unexpected turns fail a check whatever its score.
    """

    min_pass_rate: float | None = 1.0
    pass_rate_confidence: float | None = None
    min_score: float | None = None
    on_error: OnError = "fail"
    on_skip: OnSkip = "allow"
    on_turn_mismatch: OnTurnMismatch = "fail"


class CaseThresholds(Struct, frozen=True, kw_only=True):
    """The demands on whole cases, each with the weighted mean of its checks' scores.

    Attributes:
        threshold: score that a case has to reach to pass, 0 to 1.
        min_pass_rate: share of cases that have to pass.
        pass_rate_confidence: as in ``GateThresholds``.
    """

    threshold: float
    min_pass_rate: float = 1.0
    pass_rate_confidence: float | None = None


class GatePolicy(Struct, frozen=True, kw_only=True):
    """The ``gate:`` of one config: a bar for all its checks, and bars for single evaluators.

    Attributes:
        overall: each of its demands holds over the checks of all evaluators together, save those
            that have such a demand of their own.
        evaluators: by name; what they say holds over that evaluator's checks alone.
        cases: None where cases are not looked at as a whole.
        regression: how much worse than a baseline it may be; None where a comparison only informs.
    """

    overall: GateThresholds = field(default_factory=GateThresholds)
    evaluators: Mapping[str, GateThresholds] = field(default_factory=dict)
    cases: CaseThresholds | None = None
    regression: RegressionThresholds | None = None


class Gate(Struct, frozen=True, kw_only=True):
    """The gate of one config, and what it is over.

    Attributes:
        config: the config file, as shown to the user.
        evaluators: names of those that judge, in the config's order.
        uncovered: how many golden cases no recording matched.
    """

    config: str
    policy: GatePolicy
    evaluators: tuple[str, ...]
    uncovered: int = 0
