"""``repeat`` in entries: what may say something else each time is asked several times."""

from typing import Final

from pydantic import Field

from agentci.errors import InputError
from agentci.evaluators.fields import Repeats, Strict
from agentci.model.choices import RepeatBy
from agentci.model.identity import Repetition
from agentci.model.place import Place

NO_REPEAT: Final = "`repeat` is of no use here: over one recording it says the same every time"
ONLY_BY_CHANCE: Final = "leave it out; it is for models, and for programs that depend on chance"
ONE_ANSWER: Final = "`repeat_by` has no effect without `repeat`: there is but one answer"
SAY_HOW_OFTEN: Final = "say how often it is asked, as `repeat: 5`, or leave it out"


class Repeated(Strict):
    """What the entries share of all that may say something else each time."""

    repeat: Repeats = Field(
        default=1,
        description="How often it is asked about each case: for an evaluator that does not say the "
        "same each time.",
    )
    repeat_by: RepeatBy = Field(
        default="majority",
        description="What several answers come to: a check passes by the `majority` of their "
        "verdicts, or by the `mean` of their scores.",
    )

    @property
    def repetition(self) -> Repetition:
        """How often it is asked, and what the answers come to."""
        return Repetition(times=self.repeat, by=self.repeat_by)


def check_repeat_by(entry: Strict, *, of: Place, at: Place) -> None:
    """See that what several answers come to is said where there are several.

    Args:
        of: the entry.
        at: its own ``repeat_by``, the entry where it has none; that of ``defaults`` may be for
            others.

    Raises:
        InputError: it does not say how often it is asked.
    """
    given = entry.model_fields_set
    if isinstance(entry, Repeated) and "repeat_by" in given and "repeat" not in given and at != of:
        raise InputError.of(ONE_ANSWER, place=at, hint=SAY_HOW_OFTEN)


def refuse_repeat(entry: Repeated, *, of: Place, at: Place) -> None:
    """For an evaluator that says the same each time; what `defaults` say is not about it.

    Args:
        of: the entry.
        at: its own ``repeat``, the entry where it has none.

    Raises:
        InputError: it is to be asked several times.
    """
    if entry.repeat > 1 and at != of:
        raise InputError.of(NO_REPEAT, place=at, hint=ONLY_BY_CHANCE)
