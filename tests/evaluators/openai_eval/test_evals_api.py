"""`backend: remote` has a service grade, and takes its word for what passes."""

from typing import Any

import pytest

from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.evaluator import Evaluator
from agentci.model.requests import (
    EvalsService,
    GradeWithService,
    MetricResult,
    RequiredService,
    ServiceGrade,
    ServiceGrades,
    Skip,
)
from tests.evaluators.openai_eval.configs import a_case, asked, evaluator, read

URL = "https://r.openai.azure.com/openai/v1"
COSINE = {"type": "text_similarity", "evaluation_metric": "cosine"}
MESSAGES = [{"role": "user", "content": "Rate {{ item.actual_response }}"}]
SCORES = {"type": "score_model", "model": "m", "input": MESSAGES, "range": [1, 5]}


def remote(grader: object, **fields: Any) -> Evaluator:
    return evaluator(grader, **{"backend": "remote", "base_url": URL, **fields})


def graded(*grades: tuple[float, bool], **details: str) -> ServiceGrades:
    return ServiceGrades(
        grades=tuple(ServiceGrade(score=s, passed=p, details=details) for s, p in grades)
    )


def test_the_service_is_needed_and_given_all_turns_at_once() -> None:
    one = remote(COSINE, api_key_env="KEY", threshold=0.8, timeout=9)
    service = EvalsService(base_url=URL, key_variable="KEY")
    [wanted] = one.needs
    assert isinstance(wanted, RequiredService)
    assert (wanted.service, wanted.name) == (service, "e")
    assert asked(one, a_case("Rome", "Oslo", golden=("Paris", "Oslo"))) == (
        GradeWithService(
            service=service,
            name="agentci e",
            criterion={
                "type": "text_similarity",
                "name": "e",
                "evaluation_metric": "cosine",
                "input": "{{ item.actual_response }}",
                "reference": "{{ item.expected_response }}",
                "pass_threshold": 0.8,
            },
            items=(
                {
                    "query": "Which city?",
                    "ground_truth": "Paris",
                    "expected_response": "Paris",
                    "actual_response": "Rome",
                },
                {
                    "query": "Which city?",
                    "ground_truth": "Oslo",
                    "expected_response": "Oslo",
                    "actual_response": "Oslo",
                },
            ),
            timeout_seconds=9,
        ),
    )


def test_without_a_golden_case_nothing_is_asked() -> None:
    assert remote(COSINE).ask(a_case("x", golden=())) == Skip(reason="no matching eval case")


def test_what_passes_is_the_word_of_the_service() -> None:
    case = a_case("x", "y", golden=("a", "b"))
    judgement = read(remote(COSINE), case, graded((0.9, False), (0.7, True)))
    assert (judgement.passed, judgement.score) == (False, 0.8)
    assert judgement.misses == ("turn 1: the service returned score 0.9",)
    assert judgement.reason == "1 of 2 turns failed"


def test_turns_without_a_partner_fail_the_case() -> None:
    judgement = read(remote(COSINE), a_case("x", "y"), graded((1, True)))
    assert judgement.passed is False


def test_scores_are_shares_of_their_range() -> None:
    one = remote({**SCORES, "pass_threshold": 4})
    [request] = asked(one, a_case("x"))
    assert isinstance(request, GradeWithService)
    assert (request.criterion["range"], request.criterion["pass_threshold"]) == ([1, 5], 4)
    judgement = read(one, a_case("x"), graded((3, False), reason="so", label="fair"))
    assert (judgement.score, judgement.reasoning) == (0.5, "so")
    assert judgement.details["results"] == [
        {"score": 0.5, "passed": False, "reason": "so", "label": "fair"}
    ]


def test_a_score_that_is_none_is_an_error() -> None:
    with pytest.raises(
        EvaluatorError, match="the service returned score 7; it must be between 1 and 5"
    ):
        read(remote(SCORES), a_case("x"), graded((7, True)))


def test_labels_have_no_threshold() -> None:
    labels = {
        "type": "label_model",
        "model": "m",
        "name": "l",
        "input": MESSAGES,
        "labels": ["a", "b"],
        "passing_labels": ["a"],
    }
    [request] = asked(remote(labels), a_case("x"))
    assert isinstance(request, GradeWithService)
    assert request.criterion == {
        **labels,
        "input": [{"type": "message", "role": "user", "content": MESSAGES[0]["content"]}],
    }


@pytest.mark.parametrize(
    ("grader", "why"),
    [
        (
            {"type": "multi", "graders": {"a": COSINE}, "calculate_output": "a"},
            "`multi` is not allowed in evals",
        ),
        ({**SCORES, "model": None}, "it has no `model`"),
        ({**COSINE, "evaluation_metric": "cosine_tf"}, "`cosine_tf` is a metric of agentci"),
        ({**COSINE, "input": "{{ sample.output_text }}"}, "a template uses `sample`"),
        ({**COSINE, "input": "{{ item.sample.output_text }}"}, "a template uses `sample`"),
    ],
)
def test_what_no_service_has_is_refused(grader: object, why: str) -> None:
    with pytest.raises(
        InputError, match=f"`backend: remote` does not support this grader: .*{why}"
    ):
        remote(grader)


def test_the_reply_of_a_metric_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="got a MetricResult"):
        read(remote(COSINE), a_case("x"), MetricResult(score=1, turn_scores=()))
