"""Scores word overlap between response and expected response: the F-measure of ROUGE-1.

Words are counted as in Google ADK 2: scripts without spaces are split into characters, words of
other alphabets are kept whole, and English words are stemmed.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from agentci._util.text import truncate
from agentci.evaluators.metrics.metric import count_unpaired_turns, mean, pair_turns
from agentci.evaluators.similarity import f_measure, stem
from agentci.model.requests import MetricResult
from agentci.model.trace import Turn
from agentci.model.values import Json, JsonObject

name: Final = "response_match_score"
needs_expected: Final = True

SHOWN_CHARACTERS: Final = 100
MIN_STEMMED_LENGTH: Final = 4  # characters; shorter words are not stemmed

# Han, Hiragana and Katakana, Hangul: every character is a word.
SYLLABLES: Final = (range(0x4E00, 0xA000), range(0x3040, 0x3100), range(0xAC00, 0xD7B0))
# Thai and Lao, Khmer, Myanmar: every character starts a word, except combining marks.
UNSPACED: Final = (range(0x0E00, 0x0F00), range(0x1780, 0x1800), range(0x1000, 0x10A0))


def read_expected(expected: Sequence[Turn]) -> list[Json]:
    """Return the expected responses."""
    return ["\n".join(turn.answer_parts) for turn in expected]


def measure(actual: Sequence[Turn], expected: Sequence[Turn], _options: JsonObject) -> MetricResult:
    """Score each response against the expected one.

    The parts of an expected response are joined by line breaks, those of a recorded response
    without a separator, as in agentevals 0.11.0.
    """
    texts = [
        (turn.final_text or "", "\n".join(expected_turn.answer_parts))
        for turn, expected_turn in pair_turns(actual, expected)
    ]
    scores = tuple(rouge_1(text, reference) for text, reference in texts)
    return MetricResult(
        score=mean(scores),
        turn_scores=scores,
        misses=tuple(
            f"turn {number}: expected {truncate.quote_truncated(reference, SHOWN_CHARACTERS)}, "
            f"got {truncate.quote_truncated(text, SHOWN_CHARACTERS)} ({score:.2f})"
            for number, ((text, reference), score) in enumerate(
                zip(texts, scores, strict=True), start=1
            )
            if score < 1
        ),
        details=count_unpaired_turns(actual, expected),
    )


def rouge_1(candidate: str, reference: str) -> float:
    """Compute ROUGE-1 of two texts, 0 to 1."""
    found, expected = Counter(split_words(candidate)), Counter(split_words(reference))
    return f_measure((found & expected).total(), found.total(), expected.total())


def split_words(text: str) -> list[str]:
    """Split a text into the words that are compared."""
    plain = unicodedata.normalize("NFKC", text).lower()
    return [
        stem(word) if len(word) >= MIN_STEMMED_LENGTH and word.isascii() else word
        for word in plain.translate(SPACING).split()
    ]


class _SpacingTable(dict[int, str]):
    """A cached mapping of characters to their replacements, for ``str.translate``."""

    def __missing__(self, code: int) -> str:
        spaced = self[code] = _space_character(code)
        return spaced


SPACING: Final = _SpacingTable()


def _space_character(code: int) -> str:
    """Add spaces around a character of a script without spaces.

    A character that is not part of a word becomes a space.
    """
    character = chr(code)
    is_mark = unicodedata.category(character).startswith("M")
    if any(code in block for block in SYLLABLES):
        return f" {character} "
    if is_mark:
        return character
    if any(code in block for block in UNSPACED):
        return f" {character}"
    return character if character.isalnum() else " "
