"""What reports show of an evaluator."""

from typing import Final

from msgspec import Struct

from agentci.model.choices import RepeatBy
from agentci.model.place import Place


class Repetition(Struct, frozen=True, kw_only=True):
    """How often an evaluator is asked about each case, as it does not say the same each time.

    Attributes:
        by: whether the majority of its verdicts counts, or the mean of its scores.
    """

    times: int = 1
    by: RepeatBy = "majority"


ONCE: Final = Repetition()


class Identity(Struct, frozen=True, kw_only=True):
    """What an evaluator is called, and what it asks for.

    Attributes:
        name: unique in its config.
        type: the ``type`` of its entry: ``code``, ``builtin``.
        bar: what has to be reached, in words.
        required: False makes it advisory.
        place: its entry in the config.
        needs_golden: it compares with golden cases, and has nothing to say without.
        weight: how much its score counts in the score of its case.
        repetition: what the pipeline does, around it.
    """

    name: str
    type: str
    bar: str
    threshold: float | None
    required: bool
    place: Place
    needs_golden: bool = False
    weight: float = 1.0
    repetition: Repetition = ONCE
