"""What two texts share of their n-grams: BLEU, GLEU and ROUGE."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, TypeAlias

from agentci.evaluators.similarity.tokens import words_13a, words_rouge

Ngrams: TypeAlias = Counter[tuple[str, ...]]

LONGEST: Final = 4


def bleu(candidate: str, reference: str) -> float:
    """BLEU of one sentence as sacreBLEU computes it, over 100.

    Words of 13a, n-grams of 1 to 4 as far as the candidate has any, exponential smoothing.
    """
    found, wanted = words_13a(candidate), words_13a(reference)
    orders = range(1, min(LONGEST, len(found)) + 1)
    hits = [(ngrams(found, n) & ngrams(wanted, n)).total() for n in orders]
    if not any(hits):
        return 0.0
    logs, smoothing = 0.0, 1.0
    for n, hit in zip(orders, hits, strict=True):
        total = len(found) - n + 1
        if not hit:
            smoothing *= 2
        logs += math.log(hit / total if hit else 1 / (smoothing * total))
    brevity = math.exp(min(0.0, 1 - len(wanted) / len(found)))
    return brevity * math.exp(logs / len(hits))


def gleu(candidate: str, reference: str) -> float:
    """Google's BLEU of one sentence: the lesser of precision and recall of n-grams of 1 to 4."""
    found, wanted = (_up_to_longest(words_13a(text)) for text in (candidate, reference))
    return (found & wanted).total() / max(found.total(), wanted.total(), 1)


def rouge_n(candidate: str, reference: str, n: int) -> float:
    """ROUGE-N: the F-measure of n-grams, words not stemmed."""
    found, wanted = (ngrams(words_rouge(text), n) for text in (candidate, reference))
    return f_measure((found & wanted).total(), found.total(), wanted.total())


def f_measure(hits: int, found: int, wanted: int) -> float:
    """Precision and recall in one; the order of operations gives the floats of rouge-score."""
    precision, recall = hits / max(found, 1), hits / max(wanted, 1)
    return 2 * precision * recall / (precision + recall) if hits else 0.0


def ngrams(words: Sequence[str], n: int) -> Ngrams:
    """How often each run of ``n`` words is there."""
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def _up_to_longest(words: Sequence[str]) -> Ngrams:
    return sum((ngrams(words, n) for n in range(1, LONGEST + 1)), Counter())
