"""A part of the page, which may have to be cut."""

from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import count

MAX_ITEMS = 100


class Section(Struct, frozen=True, kw_only=True):
    """Blocks under a title.

    Attributes:
        noun: what a block is about, to count those left out.
        blocks: made only where they may be shown.
        share: of the whole text that the blocks may take, as far as those before them leave room.
    """

    title: str
    noun: str
    blocks: Iterator[str]
    total: int
    at_most: int = MAX_ITEMS
    share: float = 0.05


def sections_text(sections: Iterable[Section], max_bytes: int) -> str:
    """As many whole blocks of each as it may show; the last line says what was left out.

    Args:
        sections: in the order of the page.
        max_bytes: of which each takes its share, in UTF-8.
    """
    text, room = "", max_bytes
    left_out: list[str] = []
    for section in sections:
        most = min(int(max_bytes * section.share), room - truncate.size(f"{section.title}\n\n"))
        kept = truncate.whole(islice(section.blocks, section.at_most), most)
        if kept.text:
            part = f"{section.title}{kept.text.rstrip()}\n\n"
            text += part
            room -= truncate.size(part)
        if kept.blocks < section.total:
            left_out.append(count(section.total - kept.blocks, section.noun))
    if left_out:
        text += f"_Not shown here: {', '.join(left_out)}. `results.json` has them all._\n"
    return text
