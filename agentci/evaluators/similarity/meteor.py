"""METEOR without synonyms: words aligned as they are, then by their stems.

S. Banerjee and A. Lavie, "METEOR: An Automatic Metric for MT Evaluation with Improved Correlation
with Human Judgments" (2005), with the parameters of NLTK. Its third stage asks WordNet, which is
not here.
"""

import math
from collections import defaultdict
from itertools import pairwise
from typing import Final, TypeAlias

from agentci.evaluators.similarity.porter import stem
from agentci.evaluators.similarity.tokens import words_13a

ALPHA: Final = 0.9  # how much precision counts beside recall
BETA: Final = 3.0  # how fast the penalty grows with the number of chunks
GAMMA: Final = 0.5  # the greatest penalty

# Words with their places in the text; a pair is of places, in the candidate and the reference.
Placed: TypeAlias = list[tuple[int, str]]
Pair: TypeAlias = tuple[int, int]


def meteor(candidate: str, reference: str) -> float:
    """The F-measure of aligned words, less for every chunk that they fall into; case is free."""
    found, wanted = (words_13a(text.lower()) for text in (candidate, reference))
    pairs = _aligned(list(enumerate(found)), list(enumerate(wanted)))
    if not pairs:
        return 0.0
    precision, recall = len(pairs) / len(found), len(pairs) / len(wanted)
    f_mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
    chunks = 1 + sum((mine + 1, its + 1) != after for (mine, its), after in pairwise(pairs))
    return (1 - GAMMA * math.pow(chunks / len(pairs), BETA)) * f_mean


def _aligned(found: Placed, wanted: Placed) -> list[Pair]:
    """Pairs of equal words, then of words of the same stem, in the order of the candidate."""
    same, found, wanted = _matched(found, wanted)
    stems = ([(place, stem(word)) for place, word in each] for each in (found, wanted))
    alike, _, _ = _matched(*stems)
    return sorted(same + alike)


def _matched(found: Placed, wanted: Placed) -> tuple[list[Pair], Placed, Placed]:
    """Pair equal words, the last with the last; what is left on both sides."""
    free: defaultdict[str, list[int]] = defaultdict(list)
    for place, word in wanted:
        free[word].append(place)
    pairs, left = [], []
    for place, word in reversed(found):
        if free[word]:
            pairs.append((place, free[word].pop()))
        else:
            left.append((place, word))
    taken = {place for _, place in pairs}
    return pairs, left[::-1], [each for each in wanted if each[0] not in taken]
