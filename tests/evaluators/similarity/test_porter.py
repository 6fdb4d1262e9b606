"""Words are stemmed as NLTK stems them, which is what ROUGE libraries count by."""

import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentci.evaluators.similarity.porter import stem

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

# Words made of a short root and endings reach far more rules than random letters do.
ROOTS = st.text(alphabet="aeiouybcdlnstwxz1", max_size=5)
ENDINGS = st.sampled_from(SUFFIXES.split())
WORDS = st.builds("{}{}{}".format, ROOTS, ENDINGS, ENDINGS | st.just(""))


@given(WORDS)
@example("allialliness")
@example("a")
def test_every_word_is_stemmed_as_nltk_does(word: str) -> None:
    assert stem(word) == ORACLE.stem(word)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", max_size=12))
def test_so_is_any_run_of_letters_and_digits(word: str) -> None:
    assert stem(word) == ORACLE.stem(word)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("skies", "sky", id="an irregular word"),
        pytest.param("is", "is", id="two letters are left alone"),
        pytest.param("ties", "tie", id="four letters in -ies keep the e"),
        pytest.param("ponies", "poni", id="more letters do not"),
        pytest.param("died", "die", id="four letters in -ied keep the e"),
        pytest.param("agreed", "agre", id="eed loses its d, and its e at the end"),
        pytest.param("feed", "feed", id="unless nothing is before it"),
        pytest.param("hopping", "hop", id="a doubled letter is halved"),
        pytest.param("falling", "fall", id="but not l, s or z"),
        pytest.param("filing", "file", id="a short word gets its e back"),
        pytest.param("sized", "size", id="so does one that had lost it to the ending"),
        pytest.param("sing", "sing", id="ing is no ending without a vowel before it"),
        pytest.param("happy", "happi", id="y after a consonant"),
        pytest.param("enjoy", "enjoy", id="y after a vowel"),
        pytest.param("apology", "apolog", id="logi"),
        pytest.param("beautifully", "beauti", id="fulli, and step 3 goes on"),
        pytest.param("formally", "formal", id="alli"),
        pytest.param("adoption", "adopt", id="ion after t"),
        pytest.param("dominion", "dominion", id="ion after another letter"),
        pytest.param("rate", "rate", id="the e of a short word stays"),
        pytest.param("controlling", "control", id="a double l at the end is halved"),
        pytest.param("1990s", "1990", id="digits are consonants"),
    ],
)
def test_stems(word: str, expected: str) -> None:
    assert stem(word) == expected == ORACLE.stem(word)
