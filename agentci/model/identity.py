"""What reports show of an evaluator."""

from msgspec import Struct

from agentci.model.place import Place


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
    """

    name: str
    type: str
    bar: str
    threshold: float | None
    required: bool
    place: Place
    needs_golden: bool = False
    weight: float = 1.0
