"""What differs in two similar texts: amounts, operators, negations, JSON, else single words.

Similarity counts words, so that one wrong word hardly changes the score of a long answer.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import chain, pairwise
from typing import Final, Self

import msgspec
from msgspec import Struct

from agentci._util.text import change, json_text, truncate
from agentci.model.values import Json

MAX_FACTS: Final = 3
MAX_FACT_CHARACTERS: Final = 40
# Characters of the range or list that a number may end.
MAX_RANGE: Final = 60
# Texts in which more than these words differ, and more than this share, are worded differently.
MAX_WORDS: Final = 2
MAX_SHARE: Final = 0.1
# Words of both texts between their equal ends: what comparing them takes.
MAX_PAIRS: Final = 25_000_000
# Words of a sentence of which a part may be at another place.
MAX_SENTENCE: Final = 80
# Words of such a part, and those beside numbers, names and fillers if both parts that are exchanged
# have numbers or names.
MIN_PART: Final = 2
MIN_CLAUSE: Final = 3

_SPELLINGS_OF_CURRENCIES: Final[Mapping[str, tuple[str, ...]]] = {
    "usd": ("$", "us$", "dollar"),
    "eur": ("€", "euro"),
    "gbp": ("£",),
    "jpy": ("¥", "yen"),
    "inr": ("₹", "rupee"),
    **dict.fromkeys(("chf", "cad", "aud", "nzd", "cny", "sek", "nok", "dkk", "pln", "brl"), ()),
}
# A plural with ``s`` is read, too.
_SPELLINGS_OF_UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    **_SPELLINGS_OF_CURRENCIES,
    "%": ("percent",),
    "lb": ("lbs",),
    "ms": ("millisecond",),
    "s": ("sec", "second"),
    "min": ("minute",),
    "h": ("hr", "hour"),
    "am": ("a.m",),
    "pm": ("p.m",),
    "m": ("meter", "metre"),
    "km": ("kilometer", "kilometre"),
    "mile": ("mi",),
    "inch": ("inches",),
    "foot": ("ft", "feet"),
    "g": ("gram",),
    "kg": ("kilo", "kilogram"),
    "oz": ("ounce",),
    "l": ("liter", "litre"),
    "°c": ("celsius",),
    "°f": ("fahrenheit",),
    "km/h": ("kph", "kmh"),
    **dict.fromkeys(("cent", "day", "week", "month", "year", "mm", "cm", "mg", "ml", "gallon"), ()),
    **dict.fromkeys(("kb", "mb", "gb", "tb", "kw", "kwh", "mph"), ()),
}


def _invert(spellings: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    return {each: unit for unit, others in spellings.items() for each in (unit, *others)}


_CURRENCIES: Final = _invert(_SPELLINGS_OF_CURRENCIES)
_UNITS: Final = _invert(_SPELLINGS_OF_UNITS)
# Units that measure the same, each in the smallest: 24 months are 2 years.
_SCALES: Final[Sequence[Mapping[str, str]]] = (
    {
        "ms": "1",
        "s": "1000",
        "min": "60000",
        "h": "3600000",
        "day": "86400000",
        "week": "604800000",
    },
    {"month": "1", "year": "12"},
    {"mm": "1", "cm": "10", "m": "1000", "km": "1000000"},
    {"mg": "1", "g": "1000", "kg": "1000000"},
    {"ml": "1", "l": "1000"},
    {"inch": "1", "foot": "12"},
)
_IN_SMALLEST: Final[Mapping[str, tuple[str, Decimal]]] = {
    unit: (next(iter(scale)), Decimal(factor))
    for scale in _SCALES
    for unit, factor in scale.items()
}
_FACTORS: Final[Mapping[str, int]] = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "bn": 10**9,
    "trillion": 10**12,
}
_LETTER_FACTORS: Final[Mapping[str, int]] = {"k": 10**3, "K": 10**3, "M": 10**6}
_ONES: Final = {
    word: number
    for number, word in enumerate(
        ("two", "three", "four", "five", "six", "seven", "eight", "nine"), start=2
    )
}
_TENS: Final = {
    word: 10 * number
    for number, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2
    )
}
_WORDS: Final = {**_ONES, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15}
_NEGATIONS: Final = frozenset(
    (
        *("not", "no", "never", "cannot", "without", "neither", "nor", "none", "nothing"),
        *("nowhere", "non", "nicht", "kein", "keine", "keinen", "keiner", "keinem"),
        *("nie", "pas", "jamais", "nunca"),
    )
)
_DENYING_PREFIX: Final = "un"
# Words that say nothing by themselves, where they are added, left out or replaced by each other.
# Of words with an opposite ("and" and "or", "your" and "our") only one is here.
_FILLERS: Final = frozenset(
    (
        *("a", "an", "the", "and", "but", "so", "also", "then", "that", "of", "it", "i", "we"),
        *("your", "am", "is", "are", "have", "has", "i'm", "it's", "that's", "we're", "i've"),
        *("we've", "just", "please", "done", "sure", "ok", "okay", "really", "actually", "simply"),
        *("kindly", "gladly", "happily", "hi", "hello", "hey", "oh", "ah", "wow", "great"),
        *("perfect", "sorry", "thanks"),
    )
)
# An apology, thanks or a courtesy has one of these words, and else only such words, fillers and
# the following.
_COURTESY: Final = frozenset(
    (
        *("sorry", "apologies", "apology", "apologize", "apologise", "regret", "inconvenience"),
        *("thank", "thanks", "appreciate", "patience", "understanding", "welcome", "pleasure"),
        *("glad", "happy", "hope", "wish", "enjoy", "nice", "great", "else", "question"),
        *("questions", "feel", "let", "hi", "hello", "hey", "dear", "bye", "regards", "luck"),
        *("course", "certainly", "absolutely"),
    )
)
_BESIDE_COURTESY: Final = frozenset(
    (
        *("you", "us", "me", "my", "our", "this", "to", "for", "about", "any", "all", "if"),
        *("other", "further", "more", "with", "will", "can", "there", "anything", "be", "been"),
        *("you're", "i'd", "i'll", "know", "free", "ask", "help", "day", "very", "much", "in"),
        *("advance", "good", "at", "or", "how", "hear", "caused"),
    )
)
# What is negated to say that all is well, and the words beside it: "That should not happen".
_REASSURANCE: Final = re.compile(
    r"\b(?:should(?:n't| not| never)(?: have)? (happen|happened|occur|occurred)"
    r"|(?:do not|don't) (?:(worry|mind)|(hesitate)\b.*)"
    r"|never (mind)|(?:no|not a) (problem|worries))\b"
)
_BESIDE_REASSURANCE: Final = frozenset(
    (
        *("a", "that", "this", "it", "is", "it's", "that's", "so", "just", "please", "i", "we"),
        *("am", "i'm", "sorry", "again", "to", "you", "us", "about", "at", "all", "really"),
        *("things", "like", "such", "thing", "something"),
    )
)
_SENTENCE_END: Final = re.compile(r"[.!?:]+\s|\n")
_CONJUNCTIONS: Final = frozenset(("and", "or", "und", "oder", "et"))
_CLAUSE_END: Final = re.compile(
    r"([.,;:!?()\n\u2014]|\s[-\u2013]\s|\b(?:and|but|und|et)\b)", re.IGNORECASE
)

# Other spellings of an apostrophe, a minus and a space within a number.
_SPELLINGS: Final = str.maketrans("\u2019\u2212\u2009\u202f", "'-\u00a0\u00a0")
# The numbers of list items are layout.
_ITEM_NUMBER: Final = re.compile(r"^[ \t>*_#-]{0,10}[0-9]{1,3}[.)][ \t]", re.MULTILINE)
_SPACING: Final = re.compile("['_\u00a0]")
_NUMBER: Final = re.compile(
    r"(?P<currency>US\$|[$€£¥₹]|\b[A-Z]{3}\b)?[ \u00a0]?"
    r"(?P<number>(?:(?<![^\s(\[:=$€£¥₹])-)?"
    r"(?:[0-9]{1,3}(?:[,.'_\u00a0][0-9]{3})+(?![0-9])(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]+)?))"
    r"(?P<factor>[kK]\b|M\b)?"
)
_NUMBER_WORD: Final = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<ones>one|{'|'.join(_ONES)}))?"
    rf"|(?P<word>{'|'.join(_WORDS)}))\b",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(r"[ \u00a0-]?(US\$|[$€£¥₹%]|°[CF]\b|km/h|[ap]\.m|[A-Za-z]+)")
_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
# The rest of a time, a version or an id.
_BEFORE: Final = re.compile(r"[\w#:./-]{0,40}\Z")
_BEHIND: Final = re.compile(r"[\w:./-]{0,40}")
_MARKS: Final = ":./-"
# Not at the start of a sentence.
_NAME: Final = re.compile(r"(?<=[^\W_] |[,;:] )[A-Z]\w+")
_ANY_WORD: Final = re.compile(r"\w+(?:'\w+)*")
_THOUSAND_DIGITS: Final = 3
# The unit of a range or list is written once: ``5 to 10%``, ``$5-10``.
_BETWEEN: Final = r"[ \u00a0]?(?:-|\u2013|,|/|to|and|or|bis|und|oder)[ \u00a0]?"
_SIGN_AFTER: Final = re.compile(
    rf"(?:{_BETWEEN}[0-9][0-9.]{{0,20}}){{1,5}}[ \u00a0]?(?:%|[$€£¥₹]|°[CF])"
)
_SIGN_BEFORE: Final = re.compile(
    rf"[$€£¥₹][ \u00a0]?[0-9][0-9.]{{0,20}}[kKM]?"
    rf"(?:{_BETWEEN}[0-9][0-9.]{{0,20}}){{0,4}}{_BETWEEN}\Z"
)
# Tags, marks of quotes and arrows: no operators.
_NO_OPERATOR: Final = re.compile(
    r"</?[A-Za-z!][^<>\n]*>|^[ \t]*>+|<?[-=]{1,4}>|<-{1,4}", re.MULTILINE
)
_OPERATOR: Final = re.compile(
    r"(?:(?P<left>[\w)\]%]{1,40})[ \u00a0]?)?(?P<operator><=|>=|==|!=|[<>\u2264\u2265\u2260])"
    r"(?![<>=])[ \u00a0]?(?P<right>[-$€£]?[\w(\[]{1,40})"
)
_HAS_OPERATOR: Final = re.compile("[<>!\u2264\u2265\u2260]|==")
_OPERATOR_SPELLINGS: Final = {"\u2264": "<=", "\u2265": ">=", "\u2260": "!="}
# One separator, so that the same parts in another order are another day, or another notation.
_DATE: Final = re.compile(r"(?<![\w./-])(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})(?![\w/-]|\.\d)")
# Signs of which each says the opposite of another.
_SIGN: Final = re.compile(
    "[\u2705\u2714\u2611\u274c\u2716\u2717\u2718\U0001f7e2\U0001f534\U0001f44d\U0001f44e]"
)
_QUOTED: Final = re.compile(r'"(.*?)"')
_QUOTED_LIST: Final = re.compile(r'("[^"]*")(?: "[^"]*")+')
# Of facts: numbers, values of JSON, and signs that are no punctuation.
_NO_WORDS: Final = re.compile(
    r"\d|: (?:true|false|null|[{\[])|[^\w\s'\u2026\u201c\u201d().,:;!?*/\u2013\u2014-]"
)
# A number in an id, such as WB-24-8879, is none of a unit.
_ID_START: Final = re.compile(r"[A-Za-z]\w*-(?:\w+-)*\Z")
_OF_ID: Final = "id"
_JSON_FENCE: Final = re.compile(r"\A```(?:json)?\n(.*)\n```\Z", re.DOTALL)
_VALID_JSON: Final = "valid JSON"
_NO_JSON: Final = "no valid JSON"


class _Amount(Struct, frozen=True):
    """A number and its unit.

    Attributes:
        values: what it may be: a point before three digits separates thousands or decimals.
        unit: empty if it has none that is known; ``id`` for a number of an id.
        text: as written.
        in_digits: False for a number word.
        has_sign: whether the unit is a sign, such as ``%``, or the amount is in a range or a list
            with one that has it.
    """

    values: tuple[Decimal, ...]
    unit: str
    text: str
    in_digits: bool
    has_sign: bool


class _Word(str):
    """A word with its place in its text."""

    __slots__ = ("end", "start")

    start: int
    end: int

    @classmethod
    def read(cls, match: re.Match[str]) -> Self:
        """Make the word that a pattern found."""
        word = cls(match[0])
        word.start, word.end = match.span()
        return word


class ChangedFacts(Struct, frozen=True):
    """The facts that only one of two texts has: new ones, and those of the reference.

    Attributes:
        first_value: the first value of JSON that has another type, with its path, in both texts.
    """

    new: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    first_value: tuple[str, str] | None = None

    def __str__(self) -> str:
        """Format ``"5%" → "5"``; empty for none."""
        if self.new and self.lost:
            return f"{_join(self.lost)} \N{RIGHTWARDS ARROW} {_join(self.new)}"
        if self.new:
            return f"new: {_join(self.new)}"
        return f"no longer: {_join(self.lost)}" if self.lost else ""


def find_changed_facts(text: str, reference: str) -> ChangedFacts:
    """Find the facts in which ``text`` differs from ``reference``.

    These are amounts that only one of them has, in any order and notation, dates with exchanged
    parts, operators of comparisons and negations of which one has more, signs such as check marks,
    JSON that does not parse any more, and other types in JSON.
    A negation that reassures, such as "That should not happen", is none if only one text has it.
    A unit that one of them leaves out is compared only if it is a sign, such as ``%``.
    """
    if text == reference:
        return ChangedFacts()
    text, reference = (each.translate(_SPELLINGS) for each in (text, reference))
    found, expected = list(_find_amounts(text)), list(_find_amounts(reference))
    unmatched = _list_unmatched(found, expected), _list_unmatched(expected, found)
    # Number words are often left out or added ("the two cities"), but seldom replaced.
    new, lost = (
        [each.text for each in own if each.in_digits or other]
        for own, other in (unmatched, unmatched[::-1])
    )
    if not new and not lost:
        new, lost = _compare_signs(found, expected)
    negations = _compare_negations(
        *(_split_words(_drop_courtesy(*each)) for each in ((text, reference), (reference, text)))
    )
    values = _compare_json(text, reference)
    operators, dates = _compare_operators(text, reference), _compare_dates(text, reference)
    for each in (dates, operators, _compare_verdicts(text, reference), values, negations):
        new, lost = [*new, *each[0]], [*lost, *each[1]]
    first = next(zip(*values, strict=True), None)
    is_value = first is not None and _VALID_JSON not in first
    return ChangedFacts(tuple(new), tuple(lost), first if is_value else None)


def describe_changed_facts(text: str, reference: str) -> str:
    """Describe the facts of ``find_changed_facts``; empty if there are none."""
    return describe_found(find_changed_facts(text, reference))


def describe_found(facts: ChangedFacts) -> str:
    """Describe facts or words that were found; empty if there are none."""
    new, lost = facts.new, facts.lost
    if new and lost:
        return f"expected {_join(lost)}, got {_join(new)}"
    if new:
        return f"got {_join(new)}, not in the expected answer"
    return f"expected {_join(lost)}, not in the answer" if lost else ""


def rank_facts(described: str) -> int:
    """Return how soon facts are shown: numbers, signs and JSON, then negations, then words.

    Args:
        described: has the facts in quotes, as the functions of this module write them.
    """
    facts = " ".join(_QUOTED.findall(described))
    words = facts.lower().split()
    if _NO_WORDS.search(facts) or _NUMBER_WORD.search(facts):
        return 0
    return 2 - any(_is_negation(each) or each.startswith(_DENYING_PREFIX) for each in words)


def keep_first_facts(described: str) -> str:
    """Keep the first fact of each side; what differs besides is often a date or an id."""
    return _QUOTED_LIST.sub(r"\1", described)


def find_changed_words(text: str, reference: str) -> ChangedFacts:
    """Find the words in which similar texts differ, or that are in another order.

    A part of a sentence that is only at another place is no difference, unless numbers or names
    are exchanged by that.
    Numbers, units and negations count only where they have another place, as
    ``find_changed_facts`` compares them; upper case, punctuation, fillers and courtesies do not.
    """
    sides = [_split_sentences(each) for each in (text, reference)]
    if _has_moved_parts(*sides):
        return ChangedFacts()
    found, expected = ([*chain.from_iterable(each)] for each in sides)
    number = max(len(found), len(expected))
    has_facts = all(any(map(_may_be_fact, each)) for each in (found, expected))
    found, expected = _drop_equal_ends(found, expected)
    changes = [(found, expected)] if found or expected else []
    if _fold(found, sort=True) != _fold(expected, sort=True):
        changes = [
            each
            for each in _list_changes(found, expected)
            if not all(map(_is_of_fact, (*each[0], *each[1])))
        ]
        count = sum(max(map(len, each)) for each in changes)
        if count > MAX_WORDS and count > MAX_SHARE * number:
            return ChangedFacts()
    if has_facts:  # else the texts are nothing but fillers
        changes = [each for each in changes if _has_fact(*each)]
    new, lost = (
        tuple(_quote(whole, each[side]) for each in changes if each[side])
        for side, whole in enumerate((text, reference))
    )
    return ChangedFacts(new, lost)


def _quote(text: str, words: Sequence[_Word]) -> str:
    return " ".join(text[words[0].start : words[-1].end].split())


def describe_changed_words(text: str, reference: str) -> str:
    """Describe the words of ``find_changed_words``; empty if there are none."""
    return describe_found(find_changed_words(text, reference))


def describe_changed_names(text: str, reference: str) -> str:
    """Describe the words of ``describe_changed_words`` if any is a name; else empty."""
    names, others = ({*_NAME.findall(each)} for each in (text, reference))
    return describe_changed_words(text, reference) if names != others else ""


def _split_sentences(text: str) -> list[list[_Word]]:
    """Split a text into the words of its sentences, without courtesies beside others."""
    text = text.translate(_SPELLINGS)
    ends = (each.end() for each in _SENTENCE_END.finditer(text))
    words = (
        [*map(_Word.read, _ANY_WORD.finditer(text, *place))]
        for place in pairwise((0, *ends, len(text)))
    )
    found = [each for each in words if each]
    return [each for each in found if not _is_courtesy(_fold(each))] or found


def _has_moved_parts(found: Sequence[list[_Word]], expected: Sequence[list[_Word]]) -> bool:
    """Return whether sentences are equal but for parts of them that have another place."""
    return len(found) == len(expected) and all(
        _fold(own) == _fold(other) or _is_moved(own, other)
        for own, other in zip(found, expected, strict=True)
    )


def _is_moved(found: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether two adjacent parts of a sentence, or two beside ``and``, are exchanged."""
    own, other = _fold(found), _fold(expected)
    if len(own) > MAX_SENTENCE or sorted(own) != sorted(other):
        return False
    names = {each.casefold() for each in {*found} & {*expected} if each[0].isupper()}
    start, end = _count_equal(own, other), len(own) - _count_equal(own[::-1], other[::-1])
    # Both parts may start or end with the same words.
    return any(
        _may_exchange(part, rest, names)
        for first in range(max(0, start - MIN_CLAUSE), start + 1)
        for last in range(end, min(len(own), end + MIN_CLAUSE) + 1)
        for part, rest in _list_exchanged(own[first:last], other[first:last])
    )


def _list_exchanged(
    found: list[str], expected: list[str]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield both parts if one sentence has them in the other order."""
    for at in range(1, len(found)):
        part, rest = expected[:at], expected[at:]
        if rest[0] == found[0] and rest + part == found:
            yield part, rest
        if rest[0] in _CONJUNCTIONS and [*rest[1:], rest[0], *part] == found:
            yield part, rest[1:]


def _may_exchange(part: Sequence[str], other: Sequence[str], names: Container[str]) -> bool:
    """Return whether two parts of a sentence say the same in the other order."""
    if any(map(_is_negation, (*part, *other))):
        return False
    values = [sum(each in names or _is_number(each) for each in own) for own in (part, other)]
    plain = [
        sum(_may_be_fact(each) and each not in names and not _is_number(each) for each in own)
        for own in (part, other)
    ]
    return min(len(part), len(other)) >= MIN_PART and min(plain) >= (
        MIN_CLAUSE if all(values) else 1
    )


def _fold(words: Iterable[str], *, sort: bool = False) -> list[str]:
    folded = map(str.casefold, words)
    return sorted(folded) if sort else list(folded)


def _drop_equal_ends(found: list[_Word], expected: list[_Word]) -> tuple[list[_Word], list[_Word]]:
    """Drop the words with which both texts start and end."""
    own, other = _fold(found), _fold(expected)
    start = _count_equal(own, other)
    end = _count_equal(own[start:][::-1], other[start:][::-1])
    return found[start : len(found) - end], expected[start : len(expected) - end]


def _list_changes(
    found: Sequence[_Word], expected: Sequence[_Word]
) -> list[tuple[list[_Word], list[_Word]]]:
    """List the words that differ, of both texts, in their order."""
    if len(found) * len(expected) > MAX_PAIRS:
        return [([*found], [*expected])]
    own, other = _fold(found), _fold(expected)
    if other < own:  # several alignments may be the longest: choose the same from either side
        return [(new, lost) for lost, new in _list_changes(expected, found)]
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 (most runs compare no texts)

    changes: list[tuple[list[_Word], list[_Word]]] = []
    is_open = False
    for each in LCSseq.opcodes(own, other):
        if each.tag != "equal":
            if not is_open:
                changes.append(([], []))
            changes[-1][0].extend(found[each.src_start : each.src_end])
            changes[-1][1].extend(expected[each.dest_start : each.dest_end])
        is_open = each.tag != "equal"
    return changes


def _count_equal(words: Sequence[str], others: Sequence[str]) -> int:
    pairs = enumerate(zip(words, others, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(words), len(others)))


def _is_of_fact(word: str) -> bool:
    word = word.lower()
    return _is_number(word) or _is_negation(word) or bool(_read_unit(word))


def _is_number(word: str) -> bool:
    return word in _WORDS or word in _TENS or word in _FACTORS or word[0].isdecimal()


def _is_negation(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _may_be_fact(word: str) -> bool:
    return word.casefold() not in _FILLERS or word == "IT"


def _has_fact(new: Sequence[str], lost: Sequence[str]) -> bool:
    """Return whether two texts differ in more than fillers and courtesies in these words."""
    sides = [_fold(filter(_may_be_fact, each)) for each in (new, lost)]
    if sides[0] == sides[1]:
        return False
    words = [_fold(each) for each in (new, lost)]
    is_denial = bool(new and lost) and any(map(_is_negation, (*words[0], *words[1])))
    return is_denial or any(
        own and not _is_courtesy(each) for own, each in zip(sides, words, strict=True)
    )


def _is_courtesy(words: Sequence[str]) -> bool:
    """Return whether folded words are nothing but an apology, thanks or the like."""
    if _find_reassurance(words):
        return True
    own = {*words}
    return not own.isdisjoint(_COURTESY) and own <= _COURTESY | _BESIDE_COURTESY | _FILLERS


def _find_reassurance(words: Sequence[str]) -> str:
    """Return the verb or noun that a clause negates to reassure; empty for other clauses."""
    text = " ".join(words)
    match = _REASSURANCE.search(text)
    if match is None or not {*text.replace(match[0], "", 1).split()} <= _BESIDE_REASSURANCE:
        return ""
    return str(match[match.lastindex or 0])


def _drop_courtesy(text: str, other: str) -> str:
    """Leave out the clauses that reassure, if the other text does not have its word.

    "That should not happen" is a courtesy, but a fact where the other text says that it happens.
    """
    words = {*_split_words(other)}
    parts = _CLAUSE_END.split(text)
    for index in range(0, len(parts), 2):
        own = _fold(_ANY_WORD.findall(parts[index]))
        if (what := _find_reassurance(own)) and words.isdisjoint(_list_forms(what)):
            parts[index] = " "
    return "".join(parts)


def _list_forms(word: str) -> tuple[str, ...]:
    """List forms of a word: happen, happens, happened and happening; worries and worry."""
    base = re.sub("(?:r?ed|ies|y)$", "", word)
    return tuple(f"{base}{end}" for end in ("", "s", "ed", "ing", "y", "ies", "ied", "red", "ring"))


def _join(facts: Iterable[str]) -> str:
    shown = [f'"{truncate.short(each, MAX_FACT_CHARACTERS)}"' for each in dict.fromkeys(facts)]
    return " ".join(truncate.truncate_list(shown, MAX_FACTS))


def _list_unmatched(amounts: Iterable[_Amount], others: Iterable[_Amount]) -> list[_Amount]:
    units: dict[Decimal, set[str]] = {}
    for each in others:
        for value in each.values:
            units.setdefault(value, set()).add(each.unit)
    converted = {amount for each in others for amount in _convert(each)}

    def is_matched(amount: _Amount) -> bool:
        return any(
            not amount.unit or known & {"", amount.unit}
            for value in amount.values
            if (known := units.get(value))
        ) or not converted.isdisjoint(_convert(amount))

    return [each for each in amounts if not is_matched(each)]


def _convert(amount: _Amount) -> list[tuple[Decimal, str]]:
    """Return what an amount is in the smallest unit; nothing for units with no other one."""
    if amount.unit not in _IN_SMALLEST:
        return []
    unit, factor = _IN_SMALLEST[amount.unit]
    return [(value * factor, unit) for value in amount.values]


def _compare_signs(
    amounts: Sequence[_Amount], others: Sequence[_Amount]
) -> tuple[list[str], list[str]]:
    """List the amounts of which one side leaves out the sign of the unit, as both write them."""
    pairs = [
        *_list_sign_changes(amounts, others),
        *(each[::-1] for each in _list_sign_changes(others, amounts)),
    ]
    return [own for own, _ in pairs], [other for _, other in pairs]


def _list_sign_changes(
    amounts: Iterable[_Amount], others: Iterable[_Amount]
) -> Iterator[tuple[str, str]]:
    plain: dict[Decimal, _Amount] = {}
    complete: set[Decimal] = set()
    for each in others:
        plain.update((value, each) for value in each.values if value not in plain)
        complete.update(each.values if each.unit not in ("", _OF_ID) or each.has_sign else ())
    for each in amounts:
        if each.unit and each.has_sign and complete.isdisjoint(each.values):
            same = [plain[value] for value in each.values if value in plain]
            yield from ((each.text, other.text) for other in same[:1])


def _find_amounts(text: str) -> Iterator[_Amount]:
    text = _ITEM_NUMBER.sub("", text)
    for match in _NUMBER.finditer(text):
        currency = _CURRENCIES.get((match["currency"] or "").lower(), "")
        start = match.start() if currency else match.start("number")
        factor = _LETTER_FACTORS.get(match["factor"], 1)
        values = _read_number(match["number"])
        sign = bool(currency) and not match["currency"].isalpha()
        yield _make_amount(text, (start, match.end()), values, factor, currency, has_sign=sign)
    for match in _NUMBER_WORD.finditer(text):
        tens, ones, word = (each.lower() if each else "" for each in match.groups())
        value = _TENS.get(tens, 0) + _ONES.get(ones, int(ones == "one")) + _WORDS.get(word, 0)
        yield _make_amount(text, match.span(), (Decimal(value),), 1, "")


def _make_amount(
    text: str,
    span: tuple[int, int],
    values: tuple[Decimal, ...],
    factor: int,
    unit: str,
    *,
    has_sign: bool = False,
) -> _Amount:
    """Make an amount with the factor and the unit that follow it."""
    start, end = span
    in_digits = any(each.isdecimal() for each in text[start:end])
    after = _AFTER.match(text, end)
    if after is not None and (times := _FACTORS.get(after[1].lower())):
        factor, end = factor * times, after.end()
        after = _AFTER.match(text, end)
    if after is not None and not unit and (unit := _read_unit(after[1].lower())):
        end, has_sign = after.end(), not after[1][-1].isalpha() or after[1].startswith("°")
    if not unit:
        nearby = text[max(0, start - MAX_RANGE) : start]
        has_sign = bool(_SIGN_AFTER.match(text, end) or _SIGN_BEFORE.search(nearby))
    before = _BEFORE.search(text, max(0, start - MAX_FACT_CHARACTERS), start)
    if not unit and before and _ID_START.search(before[0]):
        unit = _OF_ID
    behind = _BEHIND.match(text, end)
    whole = (before[0].lstrip(_MARKS) if before else "") + text[start:end]
    written = " ".join((whole + (behind[0].rstrip(_MARKS) if behind else "")).split())
    return _Amount(tuple(each * factor for each in values), unit, written, in_digits, has_sign)


def _read_unit(word: str) -> str:
    return _UNITS.get(word) or _UNITS.get(word.removesuffix("s"), "")


def _read_number(written: str) -> tuple[Decimal, ...]:
    """Read a number in English or continental notation."""
    plain = _SPACING.sub("", written)
    last = max(plain.rfind(","), plain.rfind("."))
    if last < 0:
        return (Decimal(plain),)
    whole, rest = re.sub("[,.]", "", plain[:last]), plain[last + 1 :]
    grouped, decimal = Decimal(whole + rest), Decimal(f"{whole}.{rest}")
    if plain.count(plain[last]) > 1:
        return (grouped,)
    if len(rest) != _THOUSAND_DIGITS or whole.lstrip("-") in ("0", "") or len(whole) < last:
        return (decimal,)
    return (grouped,) if plain[last] == "," else (decimal, grouped)


def _split_words(text: str) -> list[str]:
    return [each.lower() for each in _WORD.findall(text)]


def _compare_negations(words: list[str], others: list[str]) -> tuple[list[str], list[str]]:
    """List the negations that only one of two texts has; empty if both have as many."""
    found, expected = (
        Counter(_list_negations(*each)) for each in ((words, others), (others, words))
    )
    if found.total() == expected.total():
        return [], []
    return [*(found - expected)], [*(expected - found)]


def _list_negations(words: list[str], others: list[str]) -> Iterator[str]:
    """Yield each negation with the next word, and words that replace their opposite.

    The other text has ``available``, and this one ``unavailable``.
    """
    own, other = set(words), set(others)
    for word, after in zip(words, (*words[1:], ""), strict=False):
        if _is_negation(word):
            yield f"{word} {after}".rstrip()
        elif word.startswith(_DENYING_PREFIX):
            opposite = word.removeprefix(_DENYING_PREFIX)
            if opposite in other and opposite not in own and word not in other:
                yield word


def _compare_operators(text: str, reference: str) -> tuple[list[str], list[str]]:
    """List the comparisons that only one of two texts has, if their operators differ."""
    found, expected = (_list_comparisons(each) for each in (text, reference))
    if [each[0] for each in found] == [each[0] for each in expected]:
        return [], []
    new, lost = Counter(found), Counter(expected)
    return [each for _, each in new - lost], [each for _, each in lost - new]


def _list_comparisons(text: str) -> list[tuple[str, str]]:
    """List the operators of comparisons, each with the words beside it."""
    if not _HAS_OPERATOR.search(text):
        return []
    found = []
    for match in _OPERATOR.finditer(_NO_OPERATOR.sub(" ", text)):
        operator = _OPERATOR_SPELLINGS.get(match["operator"], match["operator"])
        found.append((operator, " ".join(filter(None, (match["left"], operator, match["right"])))))
    return found


def _compare_dates(text: str, reference: str) -> tuple[list[str], list[str]]:
    """List the dates that are written alike, with the same parts in another order."""
    found, expected = (Counter(map(_read_date, _DATE.finditer(each))) for each in (text, reference))
    new, lost = found - expected, expected - found
    shared = {shape for _, shape in new} & {shape for _, shape in lost}
    own, other = ([date for date, shape in side if shape in shared] for side in (new, lost))
    return own, other


def _read_date(match: re.Match[str]) -> tuple[str, tuple[object, ...]]:
    """Return a date, and what one with exchanged parts has, too: lengths, separator and parts."""
    parts = match.group(1, 3, 4)
    return match[0], (*map(len, parts), match[2], *sorted(parts))


def _compare_verdicts(text: str, reference: str) -> tuple[list[str], list[str]]:
    """List the signs of which each text has others, such as a cross for a check mark."""
    found, expected = (Counter(_SIGN.findall(each)) for each in (text, reference))
    new, lost = [*(found - expected).elements()], [*(expected - found).elements()]
    return (new, lost) if new and lost else ([], [])


def _compare_json(text: str, reference: str) -> tuple[list[str], list[str]]:
    """List the values in the JSON of both texts that have another type; or which is not JSON."""
    own, other = _parse_json(text), _parse_json(reference)
    if own is None or other is None:
        if own is None and other is None:
            return [], []
        new, lost = (_NO_JSON if each is None else _VALID_JSON for each in (own, other))
        return [new], [lost]
    found, expected = (dict(change.list_leaves(each, "")) for each in (own, other))
    changed = [
        path
        for path, value in found.items()
        if path in expected and _name_type(value) != _name_type(expected[path])
    ]
    new_values, lost_values = (
        [f"{path}: {json_text.dumps_readable(side[path])}" for path in changed]
        for side in (found, expected)
    )
    return new_values, lost_values


def _parse_json(text: str) -> Json:
    """Parse a text that is a JSON object or list, also in a fence of Markdown; else None."""
    text = text.strip()
    fenced = _JSON_FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    if text[:1] in ("{", "["):
        with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            parsed: Json = msgspec.json.decode(text)
            return parsed
    return None


def _name_type(value: Json) -> str:
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, int | float) else type(value).__name__
