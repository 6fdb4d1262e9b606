"""A built-in evaluator compares with the golden case, and judges by score and number of turns."""

import pytest

from agentci.evaluators.agentevals.builtin import BuiltinEvaluator
from agentci.evaluators.metrics.registry import METRICS
from agentci.model.case import Case, EvalCase
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.problem import Place
from agentci.model.requests import ComputeMetric, MetricResult, ProgramOutput, Skip
from agentci.model.trace import Trace, Turn

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


def a_case(*golden: Turn, has_golden: bool = True, because: str | None = None) -> Case:
    return Case(
        id="c",
        trace=Trace(id="x", key="x", turns=(TURN, TURN), place=PLACE),
        expected=EvalCase(id="c", turns=golden, place=PLACE) if has_golden else None,
        unmatched_reason=because,
    )


def test_asks_for_all_turns_of_both_sides() -> None:
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
            a_case(has_golden=False, because="ambiguous eval case"),
            "ambiguous eval case",
            id="no golden case: the reason of the choice",
        ),
        pytest.param(a_case(), "the eval case has no turns", id="a golden case without turns"),
    ],
)
def test_skips_what_it_cannot_compare(case: Case, reason: str) -> None:
    assert evaluator().ask(case) == Skip(reason=reason)


@pytest.mark.parametrize(
    ("score", "threshold", "passed"),
    [
        pytest.param(0.5, 0.5, True, id="the threshold is enough"),
        pytest.param(0.4999, 0.5, False, id="a little less is not"),
        pytest.param(0.0, 0.0, True, id="threshold 0 passes anything"),
        pytest.param(0.5, None, True, id="0.5 where none is known"),
        pytest.param(0.4, None, False, id="and nothing less"),
    ],
)
def test_judges_by_the_score(score: float, threshold: float | None, passed: bool) -> None:
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


@pytest.mark.parametrize(
    ("actual", "golden", "miss"),
    [
        pytest.param(2, 3, "Turn 3 of 3 is missing; only turns 1 to 2 were scored", id="missing"),
        pytest.param(
            3,
            1,
            "Turns 2 to 3 of 3 are unexpected; only turn 1 was scored",
            id="unexpected",
        ),
    ],
)
@pytest.mark.parametrize("metric", ["response_match_score", "tool_trajectory_avg_score"])
class TestTurnsWithoutAPartner:
    def response(self, metric: str, actual: int, golden: int) -> MetricResult:
        return METRICS[metric].measure([TURN] * actual, [TURN] * golden, {})

    def test_fail_the_case_and_leave_the_score_as_it_is(
        self, metric: str, actual: int, golden: int, miss: str
    ) -> None:
        judgement = evaluator().read(self.response(metric, actual, golden))
        assert (judgement.passed, judgement.score) == (False, 1.0)
        assert (judgement.reason, judgement.misses) == (miss, ())

    def test_may_be_allowed(self, metric: str, actual: int, golden: int, miss: str) -> None:
        response = self.response(metric, actual, golden)
        judgement = evaluator(turn_mismatch_fails=False).read(response)
        assert (judgement.passed, judgement.score) == (True, 1.0)
        assert miss not in (judgement.reason, *judgement.misses)


def test_a_mismatch_in_turns_is_told_before_what_else_was_missed() -> None:
    response = METRICS["response_match_score"].measure(
        [TURN], [Turn(id="", user_text="q", answer_parts=("no",)), TURN], {}
    )
    assert [miss.split(":")[0] for miss in evaluator().read(response).misses] == [
        "Turn 2 of 2 is missing; only turn 1 was scored",
        "turn 1",
    ]


def test_the_reply_of_a_program_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="got a ProgramOutput"):
        evaluator().read(ProgramOutput(stdout=b"", stderr="", exit_code=0))
