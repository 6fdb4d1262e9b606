"""Similarity of texts, from 0 to 1, and of vectors, from -1 to 1.

Words are compared by their stems. The stemmer is Porter's ("An algorithm for suffix stripping",
1980), in the variant that ROUGE libraries use, with the changes that NLTK calls its extensions: a
few irregular words, short words left unchanged, milder rules for ``-ies``, ``-ied`` and ``-y``, and
more suffixes in step 2.
"""

import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Final, TypeAlias

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


# HTML entities count as the character they stand for.
ENTITIES: Final = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))

# Punctuation is a separate word, except the apostrophe; points, commas and hyphens may belong to
# numbers.
_PUNCTUATION: Final = "".join(mark for mark in string.punctuation if mark not in "',-.")
_RULES: Final = (
    (re.compile(f"([{re.escape(_PUNCTUATION)}])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ALPHANUMERIC: Final = re.compile(r"[a-z0-9]+")


def tokenize_13a(text: str) -> list[str]:
    """Split ``text`` into words as mteval-v13a, the scorer of the WMT campaigns; case is kept."""
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for written, character in ENTITIES:
        text = text.replace(written, character)
    text = f" {text} "
    for pattern, spaced in _RULES:
        text = pattern.sub(spaced, text)
    return text.split()


def tokenize_rouge(text: str) -> list[str]:
    """Split ``text`` into words as ROUGE does without stemming: runs of a-z and 0-9."""
    return _ALPHANUMERIC.findall(text.lower())


NgramCounts: TypeAlias = Counter[tuple[str, ...]]

MAX_NGRAM_LENGTH: Final = 4


def bleu(candidate: str, reference: str) -> float:
    """Compute sentence BLEU as sacreBLEU does, divided by 100.

    It uses 13a tokens, n-grams of 1 to 4 (fewer for a shorter candidate) and exponential smoothing.
    """
    found, expected = tokenize_13a(candidate), tokenize_13a(reference)
    orders = range(1, min(MAX_NGRAM_LENGTH, len(found)) + 1)
    hits = [(count_ngrams(found, n) & count_ngrams(expected, n)).total() for n in orders]
    if not any(hits):
        return 0.0
    logs, smoothing = 0.0, 1.0
    for n, hit in zip(orders, hits, strict=True):
        total = len(found) - n + 1
        if not hit:
            smoothing *= 2
        logs += math.log(hit / total if hit else 1 / (smoothing * total))
    brevity = math.exp(min(0.0, 1 - len(expected) / len(found)))
    return brevity * math.exp(logs / len(hits))


def gleu(candidate: str, reference: str) -> float:
    """Compute Google's BLEU: the lesser of precision and recall of n-grams of 1 to 4."""
    found, expected = (_count_all_ngrams(tokenize_13a(text)) for text in (candidate, reference))
    return (found & expected).total() / max(found.total(), expected.total(), 1)


def rouge_n(candidate: str, reference: str, n: int) -> float:
    """Compute ROUGE-N: the F-measure of n-grams, without stemming."""
    found, expected = (count_ngrams(tokenize_rouge(text), n) for text in (candidate, reference))
    return f_measure((found & expected).total(), found.total(), expected.total())


def f_measure(hits: int, found: int, expected: int) -> float:
    """Compute the F-measure; the order of operations gives the same floats as rouge-score."""
    precision, recall = hits / max(found, 1), hits / max(expected, 1)
    return 2 * precision * recall / (precision + recall) if hits else 0.0


def count_ngrams(words: Sequence[str], n: int) -> NgramCounts:
    """Count each run of ``n`` words."""
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def _count_all_ngrams(words: Sequence[str]) -> NgramCounts:
    return sum((count_ngrams(words, n) for n in range(1, MAX_NGRAM_LENGTH + 1)), Counter())


_WORD: Final = re.compile(r"\w+")


def fuzzy_match(candidate: str, reference: str) -> float:
    """Compute rapidfuzz's ``ratio``: insertions and deletions only, without preprocessing.

    It is the share of characters that stay when one text becomes the other; 1 for two empty texts.
    """
    from rapidfuzz.distance import Indel  # noqa: PLC0415 (most runs compare no texts)

    return Indel.normalized_similarity(candidate, reference)


def rouge_l(candidate: str, reference: str) -> float:
    """Compute ROUGE-L: the F-measure of the longest common subsequence of unstemmed words."""
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 (likewise)

    found, expected = tokenize_rouge(candidate), tokenize_rouge(reference)
    return f_measure(LCSseq.similarity(found, expected), len(found), len(expected))


def cosine_tf(candidate: str, reference: str) -> float:
    """Compute the cosine between word counts, ignoring case, for any script with spaces."""
    found, expected = (Counter(_WORD.findall(text.casefold())) for text in (candidate, reference))
    product = sum(count * expected[word] for word, count in found.items())
    squares = (sum(count**2 for count in each.values()) for each in (found, expected))
    # Rounding may give slightly more than 1 for equal texts.
    return min(1.0, product / math.sqrt(math.prod(squares))) if product else 0.0


ALPHA: Final = 0.9  # weight of precision against recall
BETA: Final = 3.0  # exponent of the penalty for chunks
GAMMA: Final = 0.5  # greatest penalty

# Words with their indices in the text; a pair has an index in the candidate and one in the
# reference.
PlacedWords: TypeAlias = list[tuple[int, str]]
AlignedPair: TypeAlias = tuple[int, int]


def meteor(candidate: str, reference: str) -> float:
    """Compute METEOR: the F-measure of aligned words, less a penalty per chunk, ignoring case."""
    found, expected = (tokenize_13a(text.lower()) for text in (candidate, reference))
    pairs = _align_words(list(enumerate(found)), list(enumerate(expected)))
    if not pairs:
        return 0.0
    precision, recall = len(pairs) / len(found), len(pairs) / len(expected)
    f_mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
    chunks = 1 + sum((first + 1, second + 1) != after for (first, second), after in pairwise(pairs))
    return (1 - GAMMA * math.pow(chunks / len(pairs), BETA)) * f_mean


def _align_words(found: PlacedWords, expected: PlacedWords) -> list[AlignedPair]:
    """Pair equal words, then words of the same stem, in the order of the candidate."""
    same, found, expected = _match_words(found, expected)
    stems = ([(place, stem(word)) for place, word in each] for each in (found, expected))
    alike, _, _ = _match_words(*stems)
    return sorted(same + alike)


def _match_words(
    found: PlacedWords, expected: PlacedWords
) -> tuple[list[AlignedPair], PlacedWords, PlacedWords]:
    """Pair equal words from the end; return the pairs and what is left on both sides."""
    free: defaultdict[str, list[int]] = defaultdict(list)
    for place, word in expected:
        free[word].append(place)
    pairs, left = [], []
    for place, word in reversed(found):
        if free[word]:
            pairs.append((place, free[word].pop()))
        else:
            left.append((place, word))
    taken = {place for _, place in pairs}
    return pairs, left[::-1], [each for each in expected if each[0] not in taken]


def cosine_similarity(first: Sequence[float], second: Sequence[float]) -> float:
    """Compute the cosine between two vectors of the same length, -1 to 1.

    Raises:
        ValueError: if a vector is all zeros and so has no direction.
    """
    a, b = _scale_vector(first), _scale_vector(second)
    product, squares = _dot_product(a, b), _dot_product(a, a) * _dot_product(b, b)
    # Rounding may give slightly more than 1.
    return max(-1.0, min(1.0, product / math.sqrt(squares)))


def _scale_vector(vector: Sequence[float]) -> list[float]:
    """Scale a vector so that its squares neither underflow nor overflow."""
    largest = max(map(abs, vector))
    if not largest:
        raise ValueError("a vector of zeros has no direction")
    return [each / largest for each in vector]


def _dot_product(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


# Each function takes a candidate and a reference, and returns 0 to 1.
SIMILARITIES: Final[Mapping[str, Callable[[str, str], float]]] = {
    "fuzzy_match": fuzzy_match,
    "bleu": bleu,
    "gleu": gleu,
    "meteor": meteor,
    "cosine_tf": cosine_tf,
    **{f"rouge_{n}": partial(rouge_n, n=n) for n in range(1, 6)},
    "rouge_l": rouge_l,
}
