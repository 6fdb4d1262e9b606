"""What an evaluator says of a case."""

from msgspec import Struct, field

from agentci.model.json import JsonObject


class Judgement(Struct, frozen=True, kw_only=True):
    """A verdict with its reasons.

    Attributes:
        score: 0 to 1; None where none was given, which is not zero.
        passed: None where the evaluator declined to judge (NOT_EVALUATED), which is not a failure.
        reason: why it passed or failed in spite of its score; else None.
        turn_scores: one a turn, as the evaluator gave them; None for a turn it left out.
        hits, misses: what was right and what was not, a line each.
        details: whatever else the evaluator wants to be shown.
    """

    score: float | None
    passed: bool | None
    reason: str | None = None
    turn_scores: tuple[float | None, ...] = ()
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str | None = None
    details: JsonObject = field(default_factory=dict)
