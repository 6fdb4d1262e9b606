"""OpenAI graders of a config score every turn."""

from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.model.case import Case, DatasetRow
from agentci.model.requests import Judgement, Skip
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
    def test_threshold_is_taken_from_entry_or_grader(
        self, fields: dict[str, Any], own: dict[str, Any], threshold: float
    ) -> None:
        identity = evaluator({**FUZZY, **own}, **fields).identity
        assert identity.threshold == threshold
        assert identity.criterion == f"score >= {threshold:g} in every turn"

    def test_string_check_has_no_threshold(self) -> None:
        identity = evaluator(EQUAL, threshold=0.3).identity
        assert (identity.threshold, identity.criterion) == (None, "score >= 1 in every turn")

    def test_score_equal_to_threshold_passes(self) -> None:
        assert judged(a_case("Pari"), FUZZY, threshold=8 / 9).passed is True
        assert judged(a_case("Pari"), FUZZY, threshold=0.9).passed is False


class TestTextSimilarity:
    def test_answer_is_compared_with_expected_answer(self) -> None:
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

    def test_templates_select_compared_texts(self) -> None:
        grader = {**FUZZY, "input": "city", "reference": "{{ item.query }}"}
        assert judged(a_case("x", expected=()), grader).score == 8 / 15

    def test_meteor_details_report_missing_synonyms(self) -> None:
        details = judged(a_case("Paris"), {**FUZZY, "evaluation_metric": "meteor"}).details
        assert details["results"] == [
            {"score": 0.5, "passed": True, "evaluation_metric": "meteor", "synonyms": False}
        ]

    def test_missing_answer_is_compared_as_empty_text(self) -> None:
        judgement = judged(a_case(None), FUZZY)
        assert judgement.misses == ("turn 1: fuzzy_match 0.00: expected 'Paris', got nothing",)

    def test_too_long_text_is_an_error(self) -> None:
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
    def test_operation_passes_or_fails(
        self, operation: str, answer: str, reference: str, holds: bool
    ) -> None:
        judgement = judged(
            a_case(answer),
            {"type": "string_check", "operation": operation, "reference": reference},
        )
        assert (judgement.passed, judgement.score) == (holds, float(holds))

    @pytest.mark.parametrize(
        ("operation", "answer", "miss"),
        [
            ("eq", "a", "eq: expected 'Paris', got 'a'"),
            ("ne", "Paris", "ne: expected any text except 'Paris', got 'Paris'"),
            ("like", "a", "like: expected a text that contains 'Paris', got 'a'"),
            ("ilike", "a", "ilike: expected a text that contains (ignoring case) 'Paris', got 'a'"),
        ],
    )
    def test_miss_describes_expected_text(self, operation: str, answer: str, miss: str) -> None:
        judgement = judged(a_case(answer), {"type": "string_check", "operation": operation})
        assert judgement.misses == (f"turn 1: {miss}",)

    def test_template_can_read_tool_calls(self) -> None:
        grader = {
            **EQUAL,
            "input": "{{ sample.output_tools[0].function.name }}:"
            ' {{ item.sample["output_tools"][0].function.arguments }}',
            "reference": 'find: {"city":"Paris"}',
        }
        call = ToolCall(name="find", args={"city": "Paris"})
        assert judged(a_case("x", calls=[call]), grader).passed is True

    def test_template_variable_without_value_is_an_error(self) -> None:
        grader = {**EQUAL, "input": "{{ sample.output_tools[0].id }}"}
        with pytest.raises(EvaluatorError, match=r"^turn 1: the template uses 'sample\.output_t"):
            judged(a_case("x"), grader)

    def test_answer_is_not_expanded_as_template(self) -> None:
        answer = "{{ item.expected_response }}"
        assert judged(a_case(answer), EQUAL).passed is False


class TestMulti:
    def multi(self, formula: str) -> dict[str, object]:
        return {
            "type": "multi",
            "graders": {"similar": FUZZY, "equal": EQUAL},
            "calculate_output": formula,
        }

    def test_formula_combines_grader_scores(self) -> None:
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

    def test_graders_can_be_a_list_with_names(self) -> None:
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
    def test_invalid_formula_result_is_an_error(self, formula: str, why: str) -> None:
        with pytest.raises(EvaluatorError, match=why):
            judged(a_case("Paris"), self.multi(formula))

    def test_rounding_error_above_one_is_accepted(self) -> None:
        formula = "0.1 * similar + 0.2 * similar + 0.7 * similar + 0.00000000000001"
        assert judged(a_case("Paris"), self.multi(formula), threshold=1).score == 1.0

    def test_failing_member_grader_is_named(self) -> None:
        deep = {**EQUAL, "input": "{{ sample.output_tools[7] }}"}
        grader = {"type": "multi", "graders": {"deep": deep}, "calculate_output": "deep"}
        with pytest.raises(EvaluatorError, match="turn 1: deep: the template uses"):
            judged(a_case("x"), grader)


class TestTurns:
    def test_one_failed_turn_fails_case_with_mean_score(self) -> None:
        judgement = judged(a_case("Paris", "Rome", expected=("Paris", "Oslo")), EQUAL)
        assert (judgement.passed, judgement.score) == (False, 0.5)
        assert judgement.turn_scores == (1.0, 0.0)
        assert judgement.misses == ("turn 2: eq: expected 'Oslo', got 'Rome'",)

    def test_failed_turn_is_reported_despite_passing_mean(self) -> None:
        judgement = judged(a_case("Paris", "x", expected=("Paris", "Oslo")), FUZZY, threshold=0.4)
        assert (judgement.passed, judgement.score) == (False, 0.5)
        assert judgement.reason == "1 of 2 turns failed"

    def test_missing_eval_case_is_skipped(self) -> None:
        one = evaluator(FUZZY)
        assert one.identity.needs_expected
        assert one.ask(a_case("Paris", expected=())) == Skip(reason="no matching eval case")

    def test_multi_grader_member_can_require_eval_case(self) -> None:
        grader = {"type": "multi", "graders": {"a": FUZZY}, "calculate_output": "a"}
        assert evaluator(grader).identity.needs_expected

    def test_fixed_reference_needs_no_eval_case(self) -> None:
        one = evaluator({**EQUAL, "reference": "Paris"})
        assert not one.identity.needs_expected
        assert one.needs == ()
        judgement = judged(a_case("Paris", "Rome", expected=()), {**EQUAL, "reference": "Paris"})
        assert judgement.turn_scores == (1.0, 0.0)

    def test_fixed_reference_ignores_expected_turn_count(self) -> None:
        judgement = judged(a_case("Paris", "Paris"), {**EQUAL, "reference": "Paris"})
        assert (judgement.passed, judgement.turn_scores) == (True, (1.0, 1.0))

    @pytest.mark.parametrize(
        ("case", "reason"),
        [
            (a_case("Paris", "x"), "Turn 2 of 2 is unexpected"),
            (a_case("Paris", expected=("Paris", "Oslo")), "Turn 2 of 2 is missing"),
        ],
    )
    def test_missing_or_unexpected_turn_fails_case(self, case: Case, reason: str) -> None:
        judgement = judged(case, EQUAL)
        assert (judgement.passed, judgement.score, judgement.misses) == (False, 1.0, ())
        assert judgement.reason == f"{reason}; only turn 1 was scored"

    def test_turn_mismatch_is_listed_after_other_misses(self) -> None:
        judgement = judged(a_case("Rome", "x"), EQUAL)
        assert [each.split(":")[0] for each in judgement.misses] == [
            "turn 1",
            "Turn 2 of 2 is unexpected; only turn 1 was scored",
        ]

    def test_turn_mismatch_can_be_allowed(self) -> None:
        judgement = judged(a_case("Paris", "x"), EQUAL, gate={"on_turn_mismatch": "allow"})
        assert (judgement.passed, judgement.reason) == (True, None)
        assert judgement.details["unexpected_turns"] == 1


class TestDatasets:
    def test_dataset_columns_are_template_variables(self) -> None:
        row = DatasetRow(id="r", query="Capital?", columns={"truth": "Rome"}, place=PLACE)
        case = replace(a_case("Rome", expected=()), dataset_row=row)
        grader = {**EQUAL, "reference": "{{ item.truth }}"}
        assert judged(case, grader).passed is True

    def test_dataset_column_cannot_override_actual_response(self) -> None:
        columns = {"expected_response": "Rome", "actual_response": "Rome"}
        case = replace(
            a_case("Oslo"), dataset_row=DatasetRow(id="r", query="", columns=columns, place=PLACE)
        )
        assert judged(case, EQUAL).misses == ("turn 1: eq: expected 'Rome', got 'Oslo'",)

    def test_unknown_column_is_an_error(self) -> None:
        grader = {**EQUAL, "reference": "{{ item.expected_respons }}"}
        with pytest.raises(EvaluatorError, match="did you mean 'expected_response'"):
            judged(a_case("x"), grader)
