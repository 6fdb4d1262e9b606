"""The interface of a metric, a pure function over turns, and functions that metrics share."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from agentci._util.text.format import format_count as count_of
from agentci.errors import EvaluatorError
from agentci.model.json import JsonObject
from agentci.model.requests import MetricResult
from agentci.model.trace import Turn


class HostedMetric(Struct, frozen=True, kw_only=True):
    """A metric of ADK 2.13, as documented by its evaluator.

    Attributes:
        purpose: what it measures, in one sentence.
        needs_golden: whether it compares each turn with an expected turn.
        scores_conversation: whether it scores the whole conversation rather than each turn.
        lowest, highest: the ends of its scale.
    """

    purpose: str
    needs_expected: bool = False
    scores_conversation: bool = False
    lowest: float = 0.0
    highest: float = 1.0

    def normalize(self, score: float) -> float:
        """Convert a score to 0 to 1; a score outside the scale stays outside."""
        return (score - self.lowest) / (self.highest - self.lowest)

    def to_scale(self, share: float) -> float:
        """Convert 0 to 1 to a score on the metric's scale."""
        return self.lowest + share * (self.highest - self.lowest)


def describe_turn_mismatch(pairs: int, counts: JsonObject) -> str | None:
    """Describe how many turns have no partner; None if all have one.

    Args:
        pairs: number of paired turns.
        counts: the unpaired turns, from ``count_unpaired_turns``.
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
    """A score of recorded turns against expected turns; implemented by a module."""

    @property
    def name(self) -> str:
        """The name in configs."""
        ...

    @property
    def needs_expected(self) -> bool:
        """Whether it compares with expected turns, and so cannot run without them."""
        ...

    def measure(
        self, actual: Sequence[Turn], golden: Sequence[Turn], options: JsonObject, /
    ) -> MetricResult:
        """Compare turns paired by index; unpaired turns are only counted.

        Raises:
            EvaluatorError: if there is no pair to compare, or an option is invalid.
        """
        ...


def pair_turns(actual: Sequence[Turn], golden: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    """Pair recorded and expected turns by index, up to the end of the shorter list.

    Raises:
        EvaluatorError: if one of the lists is empty.
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
    """Count the turns without a partner; empty if there are none."""
    if len(actual) == len(golden):
        return {}
    return {
        "missing_turns": max(0, len(golden) - len(actual)),
        "unexpected_turns": max(0, len(actual) - len(golden)),
    }
