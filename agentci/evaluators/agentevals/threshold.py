"""Thresholds of agentevals' evaluators, and the judgement of a metric's result against one."""

from typing import Final

from agentci._util.text.format import format_criterion
from agentci.evaluators.definition import Definition, define_repeat
from agentci.evaluators.metrics.metric import describe_turn_mismatch
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.problem import Place
from agentci.model.requests import MetricResult


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
        misses=measured.misses if by_score or mismatch is None else (mismatch, *measured.misses),
        details=measured.details,
    )


DEFAULT_THRESHOLD: Final = 0.5


def get_threshold(identity: EvaluatorIdentity) -> float:
    """Return the threshold of an evaluator; agentevals' default if it has none."""
    return DEFAULT_THRESHOLD if identity.threshold is None else identity.threshold
