"""What a measurement means: against a threshold, and by the number of turns."""

from agentci.evaluators.agentevals.threshold import DEFAULT_THRESHOLD, bar_of, threshold_of
from agentci.evaluators.turn_mismatch import turn_mismatch
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.place import Place
from agentci.model.requests import Measurement


def identity_of(
    metric: str, *, place: Place, threshold: float | None, required: bool, needs_golden: bool
) -> Identity:
    """What reports show of a metric; without a threshold it has agentevals' default."""
    threshold = DEFAULT_THRESHOLD if threshold is None else threshold
    return Identity(
        name=metric,
        type="builtin",
        bar=bar_of(threshold),
        threshold=threshold,
        required=required,
        place=place,
        needs_golden=needs_golden,
    )


def judgement_of(
    measured: Measurement, identity: Identity, *, turn_mismatch_fails: bool
) -> Judgement:
    """Judge by the score, and by the number of turns.

    Args:
        turn_mismatch_fails: whether missing or unexpected turns fail a case whatever its score,
            which is that of the turns that have a partner. (agentevals passes such cases.)
    """
    pairs = len(measured.turn_scores)
    mismatch = turn_mismatch(pairs, measured.details) if turn_mismatch_fails else None
    by_score = measured.score >= threshold_of(identity)
    return Judgement(
        score=measured.score,
        passed=by_score and mismatch is None,
        reason=mismatch if by_score else None,
        turn_scores=measured.turn_scores,
        misses=measured.misses if by_score or mismatch is None else (mismatch, *measured.misses),
        details=measured.details,
    )
