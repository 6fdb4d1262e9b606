"""Graders grade every turn, as configs say it."""

from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.model.case import Case, DatasetRow
from agentci.model.judgement import Judgement
from agentci.model.requests import Skip
from agentci.model.trace import ToolCall
from agentci.model.values import replace
from tests.evaluators.openai_eval.configs import PLACE, a_case, evaluator, judged

FUZZY = {"type": "text_similarity", "evaluation_metric": "fuzzy_match"}
EQUAL = {"type": "string_check", "operation": "eq"}


class TestThresholds:
    @pytest.mark.parametrize(
        ("fields", "own", "threshold"),
        [
            ({}, {}, 0.5),
            ({"threshold": 0.8}, {}, 0.8),
            ({}, {"pass_threshold": 0.9}, 0.9),
            ({"threshold": 0.9}, {"pass_threshold": 0.9}, 0.9),
            ({"threshold": 0}, {}, 0.0),
        ],
    )
    def test_is_that_of_the_entry_or_of_the_grader(
        self, fields: dict[str, Any], own: dict[str, Any], threshold: float
    ) -> None:
        identity = evaluator({**FUZZY, **own}, **fields).identity
        assert identity.threshold == threshold
        assert identity.criterion == f"score >= {threshold:g} in every turn"

    def test_a_string_check_has_none(self) -> None:
        identity = evaluator(EQUAL, threshold=0.3).identity
        assert (identity.threshold, identity.criterion) == (None, "score >= 1 in every turn")

    def test_what_reaches_it_passes(self) -> None:
        assert judged(a_case("Pari"), FUZZY, threshold=8 / 9).passed is True
        assert judged(a_case("Pari"), FUZZY, threshold=0.9).passed is False


class TestTextSimilarity:
    def test_compares_the_answer_with_the_golden_one(self) -> None:
        assert judged(a_case("Pari"), {**FUZZY, "name": "n"}, threshold=0.9) == Judgement(
            score=8 / 9,
            passed=False,
            turn_scores=(8 / 9,),
            misses=("turn 1: fuzzy_match 0.89: expected 'Paris', got 'Pari'",),
            details={
                "results": [
                    {"score": 8 / 9, "passed": False, "evaluation_metric": "fuzzy_match"},
                ]
            },
        )

    def test_or_whatever_its_templates_say(self) -> None:
        grader = {**FUZZY, "input": "city", "reference": "{{ item.query }}"}
        assert judged(a_case("x", golden=()), grader).score == 8 / 15

    def test_says_that_meteor_knows_no_synonyms(self) -> None:
        details = judged(a_case("Paris"), {**FUZZY, "evaluation_metric": "meteor"}).details
        assert details["results"] == [
            {"score": 0.5, "passed": True, "evaluation_metric": "meteor", "synonyms": False}
        ]

    def test_an_answer_that_is_missing_is_an_empty_text(self) -> None:
        judgement = judged(a_case(None), FUZZY)
        assert judgement.misses == ("turn 1: fuzzy_match 0.00: expected 'Paris', got nothing",)

    def test_texts_that_take_too_long_are_not_compared(self) -> None:
        with pytest.raises(
            EvaluatorError, match="turn 1: the text has 200,001 characters; the limit is 200,000"
        ):
            judged(a_case("x" * 200_001), FUZZY)


class TestStringCheck:
    @pytest.mark.parametrize(
        ("operation", "answer", "reference", "holds"),
        [
            ("eq", "Paris", "Paris", True),
            ("eq", "paris", "Paris", False),
            ("ne", "paris", "Paris", True),
            ("ne", "Paris", "Paris", False),
            ("like", "In Paris.", "Paris", True),
            ("like", "In paris.", "Paris", False),
            ("like", "Paris", "In Paris.", False),
            ("like", "a%b", "%", True),  # no wildcard
            ("ilike", "IN PARIS.", "paris", True),
            ("ilike", "Rome", "paris", False),
        ],
    )
    def test_holds_or_does_not(
        self, operation: str, answer: str, reference: str, holds: bool
    ) -> None:
        judgement = judged(
            a_case(answer),
            {"type": "string_check", "operation": operation, "reference": reference},
        )
        assert (judgement.passed, judgement.score) == (holds, float(holds))

    @pytest.mark.parametrize(
        ("operation", "answer", "told"),
        [
            ("eq", "a", "eq: expected 'Paris', got 'a'"),
            ("ne", "Paris", "ne: expected any text except 'Paris', got 'Paris'"),
            ("like", "a", "like: expected a text that contains 'Paris', got 'a'"),
            ("ilike", "a", "ilike: expected a text that contains (ignoring case) 'Paris', got 'a'"),
        ],
    )
    def test_says_what_was_wanted(self, operation: str, answer: str, told: str) -> None:
        judgement = judged(a_case(answer), {"type": "string_check", "operation": operation})
        assert judgement.misses == (f"turn 1: {told}",)

    def test_reads_what_the_agent_called(self) -> None:
        grader = {
            **EQUAL,
            "input": "{{ sample.output_tools[0].function.name }}:"
            ' {{ item.sample["output_tools"][0].function.arguments }}',
            "reference": 'find: {"city":"Paris"}',
        }
        call = ToolCall(name="find", args={"city": "Paris"})
        assert judged(a_case("x", calls=[call]), grader).passed is True

    def test_what_was_not_recorded_cannot_be_checked(self) -> None:
        grader = {**EQUAL, "input": "{{ sample.output_tools[0].id }}"}
        with pytest.raises(EvaluatorError, match=r"^turn 1: the template uses 'sample\.output_t"):
            judged(a_case("x"), grader)

    def test_an_answer_is_no_template(self) -> None:
        answer = "{{ item.expected_response }}"
        assert judged(a_case(answer), EQUAL).passed is False


class TestMulti:
    def multi(self, formula: str) -> dict[str, object]:
        return {
            "type": "multi",
            "graders": {"similar": FUZZY, "equal": EQUAL},
            "calculate_output": formula,
        }

    def test_computes_one_score_of_several(self) -> None:
        judgement = judged(a_case("Pari"), self.multi("0.9 * similar + 0.1 * equal"), threshold=0.9)
        assert judgement.score == pytest.approx(0.8)
        assert judgement.misses == ("turn 1: score 0.80 from similar 0.89, equal 0.00",)
        assert judgement.details["results"] == [
            {
                "score": judgement.score,
                "passed": False,
                "scores": {"similar": 8 / 9, "equal": 0.0},
                "graders": {
                    "similar": {"evaluation_metric": "fuzzy_match"},
                    "equal": {"operation": "eq"},
                },
            }
        ]

    def test_takes_a_list_of_graders_with_names(self) -> None:
        graders = [{**FUZZY, "name": "a"}, {**EQUAL, "name": "b"}]
        grader = {"type": "multi", "graders": graders, "calculate_output": "min(a, b)"}
        assert judged(a_case("Pari"), grader).score == 0.0

    @pytest.mark.parametrize(
        ("formula", "why"),
        [
            (
                "similar + equal",
                "turn 1: the result of `similar [+] equal` is 2; it must be between 0",
            ),
            ("0 - equal", "is -1; it must be between 0 and 1"),
            ("similar / 0", "turn 1: cannot compute `similar / 0`: division by zero"),
        ],
    )
    def test_what_is_no_score_is_an_error(self, formula: str, why: str) -> None:
        with pytest.raises(EvaluatorError, match=why):
            judged(a_case("Paris"), self.multi(formula))

    def test_rounding_is_no_error(self) -> None:
        formula = "0.1 * similar + 0.2 * similar + 0.7 * similar + 0.00000000000001"
        assert judged(a_case("Paris"), self.multi(formula), threshold=1).score == 1.0

    def test_a_member_that_cannot_grade_is_named(self) -> None:
        deep = {**EQUAL, "input": "{{ sample.output_tools[7] }}"}
        grader = {"type": "multi", "graders": {"deep": deep}, "calculate_output": "deep"}
        with pytest.raises(EvaluatorError, match="turn 1: deep: the template uses"):
            judged(a_case("x"), grader)


class TestTurns:
    def test_all_have_to_pass_and_the_score_is_their_mean(self) -> None:
        judgement = judged(a_case("Paris", "Rome", golden=("Paris", "Oslo")), EQUAL)
        assert (judgement.passed, judgement.score) == (False, 0.5)
        assert judgement.turn_scores == (1.0, 0.0)
        assert judgement.misses == ("turn 2: eq: expected 'Oslo', got 'Rome'",)

    def test_a_mean_that_would_do_is_told_with_the_turns_that_do_not(self) -> None:
        judgement = judged(a_case("Paris", "x", golden=("Paris", "Oslo")), FUZZY, threshold=0.4)
        assert (judgement.passed, judgement.score) == (False, 0.5)
        assert judgement.reason == "1 of 2 turns failed"

    def test_without_a_golden_case_there_is_nothing_to_compare_with(self) -> None:
        one = evaluator(FUZZY)
        assert one.identity.needs_expected
        assert one.ask(a_case("Paris", golden=())) == Skip(reason="no matching eval case")

    def test_a_member_of_a_formula_may_be_what_needs_it(self) -> None:
        grader = {"type": "multi", "graders": {"a": FUZZY}, "calculate_output": "a"}
        assert evaluator(grader).identity.needs_expected

    def test_graders_that_compare_with_nothing_golden_need_none(self) -> None:
        one = evaluator({**EQUAL, "reference": "Paris"})
        assert not one.identity.needs_expected
        assert one.needs == ()
        judgement = judged(a_case("Paris", "Rome", golden=()), {**EQUAL, "reference": "Paris"})
        assert judgement.turn_scores == (1.0, 0.0)

    def test_nor_do_they_mind_how_many_golden_turns_there_are(self) -> None:
        judgement = judged(a_case("Paris", "Paris"), {**EQUAL, "reference": "Paris"})
        assert (judgement.passed, judgement.turn_scores) == (True, (1.0, 1.0))

    @pytest.mark.parametrize(
        ("case", "reason"),
        [
            (a_case("Paris", "x"), "Turn 2 of 2 is unexpected"),
            (a_case("Paris", golden=("Paris", "Oslo")), "Turn 2 of 2 is missing"),
        ],
    )
    def test_without_a_partner_they_fail_the_case(self, case: Case, reason: str) -> None:
        judgement = judged(case, EQUAL)
        assert (judgement.passed, judgement.score, judgement.misses) == (False, 1.0, ())
        assert judgement.reason == f"{reason}; only turn 1 was scored"

    def test_without_a_partner_they_are_told_before_other_misses(self) -> None:
        judgement = judged(a_case("Rome", "x"), EQUAL)
        assert [each.split(":")[0] for each in judgement.misses] == [
            "Turn 2 of 2 is unexpected; only turn 1 was scored",
            "turn 1",
        ]

    def test_without_a_partner_they_may_be_allowed(self) -> None:
        judgement = judged(a_case("Paris", "x"), EQUAL, gate={"on_turn_mismatch": "allow"})
        assert (judgement.passed, judgement.reason) == (True, None)
        assert judgement.details["unexpected_turns"] == 1


class TestDatasets:
    def test_columns_are_there_for_templates(self) -> None:
        row = DatasetRow(id="r", query="Capital?", columns={"truth": "Rome"}, place=PLACE)
        case = replace(a_case("Rome", golden=()), dataset_row=row)
        grader = {**EQUAL, "reference": "{{ item.truth }}"}
        assert judged(case, grader).passed is True

    def test_may_bring_what_is_expected_but_not_what_was_recorded(self) -> None:
        columns = {"expected_response": "Rome", "actual_response": "Rome"}
        case = replace(
            a_case("Oslo"), dataset_row=DatasetRow(id="r", query="", columns=columns, place=PLACE)
        )
        assert judged(case, EQUAL).misses == ("turn 1: eq: expected 'Rome', got 'Oslo'",)

    def test_a_column_that_is_not_there_is_an_error(self) -> None:
        grader = {**EQUAL, "reference": "{{ item.expected_respons }}"}
        with pytest.raises(EvaluatorError, match="did you mean 'expected_response'"):
            judged(a_case("x"), grader)
