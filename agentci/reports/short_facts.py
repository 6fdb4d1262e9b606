"""What differs in a case, short enough for a part of a line."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from msgspec import Struct

from agentci._util.text import change, escape, truncate
from agentci._util.text.change import ARROW, ArgumentChange
from agentci.evaluators.changed_facts import find_changed_facts

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTED: Final = re.compile(r"(?<!\w)(?:(['\"`])(?P<one>.+?)\1|“(?P<other>.+?)”)(?!\w)")
_NOT_DIGITS: Final = re.compile(r"[^\d.,]+")
_PUNCTUATION: Final = ".,;:!?"
# Texts up to this length are values, of which both are shown.
MAX_VALUE: Final = 32
# Of longer texts, those that share fewer of their words are different texts.
MIN_SHARE: Final = 0.5
# In similar texts, the places that differ and the words of each that are shown.
MAX_PLACES: Final = 3
MAX_WORDS: Final = 6
# Characters and words of texts that are compared.
_MAX_COMPARED: Final = 20_000
_MAX_WORDS_COMPARED: Final = 2_000
# Of a text that is cut.
_MIN_SIDE: Final = 8


class Quote(Struct, frozen=True):
    """A value on both sides; empty on a side that does not have it.

    Attributes:
        name: of the value, or a text of which there is only this.
    """

    name: str = ""
    before: str = ""
    after: str = ""

    def has_one_of(self, values: Sequence[str]) -> bool:
        """Whether a side has one of these values, or is a part of it, in whole words."""
        sides = [words for side in (self.before, self.after) if (words := _list_words(side))]
        named = [words for each in values if (words := _list_words(each))]
        return any(side <= words or words <= side for side in sides for words in named)

    def write(self, width: int) -> str:
        """Write ``refund amount 8.50 → 85.00`` in at most about ``width`` characters."""
        if not (self.before or self.after):
            return change.cut_around(self.name, 0, width)
        name = f"{truncate.end(self.name, width)} " if self.name else ""
        values = f"{self.before} {ARROW} {self.after}"
        if len(name + values) > width >= len(f"{self.name.rpartition(' ')[2]} {values}"):
            name = f"{self.name.rpartition(' ')[2]} "  # without the tool
        room = max(width - len(name) - len(" - "), 2 * _MIN_SIDE)
        if not (self.before and self.after):
            sign = "+" if self.after else "-"
            return f"{name}{sign} {truncate.short(self.before or self.after, room)}"
        before, after = self.before, self.after
        if len(before) + len(after) > room:
            shorter = min(len(before), len(after))
            side = max(room // 2, room - shorter)
            before, after = change.shorten_pair(before, after, side)
        return f"{name}{before} {ARROW} {after}"


class ShortFact(Struct, frozen=True):
    """What happened in a case.

    Attributes:
        text: a sentence of the report's own, with code between backticks.
        quotes: values of the agent, of which as many are shown as there is room for.
        are_facts: whether these are facts, such as amounts, not only words.
        reason: what a check says of it; may be left out.
        tool: that it is about; empty for none.
    """

    text: str = ""
    quotes: tuple[Quote, ...] = ()
    are_facts: bool = False
    reason: str = ""
    tool: str = ""

    def write(
        self, width: float, write_text: Callable[[str], str], write_code: Callable[[str], str]
    ) -> str:
        """Write as much as fits on a part of a line, and how much more there is.

        Args:
            width: about that of so many letters.
            write_text, write_code: escape the text, and a quote.
        """
        room, parts = width, list[str]()
        for shown, quote in enumerate(self.quotes):
            letters = int((room - measure_code("")) / CODE_LETTER)
            if shown and len(quote.write(MAX_QUOTE)) > letters:
                parts.append(f"{len(self.quotes) - shown:,} more")
                break
            written = quote.write(max(letters - len(self.text), MIN_QUOTE))
            parts.append(write_code(written))
            room -= measure_code(written) + len(", ")
        quotes = ", ".join(parts)
        text = self.text and truncate.short(self.text, max(int(room), MIN_QUOTE))
        fact = " ".join(filter(None, (text and write_text(text), quotes)))
        left = int(room) - len(f"{text} ()")
        if self.reason and left >= min(len(self.reason), MIN_REASON):
            return f"{fact} ({write_text(truncate.short(self.reason, left))})"
        return fact


# The width of a letter in code, in letters of text, and of what is around code.
CODE_LETTER: Final = 1.15
CODE_EDGES: Final = 2
# Characters of a quote or a reason that are shown if there is little room, and of any quote.
MIN_QUOTE: Final = 16
MIN_REASON: Final = 20
MAX_QUOTE: Final = 200


def measure_code(text: str) -> float:
    """Estimate the width of code on a page, in letters of text."""
    return len(text) * CODE_LETTER + CODE_EDGES


def describe_changes(tool: str, changes: Sequence[ArgumentChange]) -> ShortFact:
    """Describe the arguments of a call that differ, those of one side before changed ones."""
    changes = sorted(changes, key=lambda each: change.ABSENT not in (each.before, each.after))
    names = [f"{tool} {changes[0].path}".rstrip(), *(each.path for each in changes[1:])]
    found = zip(names, changes, strict=True)
    quotes = tuple(Quote(name, each.before, each.after) for name, each in found)
    return ShortFact(quotes=quotes, tool=tool)


def list_named_values(reasons: Iterable[str]) -> tuple[str, ...]:
    """List the short values that reasons of checks quote: "does not contain '30 days'"."""
    found = (each["one"] or each["other"] for text in reasons for each in _QUOTED.finditer(text))
    return tuple(dict.fromkeys(each for each in found if len(each) <= MAX_VALUE))


def _list_words(text: str) -> frozenset[str]:
    return frozenset(each.strip(_PUNCTUATION).casefold() for each in text.split())


def describe_answers(expected: str, actual: str | None, named: Sequence[str] = ()) -> ShortFact:
    """Describe how two answers differ: the facts, else the words, else by the new answer.

    Args:
        named: values that come first.
    """
    if actual is None or not actual.strip():
        return ShortFact("no answer" if actual is None else "an empty answer")
    old, new = (escape.flatten_line(each[:_MAX_COMPARED]).strip() for each in (expected, actual))
    if places := _list_places(old, new):
        if found := [*_list_facts(old, new, places)]:
            found.sort(key=lambda each: not each.has_one_of(named))
            return ShortFact(quotes=tuple(found), are_facts=True)
        words = max(len(f"{each.before} {each.after}".split()) for each in places)
        if len(places) <= MAX_PLACES and words <= 2 * MAX_WORDS:
            places.sort(key=lambda each: len(each.before) + len(each.after))
            places.sort(key=lambda each: not each.has_one_of(named))
            return ShortFact(quotes=tuple(places))
    if max(len(old), len(new)) <= MAX_VALUE:
        return ShortFact("answer", (Quote("", old, new),))
    _, rest = skip_equal_sentences(expected, actual)
    return ShortFact("answers", (Quote(rest or new),))


def skip_equal_sentences(one: str, other: str) -> tuple[str, str]:
    """Return both texts from the first sentence on that differs."""
    sides = split_sentences(one), split_sentences(other)
    pairs = zip(*sides, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    first, second = (escape.flatten_line(" ".join(side[same:])) for side in sides)
    return first, second


def split_sentences(text: str | None) -> list[str]:
    """Split a text into sentences; none without a text."""
    return [] if text is None else _SENTENCE_END.split(text.strip())


def _list_facts(old: str, new: str, places: Sequence[Quote]) -> Iterator[Quote]:
    """Yield the facts in which similar texts differ, those with the same unit together.

    Words, such as negations, are shown where they differ.
    """
    facts = find_changed_facts(new, old)
    if facts.first_value is not None:
        yield Quote("", *facts.first_value[::-1])
        return
    left, single = list(facts.new), list[str]()
    for each in facts.lost:
        unit = _NOT_DIGITS.findall(each)
        same = next((other for other in left if _NOT_DIGITS.findall(other) == unit), None)
        if same is None:
            single.append(each)
        else:
            left.remove(same)
            yield Quote("", each, same)
    if len(single) == len(left) == 1:
        yield Quote("", single[0], left[0])
        return
    for before, after in (*((each, "") for each in single), *(("", each) for each in left)):
        own = (each for each in places if before in each.before and after in each.after)
        is_word = not any(map(str.isdigit, before or after))
        yield (next(own, None) if is_word else None) or Quote("", before, after)


def _list_places(old: str, new: str) -> list[Quote]:
    """List the places at which similar texts differ; none for different texts.

    Where one side has nothing and the other one word, the next word of both is shown, too.
    """
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415  (most runs compare no texts)

    before, after = old.split(), new.split()
    if max(len(before), len(after)) > _MAX_WORDS_COMPARED:
        return []
    sides = [[each.strip(_PUNCTUATION).casefold() for each in own] for own in (before, after)]
    found: list[list[int]] = []
    equal = 0
    for each in LCSseq.opcodes(*sides):
        if each.tag == "equal":
            equal += each.src_end - each.src_start
        elif found and (found[-1][1], found[-1][3]) == (each.src_start, each.dest_start):
            found[-1][1::2] = each.src_end, each.dest_end
        else:
            found.append([each.src_start, each.src_end, each.dest_start, each.dest_end])
    if equal < MIN_SHARE * max(len(before), len(after)):
        return []
    places: list[Quote] = []
    for start, end, first, last in found:
        more = int(min(end - start, last - first) == 0 and max(end - start, last - first) == 1)
        old_words, new_words = before[start : end + more], after[first : last + more]
        places.append(Quote("", *(_join(words) for words in (old_words, new_words))))
    return places


def _join(words: Sequence[str]) -> str:
    return " ".join(words).rstrip(_PUNCTUATION)
