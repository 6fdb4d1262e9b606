"""`python` graders are called once a turn, and what they return is the score."""

import json

import pytest

from agentci._util.child_programs import GRADE_PATH
from agentci.errors import EvaluatorError, InputError
from agentci.model.program import LocalProgram, RequiredProgram
from agentci.model.requests import MetricResult, ProgramOutput, RunProgram
from tests.evaluators.openai_eval.configs import a_case, asked, evaluator, read

SOURCE = "def grade(sample, item):\n    return 1.0\n"
GRADER = {"type": "python", "source": SOURCE}


def said(stdout: str, code: int = 0) -> ProgramOutput:
    return ProgramOutput(stdout=stdout.encode(), stderr="KeyError: 'x'", exit_code=code)


def test_each_turn_is_a_call_without_network() -> None:
    first, second = asked(evaluator(GRADER, timeout=7), a_case("Paris", "Rome", golden=()))
    assert isinstance(first, RunProgram)
    assert isinstance(second, RunProgram)
    assert first.program == LocalProgram(path=GRADE_PATH)
    assert (first.timeout_seconds, first.network, first.memory_mb) == (7, False, 2048)
    given = json.loads(second.stdin)
    assert (given["function"], given["source"]) == ("grade", SOURCE)
    assert given["sample"]["output_text"] == "Rome"
    assert given["item"]["actual_response"] == "Rome"
    assert given["item"]["query"] == "Which city?"
    assert given["item"]["sample"] == given["sample"]


def test_what_calls_it_is_needed_so_that_replies_are_kept() -> None:
    [wanted] = evaluator(GRADER).needs
    assert isinstance(wanted, RequiredProgram)
    assert (wanted.program, wanted.name) == (LocalProgram(path=GRADE_PATH), "e")


def test_the_score_is_what_it_returns() -> None:
    one = evaluator(GRADER, threshold=0.6)
    judgement = read(one, a_case("a", "b"), said('{"score": 0.5}'), said('{"score": 1}'))
    assert (judgement.passed, judgement.score, judgement.turn_scores) == (False, 0.75, (0.5, 1.0))
    assert judgement.misses == ("turn 1: `grade` returned score 0.50",)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (said('{"score": 4}'), "turn 1: `grade` returned score 4; it must be between 0 and 1"),
        (
            said('{"score": -0.1}'),
            "turn 1: `grade` returned score -0.1; it must be between 0 and 1",
        ),
        (said("", 1), "turn 1: `grade` exited with code 1: KeyError: 'x'"),
    ],
)
def test_what_is_no_score_is_an_error(response: ProgramOutput, why: str) -> None:
    with pytest.raises(EvaluatorError, match=why):
        read(evaluator(GRADER), a_case("a"), response)


def test_a_formula_may_have_it_beside_others() -> None:
    grader = {
        "type": "multi",
        "graders": {
            "same": {"type": "string_check", "operation": "eq"},
            "mine": GRADER,
            "mine_too": GRADER,
        },
        "calculate_output": "0.5 * same + 0.3 * mine + 0.2 * mine_too",
    }
    replies = [said(json.dumps({"score": score})) for score in (1, 0, 0, 1)]
    judgement = read(evaluator(grader), a_case("Paris", "x", golden=("Paris", "Paris")), *replies)
    assert judgement.turn_scores == pytest.approx((0.8, 0.2))


def test_the_reply_of_a_metric_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="got a MetricResult"):
        read(evaluator(GRADER), a_case("a"), MetricResult(score=1, turn_scores=()))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def grade(sample, item)\n  return 1", "invalid Python source: line 1: expected ':'"),
        ("-" * 100_000 + "1", "invalid Python source"),
        ("#" * 300_000, "the source is larger than 262,144 bytes"),
    ],
)
def test_what_is_no_python_is_told_before_anything_is_judged(source: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        evaluator({"type": "python", "source": source})
