"""The measures by the names that graders call them by."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from agentci.evaluators.similarity.meteor import meteor
from agentci.evaluators.similarity.ngrams import bleu, gleu, rouge_n
from agentci.evaluators.similarity.sequences import cosine_tf, fuzzy_match, rouge_l

# Each is given a candidate and its reference, and answers with a number from 0 to 1.
SIMILARITIES: Final[Mapping[str, Callable[[str, str], float]]] = {
    "fuzzy_match": fuzzy_match,
    "bleu": bleu,
    "gleu": gleu,
    "meteor": meteor,
    "cosine_tf": cosine_tf,
    **{f"rouge_{n}": partial(rouge_n, n=n) for n in range(1, 6)},
    "rouge_l": rouge_l,
}
