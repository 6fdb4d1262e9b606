"""Shows two texts where they differ."""

from typing import Final

from agentci._util.text import escape
from agentci._util.text.truncate import short
from agentci.evaluators.changed_facts import ChangedFacts
from agentci.model.case import ChangedText
from agentci.recordings.printed_lines import show_difference

# Characters of each side; and of these, those before what differs.
MAX_SHOWN: Final = 60
MAX_COMMON: Final = 20


def show_facts(now: str, then: str, facts: ChangedFacts) -> ChangedText:
    """Show the first fact in which two texts differ, unless the first difference shows it."""
    shown = show_texts(now, then)
    if facts.first_value is not None:
        after, before = (_cut(each, 0) for each in facts.first_value)
        return ChangedText(before=before, after=after)
    sides = []
    for text, own, part in (
        (then, facts.lost, shown.before),
        (now, facts.new, shown.after),
    ):
        flat = " ".join(text.split())
        at = flat.find(own[0]) if own else -1
        is_visible = at < 0 or own[0] in part
        sides.append(part if is_visible else _cut(flat, at))
    return ChangedText(before=sides[0], after=sides[1])


def _cut(text: str, at: int) -> str:
    """Cut out the part of a text around an index."""
    start = text.rfind(" ", 0, max(0, at - MAX_COMMON)) + 1
    omitted = "\N{HORIZONTAL ELLIPSIS}" if start else ""
    return escape.flatten_line(short(f"{omitted}{text[start:]}", MAX_SHOWN))


def show_texts(now: str, then: str) -> ChangedText:
    """Show the first difference of two texts."""
    after, before = show_difference(" ".join(now.split()), " ".join(then.split()), MAX_SHOWN)
    return ChangedText(before=escape.flatten_line(before), after=escape.flatten_line(after))
