"""Porter's stemmer, in the variant that ROUGE libraries use.

M. F. Porter, "An algorithm for suffix stripping" (1980), with the changes that NLTK calls its
extensions: a few irregular words, short words left unchanged, milder rules for ``-ies``, ``-ied``
and ``-y``, and more suffixes in step 2.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

MIN_WORD_LENGTH: Final = 3

VOWELS: Final = frozenset("aeiou")

# The algorithm measures length as the number of vowel-consonant sequences.
UNIT: Final = "vc"

IRREGULAR: Final = {
    "sky": "sky",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "innings": "inning",
    "inning": "inning",
    "outings": "outing",
    "outing": "outing",
    "cannings": "canning",
    "canning": "canning",
    "howe": "howe",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
}

# A suffix and its replacement; the first match decides, even if the word then stays unchanged.
PLURALS: Final = (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", ""))

DERIVATIONS: Final = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
)

ADJECTIVES: Final = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)

ENDINGS: Final = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion"),
    *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Reduce a lower-case word to its stem: ``running`` to ``run``, ``quickly`` to ``quickli``."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) < MIN_WORD_LENGTH:
        return word
    for step in STEPS:
        word = step(word)
    return word


def _without_plural(word: str) -> str:
    """Step 1a: ``caresses`` to ``caress``, ``ties`` to ``tie``, ``cats`` to ``cat``."""
    if word.endswith("ies") and len(word) == len("ties"):
        return word[:-1]
    return _replaced(word, PLURALS, lambda _: True)


def _without_tense(word: str) -> str:
    """Step 1b: ``agreed`` to ``agree``, ``hopping`` to ``hop``, ``filed`` to ``file``."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == len("died") else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        rest = word.removesuffix(suffix)
        if rest != word and "v" in _shape(rest):
            return _restore_ending(rest)
    return word


def _restore_ending(rest: str) -> str:
    """Restore the ``e``, or remove the doubled letter, left by removing ``-ed`` or ``-ing``."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 1 and rest[-1] == rest[-2] and _shape(rest)[-1] == "c":
        return rest if rest[-1] in "lsz" else rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _with_i(word: str) -> str:
    """Step 1c: ``happy`` to ``happi``; ``by``, ``say`` and ``enjoy`` stay."""
    rest = word.removesuffix("y")
    return rest + "i" if rest != word and len(rest) > 1 and _shape(rest)[-1] == "c" else word


def _without_derivation(word: str) -> str:
    """Step 2: ``relational`` to ``relate``, ``apology`` (now ``apologi``) to ``apolog``."""
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _without_derivation(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replaced(word, DERIVATIONS, lambda rest: _measure(rest) > 0)


def _without_adjective(word: str) -> str:
    """Step 3: ``electrical`` to ``electric``, ``goodness`` to ``good``."""
    return _replaced(word, ADJECTIVES, lambda rest: _measure(rest) > 0)


def _without_ending(word: str) -> str:
    """Step 4: ``adjustment`` to ``adjust``, ``adoption`` to ``adopt``."""
    suffix = next((suffix for suffix in ENDINGS if word.endswith(suffix)), "")
    rest = word.removesuffix(suffix)
    if _measure(rest) <= 1 or (suffix == "ion" and rest[-1] not in "st"):
        return word
    return rest


def _without_final_e(word: str) -> str:
    """Step 5a: ``probate`` to ``probat``; ``rate`` stays."""
    rest = word.removesuffix("e")
    if rest == word:
        return word
    units = _measure(rest)
    return rest if units > 1 or (units == 1 and not _ends_short(rest)) else word


def _without_double_l(word: str) -> str:
    """Step 5b: ``controll`` to ``control``; ``roll`` stays."""
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


STEPS: tuple[Callable[[str], str], ...] = (
    _without_plural,
    _without_tense,
    _with_i,
    _without_derivation,
    _without_adjective,
    _without_ending,
    _without_final_e,
    _without_double_l,
)


def _replaced(word: str, rules: Iterable[tuple[str, str]], condition: Callable[[str], bool]) -> str:
    for suffix, replacement in rules:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + replacement if condition(rest) else word
    return word


def _measure(text: str) -> int:
    """Count how often a vowel is followed by a consonant: 0 in ``tree``, 2 in ``private``."""
    return _shape(text).count(UNIT)


def _shape(text: str) -> str:
    """Replace vowels by ``v`` and consonants by ``c``; ``y`` after a consonant is a vowel."""
    shape = ""
    for letter in text:
        is_vowel = letter in VOWELS or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _ends_short(text: str) -> bool:
    """Return whether it ends like ``hop``, except in ``w``, ``x`` or ``y``, or is like ``at``."""
    shape = _shape(text)
    return shape == UNIT or (shape.endswith("cvc") and text[-1] not in "wxy")
