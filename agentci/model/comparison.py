"""A run beside an earlier one: what changed, evaluator by evaluator."""

from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

Outcome: TypeAlias = Literal[
    "pass", "fail", "inconclusive", "insufficient-data", "non-comparable", "stale"
]
# What is no pass: what a gate may be shut by.
Setback: TypeAlias = Literal["fail", "inconclusive", "insufficient-data", "non-comparable", "stale"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)


class RegressionBar(Struct, frozen=True, kw_only=True):
    """How much worse than the baseline a run may be.

    Attributes:
        max_drop: of the mean score of an evaluator over the checks of both runs, 0 to 1.
        confidence: how sure it has to be that a drop is none by chance, from 0 to below 1.
        shuts: the outcomes that shut the gate.
    """

    max_drop: float = 0.0
    confidence: float = 0.95
    shuts: tuple[Setback, ...] = ("fail",)


class Change(Struct, frozen=True, kw_only=True):
    """A check that passed in one run and failed in the other.

    Attributes:
        before, after: its scores; None where it had none.
    """

    case: str
    before: float | None
    after: float | None


class Trend(Struct, frozen=True, kw_only=True):
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
    regressions: tuple[Change, ...]
    improvements: tuple[Change, ...]
    chance: float | None
    outcome: Outcome
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
    trends: tuple[Trend, ...] = ()
    refused: str = ""
    added: int = 0
    gone: int = 0
    commit: str = ""
    stale: str = ""
