"""What an answer is to fulfil, in words."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """One property that a model looks for.

    Attributes:
        id: unique among those of a turn.
        type: ADK's designator of what it is about; empty where there is none.
    """

    id: str
    text: str
    type: str = ""
