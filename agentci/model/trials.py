"""Several runs of one case, since an agent does not answer the same twice."""

from typing import Literal, TypeAlias

from msgspec import Struct

from agentci.model.place import Place

Strategy: TypeAlias = Literal["pass_at_k", "mean", "confidence_interval"]


class Trials(Struct, frozen=True, kw_only=True):
    """How often a case is run, and what becomes of the scores.

    Attributes:
        count: runs of a case at most.
        strategy: the best run counts, the mean of all, or the lower end of its 95 % confidence
            interval.
        cost_limit_usd: no further run once those of a case have cost as much.
    """

    count: int
    strategy: Strategy
    place: Place
    cost_limit_usd: float | None = None


class Trial(Struct, frozen=True, kw_only=True):
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

    strategy: Strategy
    trials: tuple[Trial, ...]
    cost_limited: bool = False
