"""Answers are compared by the words they share, with the very floats of agentevals 0.11.0."""

import warnings
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.errors import EvaluatorError
from agentci.evaluators.metrics.response_match import measure, rouge_1, split_words
from agentci.model.trace import Turn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from rouge_score.rouge_scorer import RougeScorer

ORACLE = RougeScorer(["rouge1"], use_stemmer=True)

WORDS = "the cats cat were running runs quickly, home. It's 3.5 skies flying a b (was) x_y ties"
TEXTS = st.lists(st.sampled_from(WORDS.split())).map(" ".join) | st.text(
    alphabet=st.characters(max_codepoint=127), max_size=30
)


def turn(*parts: str) -> Turn:
    return Turn(id="t", user_text="q", answer_parts=parts)


@given(TEXTS, TEXTS)
def test_english_scores_as_with_the_rouge_library(candidate: str, reference: str) -> None:
    assert rouge_1(candidate, reference) == ORACLE.score(reference, candidate)["rouge1"].fmeasure


@pytest.mark.parametrize(
    ("candidate", "reference", "score"),
    [
        pytest.param("", "", 0.0, id="nothing against nothing"),
        pytest.param("hello", "", 0.0, id="an answer where none was wanted"),
        pytest.param("Hello, World!", "hello world", 1.0, id="case and punctuation do not count"),
        pytest.param("a a a b", "a b b b", 0.5, id="a word counts as often as in both"),
        pytest.param(
            "It's 3.5 kg, isn't it?", "its 3 5 kg isn t it", 0.7999999999999999, id="a raw float"
        ),
        pytest.param("she was goes", "she wa goe", 0.6666666666666666, id="short words stay"),
        pytest.param("今天天气很好", "今天天气不好", 0.8333333333333334, id="Chinese"),
        pytest.param("こんにちは世界", "こんばんは世界", 0.7142857142857143, id="Japanese"),
        pytest.param("안녕하세요 세계", "안녕 세계", 0.7272727272727273, id="Korean"),
        pytest.param("สวัสดีครับ", "สวัสดีค่ะ", 0.6153846153846153, id="Thai"),
        pytest.param("ХЕЛЬМ релизы", "хельм релиз", 0.5, id="Russian is not stemmed"),
        pytest.param("café crème", "Café Creme", 0.5, id="accents count"),
        pytest.param("\uff26ull ﬁle ①", "full file 1", 1.0, id="compatible characters are one"),
    ],
)
def test_scores(candidate: str, reference: str, score: float) -> None:
    assert rouge_1(candidate, reference) == score


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("今天 weather 很好", ["今", "天", "weather", "很", "好"], id="mixed scripts"),
        pytest.param("กa bกc", ["กa", "b", "กc"], id="a Thai letter begins a word"),
        pytest.param("नमस्ते दुनिया", ["नमस्ते", "दुनिया"], id="marks are part of a word"),
        pytest.param("a\u200db", ["a", "b"], id="a joiner that cannot be seen divides"),
        pytest.param("emoji 😀 ok", ["emoji", "ok"], id="emoji divide"),
    ],
)
def test_words(text: str, expected: Sequence[str]) -> None:
    assert split_words(text) == expected


def test_the_score_is_the_mean_over_the_turns() -> None:
    found = measure([turn("alpha"), turn("no")], [turn("alpha"), turn("yes")], {})
    assert (found.score, found.turn_scores) == (0.5, (1.0, 0.0))


def test_parts_of_a_recorded_answer_run_on_and_those_of_a_golden_one_do_not() -> None:
    assert measure([turn("run", "ning home")], [turn("running home")], {}).score == 1.0
    assert measure([turn("running home")], [turn("run", "ning home")], {}).score == 0.8


def test_only_what_differs_is_a_miss() -> None:
    found = measure([turn("a b"), turn()], [turn("a b"), turn("yes")], {})
    assert found.misses == ("turn 2: expected 'yes', got nothing (0.00)",)


def test_a_miss_shows_the_start_of_long_answers_on_one_line() -> None:
    [miss] = measure([turn("x\n" * 9_000)], [turn("yes")], {}).misses
    assert len(miss) < 300
    assert "\n" not in miss


@pytest.mark.parametrize(
    ("actual", "golden", "details"),
    [
        pytest.param(1, 1, {}, id="none without a partner"),
        pytest.param(1, 3, {"missing_turns": 2, "unexpected_turns": 0}, id="missing"),
        pytest.param(2, 1, {"missing_turns": 0, "unexpected_turns": 1}, id="unexpected"),
    ],
)
def test_turns_without_a_partner_are_counted(
    actual: int, golden: int, details: dict[str, int]
) -> None:
    found = measure([turn("a")] * actual, [turn("a")] * golden, {})
    assert (found.score, found.details) == (1.0, details)


@pytest.mark.parametrize(
    ("actual", "golden", "reason"),
    [
        pytest.param([], [turn("a")], "no turns found in the recorded run", id="no recording"),
        pytest.param([turn("a")], [], "the eval case has no turns", id="no golden case"),
    ],
)
def test_nothing_is_never_scored(
    actual: Sequence[Turn], golden: Sequence[Turn], reason: str
) -> None:
    with pytest.raises(EvaluatorError, match=reason):
        measure(actual, golden, {})
