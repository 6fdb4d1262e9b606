"""The interface of a metric, which is a pure function over turns, and what metrics share."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from agentci._util.text.format import format_count as count_of
from agentci.errors import EvaluatorError
from agentci.model.json import JsonObject
from agentci.model.requests import MetricResult
from agentci.model.trace import Turn


class HostedMetric(Struct, frozen=True, kw_only=True):
    """A metric of ADK 2.13, as its evaluators document it.

    Attributes:
        purpose: what it measures, in a sentence.
        needs_golden: whether it is given golden turns, one a turn.
        scores_conversation: whether it scores a conversation as a whole, else turn by turn.
        lowest, highest: the ends of its scale.
    """

    purpose: str
    needs_golden: bool = False
    scores_conversation: bool = False
    lowest: float = 0.0
    highest: float = 1.0

    def normalize(self, score: float) -> float:
        """A score of its scale as one from 0 to 1; what is beyond it stays beyond."""
        return (score - self.lowest) / (self.highest - self.lowest)

    def to_scale(self, share: float) -> float:
        """The score of its scale that ``share`` stands for."""
        return self.lowest + share * (self.highest - self.lowest)


def describe_turn_mismatch(pairs: int, counts: JsonObject) -> str | None:
    """Say in words how many turns have no partner; None where all have one.

    Args:
        pairs: turns that have one.
        counts: as ``turn_counts`` counts the others.
    """
    missing, unexpected = (
        count if isinstance(count := counts.get(key), int) else 0
        for key in ("missing_turns", "unexpected_turns")
    )
    if missing:
        what = f"{missing} missing"
    elif unexpected:
        what = f"{unexpected} more recorded"
    else:
        return None
    expected = count_of(pairs + missing, "turn")
    return f"{expected} expected, {what}: the score is that of the first {pairs}"


class Metric(Protocol):
    """A measure of what an agent did against what it should have done; a module is one."""

    @property
    def name(self) -> str:
        """What configs call it."""
        ...

    @property
    def needs_golden(self) -> bool:
        """Whether it compares, and so has nothing to say without golden turns."""
        ...

    def measure(
        self, actual: Sequence[Turn], golden: Sequence[Turn], options: JsonObject, /
    ) -> MetricResult:
        """Compare turn by turn; pairs are made by index, what is left over on one side is counted.

        Raises:
            EvaluatorError: there is no pair to compare, or an option has no meaning.
        """
        ...


def pair_turns(actual: Sequence[Turn], golden: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    """Put each recorded turn beside its golden one, up to the end of the shorter list.

    Raises:
        EvaluatorError: one of the lists is empty.
    """
    if not actual:
        raise EvaluatorError("no turns were found in the recording")
    if not golden:
        raise EvaluatorError("no golden turns to compare with")
    return list(zip(actual, golden, strict=False))


def mean(scores: Sequence[float]) -> float:
    """Average in the order of the turns, so that the float is the same everywhere."""
    return sum(scores) / len(scores)


def count_unpaired_turns(actual: Sequence[Turn], golden: Sequence[Turn]) -> dict[str, int]:
    """Count the turns without a partner; empty where there is none."""
    if len(actual) == len(golden):
        return {}
    return {
        "missing_turns": max(0, len(golden) - len(actual)),
        "unexpected_turns": max(0, len(actual) - len(golden)),
    }
