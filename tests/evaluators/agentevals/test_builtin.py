"""Built-in evaluators compare a run with its eval case by score and number of turns."""

import pytest

from agentci.evaluators.agentevals.builtin import BuiltinEvaluator, make_builtin_evaluator
from agentci.evaluators.metrics import METRICS
from agentci.model.case import Case, EvalCase
from agentci.model.requests import (
    ComputeMetric,
    EvaluatorIdentity,
    Judgement,
    MetricResult,
    ProgramOutput,
    Skip,
)
from agentci.model.trace import ToolCall, Trace, Turn
from agentci.model.values import Json, Place, replace

PLACE = Place(file="eval.yaml", line=3)
TURN = Turn(id="t", user_text="q", answer_parts=("yes",))


def evaluator(
    *, threshold: float | None = 0.5, turn_mismatch_fails: bool = True
) -> BuiltinEvaluator:
    return BuiltinEvaluator(
        identity=EvaluatorIdentity(
            name="answers",
            type="builtin",
            criterion="score >= 0.5",
            threshold=threshold,
            required=True,
            place=PLACE,
        ),
        metric="response_match_score",
        options={"some": "option"},
        turn_mismatch_fails=turn_mismatch_fails,
    )


def a_case(*expected: Turn, has_expected: bool = True, because: str | None = None) -> Case:
    return Case(
        id="c",
        trace=Trace(id="x", key="x", turns=(TURN, TURN), place=PLACE),
        expected=EvalCase(id="c", turns=expected, place=PLACE) if has_expected else None,
        unmatched_reason=because,
    )


def test_request_contains_all_turns_of_both_sides() -> None:
    assert evaluator().ask(a_case(TURN)) == ComputeMetric(
        metric="response_match_score",
        actual=(TURN, TURN),
        expected=(TURN,),
        options={"some": "option"},
    )


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        pytest.param(
            a_case(has_expected=False, because="ambiguous eval case"),
            "ambiguous eval case",
            id="no eval case: reason of the matcher",
        ),
        pytest.param(a_case(), "the eval case has no turns", id="eval case without turns"),
    ],
)
def test_case_without_expected_turns_is_skipped(case: Case, reason: str) -> None:
    assert evaluator().ask(case) == Skip(reason=reason)


@pytest.mark.parametrize(
    ("score", "threshold", "passed"),
    [
        pytest.param(0.5, 0.5, True, id="score at the threshold passes"),
        pytest.param(0.4999, 0.5, False, id="score just below the threshold fails"),
        pytest.param(0.0, 0.0, True, id="threshold 0 passes anything"),
        pytest.param(0.5, None, True, id="default threshold is 0.5"),
        pytest.param(0.4, None, False, id="score below the default threshold fails"),
    ],
)
def test_score_is_compared_with_threshold(
    score: float, threshold: float | None, passed: bool
) -> None:
    response = MetricResult(
        score=score, turn_scores=(score,), misses=("turn 1: no",), details={"more": 1}
    )
    assert evaluator(threshold=threshold).read(response) == Judgement(
        score=score,
        passed=passed,
        turn_scores=(score,),
        misses=("turn 1: no",),
        details={"more": 1},
    )


def test_lowest_turn_counts_if_asked() -> None:
    response = MetricResult(score=0.75, turn_scores=(1.0, None, 0.25, 1.0))
    judgement = replace(evaluator(), turn_score="min").read(response)
    assert (judgement.score, judgement.passed) == (0.25, False)
    assert evaluator().read(response).score == 0.75


@pytest.mark.parametrize(
    ("actual", "expected", "miss"),
    [
        pytest.param(
            2, 3, "Turn 3 of 3 is missing; only turns 1 to 2 were scored", id="missing turn"
        ),
        pytest.param(
            3,
            1,
            "Turns 2 to 3 of 3 are unexpected; only turn 1 was scored",
            id="unexpected turns",
        ),
    ],
)
@pytest.mark.parametrize("metric", ["response_match_score", "tool_trajectory_avg_score"])
class TestTurnMismatch:
    def response(self, metric: str, actual: int, expected: int) -> MetricResult:
        return METRICS[metric].measure([TURN] * actual, [TURN] * expected, {})

    def test_turn_mismatch_fails_case_and_keeps_score(
        self, metric: str, actual: int, expected: int, miss: str
    ) -> None:
        judgement = evaluator().read(self.response(metric, actual, expected))
        assert (judgement.passed, judgement.score) == (False, 1.0)
        assert (judgement.reason, judgement.misses) == (miss, ())

    def test_turn_mismatch_can_be_allowed(
        self, metric: str, actual: int, expected: int, miss: str
    ) -> None:
        response = self.response(metric, actual, expected)
        judgement = evaluator(turn_mismatch_fails=False).read(response)
        assert (judgement.passed, judgement.score) == (True, 1.0)
        assert miss not in (judgement.reason, *judgement.misses)


def test_turn_mismatch_is_listed_after_other_misses() -> None:
    response = METRICS["response_match_score"].measure(
        [TURN], [Turn(id="", user_text="q", answer_parts=("no",)), TURN], {}
    )
    assert [miss.split(":")[0] for miss in evaluator().read(response).misses] == [
        "turn 1",
        "Turn 2 of 2 is missing; only turn 1 was scored",
    ]


def test_unexpected_response_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="got a ProgramOutput"):
        evaluator().read(ProgramOutput(stdout=b"", stderr="", exit_code=0))


@pytest.mark.parametrize(
    ("ignore_args", "args", "score"),
    [(True, {"id": 2}, 1.0), (True, None, 1.0), (False, {"id": 2}, 0.0), (False, {"id": 1}, 1.0)],
)
@pytest.mark.parametrize("match_type", ["EXACT", "IN_ORDER", "ANY_ORDER"])
def test_ignore_args_compares_only_names(
    match_type: str, ignore_args: bool, args: Json, score: float
) -> None:
    def turn(name: str, value: Json) -> Turn:
        return Turn(id="t", user_text="q", tool_calls=(ToolCall(name=name, args=value),))

    metric = make_builtin_evaluator("tool_trajectory_avg_score", place=PLACE, match_type=match_type)
    metric = replace(metric, ignore_args=ignore_args)
    for name, expected in (("find", score), ("other", 0.0)):
        run = Trace(id="x", key="x", turns=(turn(name, args),), place=PLACE)
        request = metric.ask(
            Case(
                id="c",
                trace=run,
                expected=EvalCase(id="c", turns=(turn("find", {"id": 1}),), place=PLACE),
            )
        )
        assert isinstance(request, ComputeMetric)
        found = METRICS[request.metric].measure(request.actual, request.expected, request.options)
        assert found.score == expected


def test_definition_has_ignore_args_only_if_set() -> None:
    metric = make_builtin_evaluator("tool_trajectory_avg_score", place=PLACE)
    assert "ignore_args" not in metric.definition
    assert replace(metric, ignore_args=True).definition["ignore_args"] is True
