"""Every similarity measure equals the reference library that it is named after."""

import warnings
from collections.abc import Sequence

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from agentci.evaluators.similarity import SIMILARITIES, tokenize_13a

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nltk.translate.gleu_score import sentence_gleu
    from nltk.translate.meteor_score import single_meteor_score
    from rouge_score.rouge_scorer import RougeScorer

ROUGES = ("rouge1", "rouge2", "rouge3", "rouge4", "rouge5", "rougeL")
ROUGE = RougeScorer(ROUGES)
SACRE = BLEU(effective_order=True)
SPLIT = Tokenizer13a()  # type: ignore[no-untyped-call]  # sacrebleu is only partly typed

WORDS = """
the cats cat were running runs quickly, home. It's 3.5 skies flying a b (was) x_y ties -
1,000-fold well-known "quoted" &amp; <skipped> end.Start $4.50; naïve 日本 Ünïcode
"""
TEXTS = st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join) | st.text(max_size=30)


class NoSynonyms:
    """WordNet without downloaded data: it has no synonyms for any word."""

    def synsets(self, _word: str) -> Sequence[object]:
        return ()


def test_every_metric_except_embedding_cosine_is_available() -> None:
    assert list(SIMILARITIES) == [
        *("fuzzy_match", "bleu", "gleu", "meteor", "cosine_tf"),
        *("rouge_1", "rouge_2", "rouge_3", "rouge_4", "rouge_5", "rouge_l"),
    ]


@seed(13)
@given(TEXTS | st.text(alphabet=" a1.,-'&lt;\n$", max_size=20))
def test_tokens_equal_sacrebleu_13a(text: str) -> None:
    assert tokenize_13a(text) == SPLIT(text.rstrip()).split()


@seed(13)
@given(TEXTS, TEXTS)
def test_bleu_equals_sacrebleu(candidate: str, reference: str) -> None:
    expected = SACRE.sentence_score(candidate, [reference]).score / 100
    assert SIMILARITIES["bleu"](candidate, reference) == pytest.approx(expected, abs=1e-12)


@seed(13)
@given(TEXTS, TEXTS)
def test_gleu_equals_nltk(candidate: str, reference: str) -> None:
    expected = sentence_gleu([tokenize_13a(reference)], tokenize_13a(candidate))
    assert SIMILARITIES["gleu"](candidate, reference) == expected


@seed(13)
@given(TEXTS, TEXTS)
def test_meteor_equals_nltk_without_synonyms(candidate: str, reference: str) -> None:
    expected = single_meteor_score(
        tokenize_13a(reference.lower()), tokenize_13a(candidate.lower()), wordnet=NoSynonyms()
    )
    assert SIMILARITIES["meteor"](candidate, reference) == pytest.approx(expected, abs=1e-12)


@seed(13)
@given(TEXTS, TEXTS)
def test_rouge_equals_rouge_score_library(candidate: str, reference: str) -> None:
    expected = ROUGE.score(reference, candidate)
    for name in ROUGES:
        ours = SIMILARITIES[f"rouge_{name[-1].lower()}"]
        assert ours(candidate, reference) == expected[name].fmeasure


@seed(13)
@pytest.mark.parametrize("name", SIMILARITIES)
@given(candidate=TEXTS, reference=TEXTS)
def test_score_is_between_zero_and_one(name: str, candidate: str, reference: str) -> None:
    assert 0 <= SIMILARITIES[name](candidate, reference) <= 1


CASES = [
    # name, candidate, reference, score
    ("fuzzy_match", "", "", 1.0),
    ("fuzzy_match", "abc", "", 0.0),
    ("fuzzy_match", "kitten", "sitting", 8 / 13),  # i, t, t and n stay, out of 6 + 7
    ("fuzzy_match", "Paris", "paris", 0.8),
    ("fuzzy_match", "\ud800a", "a", 2 / 3),  # a lone surrogate counts as a character
    ("bleu", "", "", 0.0),
    ("bleu", "the cat sat down", "the cat sat down", 1.0),
    ("bleu", "the cat", "the cat", 1.0),  # n-grams longer than the text are ignored
    ("bleu", "The cat", "the dog", 0.0),
    ("gleu", "", "", 0.0),
    ("gleu", "a b", "a b", 1.0),
    ("gleu", "a b", "a c", 1 / 3),
    ("meteor", "", "", 0.0),
    ("meteor", "Running home", "runs home", 1 - 0.5 / 8),  # stems are equal, all in one chunk
    ("meteor", "b a", "a b", 0.5),  # two chunks
    ("cosine_tf", "", "", 0.0),
    ("cosine_tf", "Straße frei", "frei STRASSE", 1.0),
    ("cosine_tf", "a b", "a c", 0.5),
    ("rouge_1", "", "", 0.0),
    ("rouge_1", "Paris!", "paris", 1.0),
    ("rouge_1", "running", "runs", 0.0),  # not stemmed
    ("rouge_5", "a b c d", "a b c d", 0.0),  # no five words in a row
    ("rouge_l", "", "", 0.0),
    ("rouge_l", "a x b y", "a b", 2 / 3),
]


@pytest.mark.parametrize(("name", "candidate", "reference", "score"), CASES)
def test_measure_has_expected_score(
    name: str, candidate: str, reference: str, score: float
) -> None:
    assert SIMILARITIES[name](candidate, reference) == pytest.approx(score, abs=1e-12)
