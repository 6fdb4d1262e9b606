"""What evaluators were sent, and what came back, for people to look at."""

from collections.abc import Mapping

from msgspec import Struct, field


class Text(Struct, frozen=True, kw_only=True):
    """One text that went one way.

    Attributes:
        name: "stdin", "reply".
        content: what of it is shown.
        size: how many bytes all of it has.
        notes: how ``content`` differs from it, in words.
    """

    name: str
    content: str
    size: int
    notes: tuple[str, ...] = ()


class Exchanged(Struct, frozen=True, kw_only=True):
    """One thing that was asked of a program, a model or a service.

    Attributes:
        name: on whose behalf, an evaluator or a part of one.
        outcome: what was asked, and how that ended.
        texts: in the order in which they went.
    """

    name: str
    outcome: str
    texts: tuple[Text, ...]


class Exchanges(Struct, frozen=True, kw_only=True):
    """Those of the checks of a run, as far as there was room for them.

    Attributes:
        packed: by the ids of checks, a list of ``Exchanged`` as JSON that can stand in a page.
        left_out: ids of checks that there was no room for.
        elsewhere: the runs of which this report was merged had them.
    """

    packed: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    elsewhere: bool = False
