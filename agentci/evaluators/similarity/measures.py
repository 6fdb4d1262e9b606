"""Similarity of texts, from 0 to 1, and of vectors, from -1 to 1."""

import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, TypeAlias

from agentci.evaluators.similarity.porter import stem

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
