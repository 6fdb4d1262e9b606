"""Grader functions: their input, and the judgement for what they return."""

import json

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.pytest_agent_evals import GraderEvaluator
from agentci.model.case import Case
from agentci.model.program import LocalProgram, RequiredProgram
from agentci.model.requests import (
    EvaluatorIdentity,
    Judgement,
    MetricResult,
    ProgramOutput,
    RunProgram,
)
from agentci.model.trace import Trace, Turn
from agentci.model.values import Place, replace

PLACE = Place(file="agentci.yaml", line=3)
PROGRAM = LocalProgram(path="/evals/graders.py")
RUN = RunProgram(program=PROGRAM, timeout_seconds=120, function="is_short")
GRADER = GraderEvaluator(
    identity=EvaluatorIdentity(
        name="short",
        type="grader",
        criterion="score >= 0.5",
        threshold=0.5,
        required=True,
        place=PLACE,
    ),
    definition={},
    function="is_short",
    run=RUN,
    program_place=PLACE,
)
TURN = Turn(id="1", user_text="Weather?", answer_parts=("Sunny.",))
CASE = Case(id="c", trace=Trace(id="t", key="t", turns=(TURN,), place=PLACE))


def _read(printed: str, *, exit_code: int = 0, stderr: str = "") -> Judgement:
    return GRADER.read(ProgramOutput(stdout=printed.encode(), stderr=stderr, exit_code=exit_code))


def test_function_is_called_with_case() -> None:
    asked = GRADER.ask(CASE)
    assert replace(asked, stdin="") == RUN
    payload = json.loads(asked.stdin)
    assert (payload["function"], payload["sample"]["output_text"]) == ("is_short", "Sunny.")
    assert payload["item"]["query"] == "Weather?"
    assert GRADER.needs == (RequiredProgram(program=PROGRAM, name="short", place=PLACE),)


@pytest.mark.parametrize(("score", "passed"), [(0.5, True), (1, True), (0.49, False), (0, False)])
def test_score_at_threshold_passes(score: float, passed: bool) -> None:
    judgement = _read(json.dumps({"score": score}))
    assert judgement == Judgement(score=score, passed=passed)


@pytest.mark.parametrize(
    ("returned", "reasoning"),
    [
        ({"reason": "kind"}, "kind"),
        ({"reasoning": "kind"}, "kind"),
        ({"reason": " ", "reasoning": "kind"}, "kind"),
        ({"reason": 3}, None),
        ({"words": 3}, None),
    ],
)
def test_reasoning_and_details_are_kept(returned: dict[str, object], reasoning: str | None) -> None:
    judgement = _read(json.dumps({"score": 1, **returned}))
    assert (judgement.reasoning, judgement.details) == (reasoning, returned)


def test_huge_details_are_left_out() -> None:
    judgement = _read(json.dumps({"score": 1, "reason": "kind", "text": "x" * 300_000}))
    assert judgement.reasoning == "kind"
    assert set(judgement.details) == {"reason", "left_out"}


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("", "printed nothing on stdout; print a result such as"),
        ('{"score": NaN}', "returned an invalid result: `NaN` is not a JSON number"),
        ("{}", "printed a result without a score"),
        ('{"score": true}', "printed a result without a score"),
        ('{"score": 1.5}', "returned score 1.5; it must be between 0 and 1"),
        ('{"score": -1}', "returned score -1; it must be between 0 and 1"),
    ],
)
def test_missing_or_invalid_score_is_an_error(printed: str, reason: str) -> None:
    with pytest.raises(EvaluatorError) as error:
        _read(printed)
    assert str(error.value).startswith(f"Evaluator `short` {reason}")


def test_exception_in_grader_is_an_error() -> None:
    with pytest.raises(EvaluatorError, match="exited with code 1: KeyError: 'price'"):
        _read("", exit_code=1, stderr="KeyError: 'price'\n")


def test_unexpected_response_type_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        GRADER.read(MetricResult(score=1, turn_scores=()))
