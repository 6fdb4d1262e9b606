"""The shape of what a result was made of: runs of its case, answers of its evaluator."""

from typing import Annotated, Final, TypeAlias

from pydantic import Field

from agentci.evaluators.fields import Share, Strict
from agentci.model.choices import RepeatBy
from agentci.model.result import Repeat, RepeatRecord, Status
from agentci.model.trials import Strategy, Trial, TrialRecord

# No score is beyond; the sum of those that are might be none.
MOST: Final = 10**9

Count: TypeAlias = Annotated[int, Field(ge=0)]
Score: TypeAlias = Annotated[float, Field(ge=-MOST, le=MOST)]


class TrialSpec(Strict):
    """One run of a case."""

    attempt: Count
    score: Score | None
    reason: str | None


class TrialRecordSpec(Strict):
    """Several runs of a case."""

    strategy: Strategy
    trials: Annotated[list[TrialSpec], Field(min_length=1)]
    cost_limited: bool

    def record(self) -> TrialRecord:
        """What was written."""
        return TrialRecord(
            strategy=self.strategy,
            trials=tuple(Trial(**each.model_dump()) for each in self.trials),
            cost_limited=self.cost_limited,
        )


class RepeatSpec(Strict):
    """One answer about a case."""

    status: Status
    score: Score | None
    reason: str | None


class RepeatRecordSpec(Strict):
    """Several answers about a case."""

    by: RepeatBy
    flip_rate: Share | None
    repeats: Annotated[list[RepeatSpec], Field(min_length=1)]

    def record(self) -> RepeatRecord:
        """What was written."""
        return RepeatRecord(
            by=self.by,
            flip_rate=self.flip_rate,
            repeats=tuple(Repeat(**each.model_dump()) for each in self.repeats),
        )
