"""Scores word overlap between response and expected response: the F-measure of ROUGE-1.

Words are counted as in Google ADK 2: scripts without spaces are split into characters, words of
other alphabets are kept whole, and English words are stemmed.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from agentci._util.text import truncate
from agentci.errors import EvaluatorError
from agentci.evaluators.metrics.metric import (
    NO_EXPECTED_ANSWER,
    count_unpaired_turns,
    mean,
    pair_turns,
)
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


def explain_missing(expected: Sequence[Turn]) -> str:
    """Say that no turn has an expected response; empty if one has."""
    return "" if any(turn.answer_parts for turn in expected) else NO_EXPECTED_ANSWER


def read_expected(expected: Sequence[Turn]) -> list[Json]:
    """Return the expected responses."""
    return ["\n".join(turn.answer_parts) for turn in expected]


def measure(actual: Sequence[Turn], expected: Sequence[Turn], _options: JsonObject) -> MetricResult:
    """Score each response against the expected one; turns without one are left out.

    The parts of an expected response are joined by line breaks, those of a recorded response
    without a separator, as in agentevals 0.11.0.

    Raises:
        EvaluatorError: no turn was recorded for which a response is expected.
    """
    pairs = pair_turns(actual, expected)
    texts = {
        number: (turn.final_text or "", "\n".join(expected_turn.answer_parts))
        for number, (turn, expected_turn) in enumerate(pairs, start=1)
        if expected_turn.answer_parts
    }
    if not texts:
        raise EvaluatorError("no turn was recorded for which an answer is expected")
    scores = {number: rouge_1(*each) for number, each in texts.items()}
    return MetricResult(
        score=mean([*scores.values()]),
        turn_scores=tuple(scores.get(number) for number in range(1, len(pairs) + 1)),
        misses=tuple(
            f"turn {number}: expected {truncate.quote_truncated(reference, SHOWN_CHARACTERS)}, "
            f"got {truncate.quote_truncated(text, SHOWN_CHARACTERS)} ({scores[number]:.2f})"
            for number, (text, reference) in texts.items()
            if scores[number] < 1
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
