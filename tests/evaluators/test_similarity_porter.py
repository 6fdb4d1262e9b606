"""Stems equal those of NLTK, which ROUGE libraries use."""

import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentci.evaluators.similarity import stem

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nltk.stem.porter import PorterStemmer

ORACLE = PorterStemmer()

SUFFIXES = """
s ies sses ss eed ed ing ied at bl iz y logy ational tional enci anci izer bli alli entli eli ousli
ization ation ator alism iveness fulness ousness aliti iviti biliti fulli logi icate ative alize
iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion sion tion ou ism ate iti ous
ive ize e ll lle
"""

# A short root with suffixes covers far more rules than random letters.
ROOTS = st.text(alphabet="aeiouybcdlnstwxz1", max_size=5)
ENDINGS = st.sampled_from(SUFFIXES.split())
WORDS = st.builds("{}{}{}".format, ROOTS, ENDINGS, ENDINGS | st.just(""))


@given(WORDS)
@example("allialliness")
@example("a")
def test_stem_of_suffixed_word_equals_nltk(word: str) -> None:
    assert stem(word) == ORACLE.stem(word)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", max_size=12))
def test_stem_of_random_word_equals_nltk(word: str) -> None:
    assert stem(word) == ORACLE.stem(word)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("skies", "sky", id="irregular word"),
        pytest.param("is", "is", id="two-letter word is unchanged"),
        pytest.param("ties", "tie", id="four-letter word in -ies keeps the e"),
        pytest.param("ponies", "poni", id="longer word in -ies loses the e"),
        pytest.param("died", "die", id="four-letter word in -ied keeps the e"),
        pytest.param("agreed", "agre", id="-eed loses its d, then its final e"),
        pytest.param("feed", "feed", id="-eed after a single consonant is kept"),
        pytest.param("hopping", "hop", id="double consonant is reduced"),
        pytest.param("falling", "fall", id="double l is kept"),
        pytest.param("filing", "file", id="short word regains its e"),
        pytest.param("sized", "size", id="short word in -ized regains its e"),
        pytest.param("sing", "sing", id="-ing without a vowel before it is kept"),
        pytest.param("happy", "happi", id="y after a consonant"),
        pytest.param("enjoy", "enjoy", id="y after a vowel"),
        pytest.param("apology", "apolog", id="logi"),
        pytest.param("beautifully", "beauti", id="fulli, continued in step 3"),
        pytest.param("formally", "formal", id="alli"),
        pytest.param("adoption", "adopt", id="ion after t"),
        pytest.param("dominion", "dominion", id="ion after another letter"),
        pytest.param("rate", "rate", id="final e of a short word is kept"),
        pytest.param("controlling", "control", id="final double l is reduced"),
        pytest.param("1990s", "1990", id="digits are consonants"),
    ],
)
def test_word_has_expected_stem(word: str, expected: str) -> None:
    assert stem(word) == expected == ORACLE.stem(word)
