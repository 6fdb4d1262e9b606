"""The interface of a metric, and what metrics share: functions, thresholds, judgements of results.

A metric is a pure function over turns.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from agentci._util.text.format import format_criterion
from agentci.errors import EvaluatorError
from agentci.evaluators.definition import Definition, define_repeat
from agentci.model.requests import EvaluatorIdentity, Judgement, MetricResult
from agentci.model.trace import Turn
from agentci.model.values import Json, JsonObject, Place

NO_EXPECTED_TURNS: Final = "the eval case has no turns"
NO_EXPECTED_ANSWER: Final = "the eval case has no expected answer"


class HostedMetric(Struct, frozen=True, kw_only=True):
    """A metric of ADK 2.13, as documented by its evaluator.

    Attributes:
        purpose: what it measures, in one sentence.
        needs_expected: whether it compares each turn with an expected turn.
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
    """Describe the turns without a partner; None if all have one.

    Args:
        pairs: number of paired turns, which are the first ones.
        counts: the unpaired turns, from ``count_unpaired_turns``.
    """
    missing, unexpected = (
        count if isinstance(count := counts.get(key), int) else 0
        for key in ("missing_turns", "unexpected_turns")
    )
    unpaired = missing + unexpected
    if not unpaired:
        return None
    total = pairs + unpaired
    return (
        f"{_format_turns(pairs + 1, total).capitalize()} of {total}"
        f" {'is' if unpaired == 1 else 'are'} {'missing' if missing else 'unexpected'};"
        f" only {_format_turns(1, pairs)} {'was' if pairs == 1 else 'were'} scored"
    )


def _format_turns(first: int, last: int) -> str:
    return f"turn {first}" if first == last else f"turns {first} to {last}"


class Metric(Protocol):
    """A score of recorded turns against expected turns; implemented by a module."""

    @property
    def name(self) -> str:
        """The name in configs."""

    @property
    def needs_expected(self) -> bool:
        """Whether it compares with expected turns, and so cannot run without them."""

    def explain_missing(self, expected: Sequence[Turn], /) -> str:
        """Say why nothing can be compared with the expected turns; empty if something can."""

    def read_expected(self, expected: Sequence[Turn], /) -> Json:
        """Return all that ``measure`` uses of the expected turns, and no more."""

    def measure(
        self, actual: Sequence[Turn], expected: Sequence[Turn], options: JsonObject, /
    ) -> MetricResult:
        """Compare turns paired by index; unpaired turns are only counted.

        Raises:
            EvaluatorError: if there is no pair to compare, or an option is invalid.
        """


def pair_turns(actual: Sequence[Turn], expected: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    """Pair recorded and expected turns by index, up to the end of the shorter list.

    Raises:
        EvaluatorError: if one of the lists is empty.
    """
    if not actual:
        raise EvaluatorError("no turns found in the recorded run")
    if not expected:
        raise EvaluatorError(NO_EXPECTED_TURNS)
    return list(zip(actual, expected, strict=False))


# Pairs of tool calls compared in one check; such a comparison takes at most some seconds.
MAX_COMPARED_CALLS: Final = 1_000_000


def check_comparison_count(actual: int, expected: int) -> None:
    """Check that comparing each recorded with each expected tool call takes seconds, not hours.

    Raises:
        EvaluatorError: there are too many of both.
    """
    if actual * expected > MAX_COMPARED_CALLS:
        raise EvaluatorError(
            f"{actual:,} recorded tool calls cannot be compared with {expected:,} expected ones;"
            f" the product of both numbers is limited to {MAX_COMPARED_CALLS:,}"
        )


def mean(scores: Sequence[float]) -> float:
    """Average in the order of the turns, so that the float is the same everywhere."""
    return sum(scores) / len(scores)


def count_unpaired_turns(actual: Sequence[Turn], expected: Sequence[Turn]) -> dict[str, int]:
    """Count the turns without a partner; empty if there are none."""
    if len(actual) == len(expected):
        return {}
    return {
        "missing_turns": max(0, len(expected) - len(actual)),
        "unexpected_turns": max(0, len(actual) - len(expected)),
    }


def make_metric_identity(
    metric: str, *, place: Place, threshold: float | None, required: bool, needs_expected: bool
) -> EvaluatorIdentity:
    """Make the identity of a metric; without a threshold it has agentevals' default."""
    threshold = DEFAULT_THRESHOLD if threshold is None else threshold
    return EvaluatorIdentity(
        name=metric,
        type="builtin",
        criterion=format_criterion(threshold),
        threshold=threshold,
        required=required,
        place=place,
        needs_expected=needs_expected,
    )


def define_metric(identity: EvaluatorIdentity, *, turn_mismatch_fails: bool) -> Definition:
    """Define a metric without options of its own; its name says what it computes."""
    mismatch: Definition = {"on_turn_mismatch": "fail" if turn_mismatch_fails else "warn"}
    return {
        "type": identity.type,
        "name": identity.name,
        "threshold": identity.threshold,
        **(mismatch if identity.needs_expected else {}),
        **define_repeat(identity),
    }


def make_metric_judgement(
    measured: MetricResult, identity: EvaluatorIdentity, *, turn_mismatch_fails: bool
) -> Judgement:
    """Judge a result by its score and by the number of turns.

    Args:
        turn_mismatch_fails: whether missing or unexpected turns fail a case regardless of its
            score, which covers only paired turns. (agentevals passes such cases.)
    """
    pairs = len(measured.turn_scores)
    mismatch = describe_turn_mismatch(pairs, measured.details) if turn_mismatch_fails else None
    by_score = measured.score >= get_threshold(identity)
    return Judgement(
        score=measured.score,
        passed=by_score and mismatch is None,
        reason=mismatch if by_score else None,
        turn_scores=measured.turn_scores,
        # Missing turns often follow from what went wrong in an earlier one.
        misses=measured.misses if by_score or mismatch is None else (*measured.misses, mismatch),
        details=measured.details,
    )


DEFAULT_THRESHOLD: Final = 0.5


def get_threshold(identity: EvaluatorIdentity) -> float:
    """Return the threshold of an evaluator; agentevals' default if it has none."""
    return DEFAULT_THRESHOLD if identity.threshold is None else identity.threshold
