"""What a measurement means: against a threshold, and by the number of turns."""

from agentci.dialects.agentevals.threshold import threshold_of
from agentci.model.exchange import Measurement
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.text.words import count as count_of


def judgement_of(
    measured: Measurement, identity: Identity, *, turn_mismatch_fails: bool
) -> Judgement:
    """Judge by the score, and by the number of turns.

    Args:
        turn_mismatch_fails: whether missing or unexpected turns fail a case whatever its score,
            which is that of the turns that have a partner. (agentevals passes such cases.)
    """
    mismatch = _mismatch(measured) if turn_mismatch_fails else None
    by_score = measured.score >= threshold_of(identity)
    return Judgement(
        score=measured.score,
        passed=by_score and mismatch is None,
        reason=mismatch if by_score else None,
        turn_scores=measured.turn_scores,
        misses=measured.misses if by_score or mismatch is None else (mismatch, *measured.misses),
        details=measured.details,
    )


def _mismatch(found: Measurement) -> str | None:
    """Say in words how many turns have no partner; None where all have one."""
    pairs = len(found.turn_scores)
    missing, unexpected = (
        count if isinstance(count := found.details.get(key), int) else 0
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
