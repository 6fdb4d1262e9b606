"""How much of the golden answer's words the agent's answer has: ROUGE-1, its F-measure.

Words are counted as Google ADK 2 counts them: text in scripts that write no spaces is taken apart
character by character, words of other alphabets are kept whole, and English ones are stemmed.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from agentci._util.text import truncate
from agentci.evaluators.metrics.metric import count_unpaired_turns, mean, pair_turns
from agentci.evaluators.similarity.measures import f_measure
from agentci.evaluators.similarity.porter import stem
from agentci.model.json import JsonObject
from agentci.model.requests import MetricResult
from agentci.model.trace import Turn

name: Final = "response_match_score"
needs_golden: Final = True

SHOWN_CHARACTERS: Final = 100
MIN_STEMMED_LENGTH: Final = 4  # characters; shorter words are counted as they are

# Han, Hiragana and Katakana, Hangul: every character is a word.
SYLLABLES: Final = (range(0x4E00, 0xA000), range(0x3040, 0x3100), range(0xAC00, 0xD7B0))
# Thai and Lao, Khmer, Myanmar: every character begins a word, unless it is a mark over the last.
UNSPACED: Final = (range(0x0E00, 0x0F00), range(0x1780, 0x1800), range(0x1000, 0x10A0))


def measure(actual: Sequence[Turn], golden: Sequence[Turn], _options: JsonObject) -> MetricResult:
    """Score each answer against the golden one.

    The parts of a golden answer are lines, those of a recorded one run on, as in agentevals 0.11.0.
    """
    texts = [
        (mine.final_text or "", "\n".join(its.answer_parts))
        for mine, its in pair_turns(actual, golden)
    ]
    scores = tuple(rouge_1(mine, its) for mine, its in texts)
    return MetricResult(
        score=mean(scores),
        turn_scores=scores,
        misses=tuple(
            f"turn {number}: expected {truncate.quote_truncated(its, SHOWN_CHARACTERS)}, "
            f"got {truncate.quote_truncated(mine, SHOWN_CHARACTERS)} ({score:.2f})"
            for number, ((mine, its), score) in enumerate(zip(texts, scores, strict=True), start=1)
            if score < 1
        ),
        details=count_unpaired_turns(actual, golden),
    )


def rouge_1(candidate: str, reference: str) -> float:
    """ROUGE-1 of two texts, 0 to 1."""
    found, wanted = Counter(split_words(candidate)), Counter(split_words(reference))
    return f_measure((found & wanted).total(), found.total(), wanted.total())


def split_words(text: str) -> list[str]:
    """Take a text apart into the words that are compared."""
    plain = unicodedata.normalize("NFKC", text).lower()
    return [
        stem(word) if len(word) >= MIN_STEMMED_LENGTH and word.isascii() else word
        for word in plain.translate(SPACING).split()
    ]


class _SpacingTable(dict[int, str]):
    """What becomes of each character, for ``str.translate``; learnt as texts bring them."""

    def __missing__(self, code: int) -> str:
        spaced = self[code] = _space_character(code)
        return spaced


SPACING: Final = _SpacingTable()


def _space_character(code: int) -> str:
    """Set a character apart where its script writes no spaces; no part of a word: a space."""
    character = chr(code)
    is_mark = unicodedata.category(character).startswith("M")
    if any(code in block for block in SYLLABLES):
        return f" {character} "
    if is_mark:
        return character
    if any(code in block for block in UNSPACED):
        return f" {character}"
    return character if character.isalnum() else " "
