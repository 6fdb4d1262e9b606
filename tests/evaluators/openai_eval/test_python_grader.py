"""`python` graders are called once per turn and return the score."""

import json

import pytest

from agentci._util.child_programs import GRADE_PATH
from agentci.errors import EvaluatorError, InputError
from agentci.model.program import LocalProgram, RequiredProgram
from agentci.model.requests import MetricResult, ProgramOutput, RunProgram
from tests.evaluators.openai_eval.configs import a_case, asked, evaluator, read

SOURCE = "def grade(sample, item):\n    return 1.0\n"
GRADER = {"type": "python", "source": SOURCE}


def printed(stdout: str, code: int = 0) -> ProgramOutput:
    return ProgramOutput(stdout=stdout.encode(), stderr="KeyError: 'x'", exit_code=code)


def test_each_turn_is_graded_without_network() -> None:
    first, second = asked(evaluator(GRADER, timeout=7), a_case("Paris", "Rome", expected=()))
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


def test_grade_program_is_required_for_caching() -> None:
    [needed] = evaluator(GRADER).needs
    assert isinstance(needed, RequiredProgram)
    assert (needed.program, needed.name) == (LocalProgram(path=GRADE_PATH), "e")


def test_score_is_return_value_of_grade() -> None:
    one = evaluator(GRADER, threshold=0.6)
    judgement = read(one, a_case("a", "b"), printed('{"score": 0.5}'), printed('{"score": 1}'))
    assert (judgement.passed, judgement.score, judgement.turn_scores) == (False, 0.75, (0.5, 1.0))
    assert judgement.misses == ("turn 1: `grade` returned score 0.50",)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (printed('{"score": 4}'), "turn 1: `grade` returned score 4; it must be between 0 and 1"),
        (
            printed('{"score": -0.1}'),
            "turn 1: `grade` returned score -0.1; it must be between 0 and 1",
        ),
        (printed("", 1), "turn 1: `grade` exited with code 1: KeyError: 'x'"),
    ],
)
def test_invalid_score_is_an_error(response: ProgramOutput, why: str) -> None:
    with pytest.raises(EvaluatorError, match=why):
        read(evaluator(GRADER), a_case("a"), response)


def test_python_grader_can_be_part_of_multi_grader() -> None:
    grader = {
        "type": "multi",
        "graders": {
            "same": {"type": "string_check", "operation": "eq"},
            "mine": GRADER,
            "mine_too": GRADER,
        },
        "calculate_output": "0.5 * same + 0.3 * mine + 0.2 * mine_too",
    }
    replies = [printed(json.dumps({"score": score})) for score in (1, 0, 0, 1)]
    judgement = read(evaluator(grader), a_case("Paris", "x", expected=("Paris", "Paris")), *replies)
    assert judgement.turn_scores == pytest.approx((0.8, 0.2))


def test_unexpected_response_type_is_a_type_error() -> None:
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
def test_invalid_python_source_is_rejected(source: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        evaluator({"type": "python", "source": source})
