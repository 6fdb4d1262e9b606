"""The identity of an evaluator, and its judgement of a case."""

from typing import Final

from msgspec import Struct, field

from agentci.model.choices import RepeatAggregation
from agentci.model.json import JsonObject
from agentci.model.problem import Place


class Repetition(Struct, frozen=True, kw_only=True):
    """How often an evaluator is asked about each case, as it does not say the same each time.

    Attributes:
        aggregation: whether the majority of its verdicts counts, or the mean of its scores.
    """

    times: int = 1
    aggregation: RepeatAggregation = "majority"


NO_REPETITION: Final = Repetition()


class EvaluatorIdentity(Struct, frozen=True, kw_only=True):
    """What an evaluator is called, and what it asks for.

    Attributes:
        name: unique in its config.
        type: the ``type`` of its entry: ``code``, ``builtin``.
        requirement: what has to be reached, in words.
        required: False makes it advisory.
        place: its entry in the config.
        needs_golden: it compares with golden cases, and has nothing to say without.
        weight: how much its score counts in the score of its case.
        repetition: what the pipeline does, around it.
    """

    name: str
    type: str
    requirement: str
    threshold: float | None
    required: bool
    place: Place
    needs_golden: bool = False
    weight: float = 1.0
    repetition: Repetition = NO_REPETITION


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
