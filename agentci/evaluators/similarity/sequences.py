"""What two texts share in the same order, and how much of their words, whatever the order."""

import math
import re
from collections import Counter
from typing import Final

from agentci.evaluators.similarity.ngrams import f_measure
from agentci.evaluators.similarity.tokens import words_rouge

_WORD: Final = re.compile(r"\w+")


def fuzzy_match(candidate: str, reference: str) -> float:
    """The share of characters that stay when one text is made the other; two empty ones are alike.

    That is rapidfuzz's ``ratio``: only insertions and deletions, nothing changed beforehand.
    """
    from rapidfuzz.distance import Indel  # noqa: PLC0415 (most runs compare no texts)

    return Indel.normalized_similarity(candidate, reference)


def rouge_l(candidate: str, reference: str) -> float:
    """ROUGE-L: the F-measure of the longest common subsequence of words, not stemmed."""
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 (likewise)

    found, wanted = words_rouge(candidate), words_rouge(reference)
    return f_measure(LCSseq.similarity(found, wanted), len(found), len(wanted))


def cosine_tf(candidate: str, reference: str) -> float:
    """The cosine between the counts of words, in any script that writes spaces; case is free."""
    found, wanted = (Counter(_WORD.findall(text.casefold())) for text in (candidate, reference))
    product = sum(count * wanted[word] for word, count in found.items())
    squares = (sum(count**2 for count in each.values()) for each in (found, wanted))
    # Rounding may put it a little above 1, where equal texts are.
    return min(1.0, product / math.sqrt(math.prod(squares))) if product else 0.0
