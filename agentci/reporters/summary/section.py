"""A part of the page, which may have to be cut."""

from collections.abc import Iterator

from msgspec import Struct

MAX_ITEMS = 100


class Section(Struct, frozen=True, kw_only=True):
    """Blocks under a title.

    Attributes:
        noun: what a block is about, to count those left out.
        blocks: made only where they may be shown.
        share: of the whole text that the blocks may take; all shares together leave some room.
    """

    title: str
    noun: str
    blocks: Iterator[str]
    total: int
    at_most: int = MAX_ITEMS
    share: float = 0.05
