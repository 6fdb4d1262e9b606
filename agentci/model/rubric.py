"""What an answer is to fulfil, in words."""

from msgspec import Struct


class Rubric(Struct, frozen=True, kw_only=True):
    """One property that a model looks for.

    Attributes:
        id: unique among those of a turn.
        type: ADK's designator of what it is about; empty where there is none.
    """

    id: str
    text: str
    type: str = ""
