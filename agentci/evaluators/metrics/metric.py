"""What every metric is: a pure function over turns, with a name."""

from collections.abc import Sequence
from typing import Protocol

from agentci.errors import EvaluatorError
from agentci.model.json import JsonObject
from agentci.model.requests import Measurement
from agentci.model.trace import Turn


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
    ) -> Measurement:
        """Compare turn by turn; pairs are made by index, what is left over on one side is counted.

        Raises:
            EvaluatorError: there is no pair to compare, or an option has no meaning.
        """
        ...


def pairs(actual: Sequence[Turn], golden: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
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


def turn_counts(actual: Sequence[Turn], golden: Sequence[Turn]) -> dict[str, int]:
    """Count the turns without a partner; empty where there is none."""
    if len(actual) == len(golden):
        return {}
    return {
        "missing_turns": max(0, len(golden) - len(actual)),
        "unexpected_turns": max(0, len(actual) - len(golden)),
    }
