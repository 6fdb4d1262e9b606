"""Turns of a recording that have no partner in the golden case, or are missing from it."""

from agentci._util.text.format import count as count_of
from agentci.model.json import JsonObject


def turn_mismatch(pairs: int, counts: JsonObject) -> str | None:
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
