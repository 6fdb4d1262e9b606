"""Shows two texts where they differ."""

from typing import Final

from agentci._util.text import escape, truncate
from agentci._util.text.change import cut_around, shorten_pair
from agentci.evaluators.changed_facts import ChangedFacts
from agentci.model.case import ChangedText

# Characters of each side, of texts that are shown as a whole, and facts.
MAX_SHOWN: Final = 60
MAX_VALUE: Final = 32
MAX_FACTS: Final = 3


def show_facts(now: str, then: str, facts: ChangedFacts) -> ChangedText:
    """Show the facts in which two texts differ; around a fact that only one has, both texts."""
    if facts.first_value is not None:
        return _make(*facts.first_value)
    if facts.new and facts.lost and max(len(now), len(then)) > MAX_VALUE:
        after, before = (
            ", ".join(truncate.truncate_list([*dict.fromkeys(own)], MAX_FACTS))
            for own in (facts.new, facts.lost)
        )
        return _make(after, before)
    for own, text in ((facts.new, now), (facts.lost, then)):
        flat = " ".join(text.split())
        if own and max(len(now), len(then)) > MAX_SHOWN and (at := flat.find(own[0])) >= 0:
            sides = (" ".join(each.split()) for each in (now, then))
            # The other text may end before.
            return _make(*(cut_around(each, min(at, len(each)), MAX_SHOWN) for each in sides))
    return show_texts(now, then)


def show_words(now: str, then: str, words: ChangedFacts) -> ChangedText:
    """Show the first words that differ; the first difference if they are in several places."""
    sides = [" ".join(each.split()) for each in (now, then)]
    places = [
        text.find(own[0]) if own and text.count(own[0]) == 1 else -1
        for own, text in zip((words.new, words.lost), sides, strict=True)
    ]
    known = [at for at, own in zip(places, (words.new, words.lost), strict=True) if own]
    if max(map(len, sides)) <= MAX_SHOWN or not known or min(known) < 0:
        return show_texts(now, then)
    return _make(
        *(
            cut_around(text, min(at if at >= 0 else known[0], len(text)), MAX_SHOWN)
            for text, at in zip(sides, places, strict=True)
        )
    )


def show_texts(now: str, then: str) -> ChangedText:
    """Show the first difference of two texts."""
    return _make(*shorten_pair(" ".join(now.split()), " ".join(then.split()), MAX_SHOWN))


def _make(now: str, then: str) -> ChangedText:
    after, before = (escape.flatten_line(truncate.short(each, MAX_SHOWN)) for each in (now, then))
    return ChangedText(before=before, after=after)
