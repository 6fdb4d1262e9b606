"""ROUGE-1 scores of answers, equal to those of agentevals 0.11.0 to the last digit."""

import warnings
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentci.errors import EvaluatorError
from agentci.evaluators.changed_facts import (
    describe_changed_facts,
    describe_changed_words,
    rank_facts,
)
from agentci.evaluators.metrics import (
    explain_missing_response,
    measure_response_match,
    rouge_1,
    split_words,
)
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
def test_english_score_equals_rouge_score_library(candidate: str, reference: str) -> None:
    assert rouge_1(candidate, reference) == ORACLE.score(reference, candidate)["rouge1"].fmeasure


@pytest.mark.parametrize(
    ("candidate", "reference", "score"),
    [
        pytest.param("", "", 0.0, id="both empty"),
        pytest.param("hello", "", 0.0, id="empty reference"),
        pytest.param("Hello, World!", "hello world", 1.0, id="case and punctuation are ignored"),
        pytest.param("a a a b", "a b b b", 0.5, id="repeated words count as often as in both"),
        pytest.param(
            "It's 3.5 kg, isn't it?",
            "its 3 5 kg isn t it",
            0.7999999999999999,
            id="unrounded float",
        ),
        pytest.param(
            "she was goes", "she wa goe", 0.6666666666666666, id="short words are not stemmed"
        ),
        pytest.param("今天天气很好", "今天天气不好", 0.8333333333333334, id="Chinese"),
        pytest.param("こんにちは世界", "こんばんは世界", 0.7142857142857143, id="Japanese"),
        pytest.param("안녕하세요 세계", "안녕 세계", 0.7272727272727273, id="Korean"),
        pytest.param("สวัสดีครับ", "สวัสดีค่ะ", 0.6153846153846153, id="Thai"),
        pytest.param("ХЕЛЬМ релизы", "хельм релиз", 0.5, id="Russian is not stemmed"),
        pytest.param("café crème", "Café Creme", 0.5, id="accents are significant"),
        pytest.param(
            "\uff26ull ﬁle ①", "full file 1", 1.0, id="compatibility characters are normalized"
        ),
    ],
)
def test_texts_have_expected_rouge_1_score(candidate: str, reference: str, score: float) -> None:
    assert rouge_1(candidate, reference) == score


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("今天 weather 很好", ["今", "天", "weather", "很", "好"], id="mixed scripts"),
        pytest.param("กa bกc", ["กa", "b", "กc"], id="Thai letter starts a word"),
        pytest.param("नमस्ते दुनिया", ["नमस्ते", "दुनिया"], id="combining marks belong to the word"),
        pytest.param("a\u200db", ["a", "b"], id="zero-width joiner separates words"),
        pytest.param("emoji 😀 ok", ["emoji", "ok"], id="emoji separate words"),
    ],
)
def test_text_is_split_into_words(text: str, expected: Sequence[str]) -> None:
    assert split_words(text) == expected


def test_score_is_mean_over_turns() -> None:
    found = measure_response_match([turn("alpha"), turn("no")], [turn("alpha"), turn("yes")], {})
    assert (found.score, found.turn_scores) == (0.5, (1.0, 0.0))


def test_long_texts_are_quoted_from_their_first_difference() -> None:
    same = "word " * 60
    found = measure_response_match([turn(f"{same}39.90 EUR.")], [turn(f"{same}49.90 EUR.")], {})
    [miss] = found.misses
    assert "49.90 EUR.', got" in miss
    assert "39.90 EUR.'" in miss
    assert len(miss) < 300


def test_only_actual_answer_parts_are_joined_without_separator() -> None:
    assert (
        measure_response_match([turn("run", "ning home")], [turn("running home")], {}).score == 1.0
    )
    assert (
        measure_response_match([turn("running home")], [turn("run", "ning home")], {}).score == 0.8
    )


def test_matching_turn_is_not_a_miss() -> None:
    found = measure_response_match([turn("a b"), turn()], [turn("a b"), turn("yes")], {})
    assert found.misses == ("turn 2: expected 'yes', got nothing (0.00)",)


def test_lowest_turn_is_the_first_miss() -> None:
    found = measure_response_match([turn("a b"), turn("z")], [turn("a b c"), turn("yes")], {})
    assert [each.partition(":")[0] for each in found.misses] == ["turn 2", "turn 1"]


def test_turn_without_an_expected_answer_is_left_out() -> None:
    found = measure_response_match([turn("a"), turn("b")], [turn(), turn("b c")], {})
    assert found.score == pytest.approx(2 / 3)
    assert found.turn_scores == (None, found.score)
    assert found.misses == ("turn 2: expected 'b c', got 'b' (0.67)",)
    assert explain_missing_response([turn(), turn("b")]) == ""
    assert explain_missing_response([turn()]) == "the eval case has no expected answer"


def test_run_that_ends_before_the_expected_answer_is_an_error() -> None:
    with pytest.raises(EvaluatorError, match="no turn was recorded for which an answer is"):
        measure_response_match([turn("a")], [turn(), turn("b")], {})


def test_miss_truncates_long_answer_to_one_line() -> None:
    [miss] = measure_response_match([turn("x\n" * 9_000)], [turn("yes")], {}).misses
    assert len(miss) < 300
    assert "\n" not in miss


@pytest.mark.parametrize(
    ("actual", "expected", "details"),
    [
        pytest.param(1, 1, {}, id="equal turn counts"),
        pytest.param(1, 3, {"missing_turns": 2, "unexpected_turns": 0}, id="missing turns"),
        pytest.param(2, 1, {"missing_turns": 0, "unexpected_turns": 1}, id="unexpected turn"),
    ],
)
def test_missing_and_unexpected_turns_are_counted(
    actual: int, expected: int, details: dict[str, int]
) -> None:
    found = measure_response_match([turn("a")] * actual, [turn("a")] * expected, {})
    assert (found.score, found.details) == (1.0, details)


@pytest.mark.parametrize(
    ("actual", "expected", "reason"),
    [
        pytest.param([], [turn("a")], "no turns found in the recorded run", id="no actual turns"),
        pytest.param([turn("a")], [], "the eval case has no turns", id="no expected turns"),
    ],
)
def test_empty_run_or_eval_case_is_an_error(
    actual: Sequence[Turn], expected: Sequence[Turn], reason: str
) -> None:
    with pytest.raises(EvaluatorError, match=reason):
        measure_response_match(actual, expected, {})


@pytest.mark.parametrize(
    ("answer", "expected", "facts"),
    [
        ("It costs 54 EUR.", "It costs 45 EUR.", 'expected "45 EUR", got "54 EUR"'),
        ("45 €", "$45", 'expected "$45", got "45 €"'),
        ("-5 °C", "5 °C", 'expected "5 °C", got "-5 °C"'),
        ("5 am", "5 pm", 'expected "5 pm", got "5 am"'),
        ("1,000", "1", 'expected "1", got "1,000"'),
        ("at 10:45", "at 10:30", 'expected "10:30", got "10:45"'),
        ("order A-1243.", "order A-1234.", 'expected "A-1234", got "A-1243"'),
        ("2 months", "2 years", 'expected "2 years", got "2 months"'),
        ("for 12 months", "for 2 years", 'expected "2 years", got "12 months"'),
        ("three days", "five days", 'expected "five days", got "three days"'),
        ("3 adults", "3 adults, 2 kids", 'expected "2", not in the answer'),
        ("It is not free", "It is free", 'got "not free", not in the expected answer'),
        ("You can stay", "You can\u2019t stay", 'expected "can\'t stay", not in the answer'),
        ("unavailable", "available", 'got "unavailable", not in the expected answer'),
        ("Buy if x > 5.", "Buy if x < 5.", 'expected "x < 5", got "x > 5"'),
        ("x \u2265 5", "x > 5", 'expected "x > 5", got "x >= 5"'),
        ("The rate is 5.", "The rate is 5%.", 'expected "5%", got "5"'),
        ("$5", "5", 'expected "5", got "$5"'),
        ("by 2026-12-03", "by 2026-03-12", 'expected "2026-03-12", got "2026-12-03"'),
        ("by 3.12.2026.", "by 12.3.2026.", 'expected "12.3.2026", got "3.12.2026"'),
        ("Done \u2705", "Done \u274c", 'expected "\u274c", got "\u2705"'),
        ('{"id": 1}', '{"id": "1"}', 'expected "id: "1"", got "id: 1"'),
        ('{"a": ["1"]}', '```json\n{"a": [1]}\n```', 'expected "a[0]: 1", got "a[0]: "1""'),
        ('{"a": "x"', '{"a": "x"}', 'expected "valid JSON", got "no valid JSON"'),
    ],
)
def test_changed_fact_is_described(answer: str, expected: str, facts: str) -> None:
    assert describe_changed_facts(answer, expected) == facts


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("1,000 users", "1000 users"),
        ("1.000 EUR", "1000 EUR"),
        ("1\u202f000 km", "1'000km"),
        ("1.234,56 €", "€1,234.56"),
        ("1.234.567 users", "1,234,567 users"),
        ("45.00", "45"),
        ("45", "45 EUR"),
        ("US$ 45.", "45 dollars"),
        ("5%", "5 percent"),
        ("5k and €5M", "5,000 and 5 million euros"),
        ("25 days", "twenty-five days"),
        ("the two cities", "the cities"),
        ("\u22125", "-5"),
        ("1. a\n2. b", "- a\n- b"),
        ("can\u2019t", "cannot"),
        ("5 km, then 3 km", "3 km after 5 km"),
        ("2 years", "24 months"),
        ("1.5 km in 90 min", "1,500 m in 1.5 hours"),
        ("5 to 10%", "5% to 10%"),
        ("2026-12-03", "12/03/2026"),
        ("2026-12-03", "03-12-2026"),
        ("Done \u2705", "Done"),
        ("$5-10", "$5-$10"),
        ("x \u2264 5", "x <= 5"),
        ("x < 5, y > 3", "y > 3, x < 5"),
        ("a <b>x</b> -> y", "a x => y"),
        ("> quoted", "quoted"),
        ('{"a": 1, "b": null}', '{"b": null, "a": 1.0}'),
        ("", ""),
    ],
)
def test_same_facts_in_another_form_are_not_changed(answer: str, expected: str) -> None:
    assert describe_changed_facts(answer, expected) == ""
    assert describe_changed_facts(expected, answer) == ""


LONG = "In the report of the office for the week, the weather of the city of Paris is sunny."


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        (LONG.replace("sunny", "stormy"), LONG, 'expected "sunny", got "stormy"'),
        (
            "Oslo is hot, and Rome wet",
            "Oslo is wet, and Rome hot",
            'expected "wet, and Rome hot", got "hot, and Rome wet"',
        ),
        ("3 km, then 5 km", "5 km, then 3 km", 'expected "5 km, then 3", got "3 km, then 5"'),
        (
            "Happy to help. Anna pays 20 EUR, Ben 10 EUR.",
            "Anna pays 10 EUR, Ben 20 EUR.",
            'expected "10 EUR, Ben 20", got "20 EUR, Ben 10"',
        ),
        (
            "The new tram costs 5 EUR, the old bus 7",
            "The old bus costs 5 EUR, the new tram 7",
            'expected "old bus costs 5 EUR, the new tram", got "new tram costs 5 EUR, the old bus"',
        ),
        (
            "Take tram 5 and bus 7",
            "Take bus 7 and tram 5",
            'expected "bus 7 and tram 5", got "tram 5 and bus 7"',
        ),
        ("between 14 and 10", "between 10 and 14", 'expected "10 and 14", got "14 and 10"'),
        (
            "Only you can pay 10",
            "You can pay only 10",
            'expected "You can pay only", got "Only you can pay"',
        ),
        (
            "You cannot go to Rome but can to Oslo",
            "You can to Oslo but cannot go to Rome",
            'expected "can to Oslo but cannot go to Rome", got "cannot go to Rome but can to Oslo"',
        ),
        (
            "The fee of 9.50 EUR (10%),\nnot more, is due on Friday",
            "The fee of 10% (9.50 EUR),\nnot more, is due on Friday",
            'expected "10% (9.50 EUR", got "9.50 EUR (10"',
        ),
        ("It is New York", "It is Oslo", 'expected "Oslo", got "New York"'),
        ("Yes, it rains", "It rains", 'got "Yes", not in the expected answer'),
        ("It rains", "It rains, maybe", 'expected "maybe", not in the answer'),
        ("Rome and Oslo", "Rome or Oslo", 'expected "or", got "and"'),
        ("our lamp", "your lamp", 'expected "your", got "our"'),
        ("Floor lamp, please", "desk lamp", 'expected "desk", got "Floor"'),
        ("Ask the team", "Ask the IT team", 'expected "IT", not in the answer'),
        ("Done", "Sure", 'expected "Sure", got "Done"'),
        ("", "Hello", 'expected "Hello", not in the answer'),
        ("We refunded it", "We refund it", 'expected "refund", got "refunded"'),
        # Numbers, units and negations are facts.
        ("1,000 km, not far", "1000 kilometers, never far", ""),
        ("It is *sunny* in Paris!", "it is sunny, in paris", ""),
        ("The sky over Rome is blue today", "Rome has blue sky", ""),
    ],
)
def test_single_other_words_and_exchanged_ones_are_described(
    answer: str, expected: str, words: str
) -> None:
    assert describe_changed_words(answer, expected) == words


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            "For your lamp in Rome, the repair costs 50 EUR.",
            "The repair for your lamp in Rome costs 50 EUR.",
        ),
        (
            "Within 30 days of delivery you can return it.",
            "You can return it within 30 days of delivery.",
        ),
        (
            "From the day of delivery, the lamp of order 4 has a warranty of 24 months.",
            "The lamp of order 4 has a warranty of 24 months from the day of delivery.",
        ),
        ("As proof, keep the invoice. It rains.", "Keep the invoice as proof. It rains."),
        (
            "Shall I refund 9 EUR and register the return?",
            "Shall I register the return and refund 9 EUR?",
        ),
        (
            "Done: 9 EUR are refunded within 5 days, and the return of order 4 is registered.",
            "Done: the return of order 4 is registered, and 9 EUR are refunded within 5 days.",
        ),
        ("In the shop, the lamp of the shop is red.", "The lamp of the shop is red in the shop."),
        ("Of course! As proof, keep the invoice.", "Keep the invoice as proof."),
    ],
)
def test_part_of_a_sentence_at_another_place_is_no_other_word(answer: str, expected: str) -> None:
    assert describe_changed_words(answer, expected) == ""
    assert describe_changed_words(expected, answer) == ""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Sorry, it rains", "It rains"),
        ("Of course! It rains.", "It rains."),
        ("Hi! It rains.", "It rains"),
        ("Done, I refunded 5 EUR; you just wait", "I have refunded 5 EUR, and you wait"),
        ("A lamp and the shade", "The lamp, please, also a shade"),
        ("It's on its way; just please wait", "It is on its way; please just wait"),
        (f"{LONG} I am sorry.", LONG),
        (f"Thank you for your patience! {LONG}", LONG),
        (f"That should not happen. {LONG}", LONG),
    ],
)
def test_fillers_and_courtesies_are_no_other_words(answer: str, expected: str) -> None:
    assert describe_changed_words(answer, expected) == ""
    assert describe_changed_words(expected, answer) == ""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("That should not happen, and I am sorry. It is off.", "I am sorry. It is off."),
        ("Do not worry! It is in stock.", "It is in stock."),
        ("It is here. Please don't hesitate to ask us for 2 more.", "It is here, and 2 more."),
        ("No problem: it is paid.", "It is paid."),
    ],
)
def test_negations_that_reassure_are_no_facts(answer: str, expected: str) -> None:
    assert describe_changed_facts(answer, expected) == ""
    assert describe_changed_facts(expected, answer) == ""


@pytest.mark.parametrize(
    ("answer", "expected", "facts"),
    [
        ("It should not happen.", "It should happen.", "not happen"),
        ("That should not happen.", "That happened.", "not happen"),
        ("We regret that. It has not happened.", "We regret that.", "not happened"),
        ("There is no problem with it.", "There is a problem with it.", "no problem"),
        ("You have no problem.", "You have it.", "no problem"),
        ("Do not worry about the fee.", "The fee is due.", "not worry"),
        ("It is here. You cannot return it.", "It is here.", "cannot return"),
        ("I am sorry, it is not covered.", "I am sorry.", "not covered"),
        ("I am sorry, I cannot help you.", "I am sorry.", "cannot help"),
        # It has as many negations, of which one reassures.
        ("That should not happen. It is off.", "It is not off.", ""),
    ],
)
def test_negations_that_say_something_are_facts(answer: str, expected: str, facts: str) -> None:
    described = f'got "{facts}", not in the expected answer'
    lost = 'expected "not off", not in the answer'
    assert describe_changed_facts(answer, expected) == (described if facts else lost)


def test_number_of_an_id_is_no_number_with_a_unit() -> None:
    text = "You have a warranty of {} months. The code is WB-24-88."
    facts = 'expected "24 months", got "12 months"'
    assert describe_changed_facts(text.format(12), text.format(24)) == facts
    assert describe_changed_facts("A-12 is here: 12", "12, A-12") == ""


def test_numbers_are_before_negations_and_words() -> None:
    order = (
        *('turn 2: expected "45 EUR", got "54 EUR"', 'got "two days", not in the answer'),
        *('"x < 5" \N{RIGHTWARDS ARROW} "x > 5"', 'new: "not free" "5 EUR"'),
        *('turn 1: got "not free", not in the expected answer', 'no longer: "unavailable"'),
        *('turn 1: expected "Oslo", got "New York"', 'expected "desk", got "floor"'),
        *('got "so: yes, it is (maybe)!", not in the answer', 'expected "a; b", got "c \u2013 d?"'),
        *('expected "ok: "true"", got "ok: true"', 'got "a & b"'),
    )
    assert [*map(rank_facts, order)] == [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 0, 0]


def test_words_of_huge_texts_are_compared_in_little_time() -> None:
    start, end = ("word " * count for count in (300_000, 6_000))
    middle = "".join(f"w{number} " for number in range(6_000))
    text = f"{start}{middle}{end}"
    assert describe_changed_words(f"{text} a", f"{text} b") == 'expected "b", got "a"'
    other = text.replace("w1 ", "x ").replace("w5999 ", "y ")
    assert describe_changed_words(other, text).startswith('expected "w1 w2 w3')
    moved = text.replace("w1 ", "w5999 ", 1).replace("w5998 w5999", "w5998 w1")
    assert describe_changed_words(moved, text).startswith('expected "w1 w2 w3')


@pytest.mark.parametrize(
    "text", ["1,", "$1-", "a", "<a ", "-", "<", "{", "5 % and ", "no ", "a-1-"]
)
def test_facts_of_huge_texts_are_compared_in_little_time(text: str) -> None:
    assert describe_changed_facts(f"{text * 20_000}<", f"{text * 20_000}>") is not None


@given(TEXTS, TEXTS)
@example("the cats", "cats the the")
def test_facts_and_words_of_any_text_are_compared(answer: str, expected: str) -> None:
    for describe in (describe_changed_facts, describe_changed_words):
        assert bool(describe(answer, expected)) == bool(describe(expected, answer))
        assert describe(answer, answer) == ""


def test_changed_facts_are_details_of_their_turns() -> None:
    actual, expected = [turn("A 1"), turn("Pay 5 EUR")], [turn("A 1"), turn("Pay 6 EUR")]
    details = measure_response_match(actual, expected, {}).details
    assert details == {"changed_facts": ['turn 2: expected "6 EUR", got "5 EUR"']}
