"""Metrics computed by Google's ADK: its input, and the judgement for its results."""

import json
from typing import Any

import pytest

from agentci._util.child_programs import ADK_MEASURE_PATH
from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.vertex_metric import HostedEvaluator, make_hosted_evaluator
from agentci.model.case import Case, EvalCase
from agentci.model.program import LocalProgram
from agentci.model.requests import (
    Compose,
    ConstantJudgement,
    Judgement,
    ProgramOutput,
    RunProgram,
    Skip,
)
from agentci.model.trace import ToolCall, ToolResponse, Trace, Turn
from agentci.model.values import Place, replace

PLACE = Place(file="eval.yaml", line=3)
TURN = Turn(id="t", user_text="q", answer_parts=("yes", "no"))
SAFETY, COHERENCE, SUCCESS = (
    *("safety_v1", "response_evaluation_score"),
    "multi_turn_task_success_v1",
)


def evaluator(metric: str = SAFETY, **more: Any) -> HostedEvaluator:
    return make_hosted_evaluator(metric, place=PLACE, **more)


def a_case(*turns: Turn, expected: int | None = None) -> Case:
    return Case(
        id="c",
        trace=Trace(id="x", key="x", turns=turns, place=PLACE),
        expected=None
        if expected is None
        else EvalCase(id="c", turns=(TURN,) * expected, place=PLACE),
        unmatched_reason="no matching eval case" if expected is None else None,
    )


def asked(evaluator: HostedEvaluator, case: Case) -> RunProgram:
    request = evaluator.ask(case)
    assert isinstance(request, Compose)
    [(_, run)] = request.parts
    assert isinstance(run, RunProgram)
    return run


def turn(score: float | None, **notes: tuple[float | None, str | None]) -> dict[str, Any]:
    return {
        "score": score,
        "status": "NOT_EVALUATED" if score is None else "PASSED",
        "notes": [{"id": k, "score": s, "rationale": why} for k, (s, why) in notes.items()],
    }


def result(score: float | None, *turns: dict[str, Any]) -> str:
    return json.dumps({**turn(score), "turns": turns})


def judged(evaluator: HostedEvaluator, case: Case, stdout: str, exit_code: int = 0) -> Judgement:
    request = evaluator.ask(case)
    assert isinstance(request, Compose)
    response = ProgramOutput(stdout=stdout.encode(), stderr="Killed", exit_code=exit_code)
    settled = request.then((response,))
    assert isinstance(settled, ConstantJudgement)
    return evaluator.read(settled)


class TestRequest:
    def test_request_has_network_google_variables_and_no_cache(self) -> None:
        run = asked(evaluator(), a_case(TURN))
        assert (run.program, evaluator().needs) == (LocalProgram(path=ADK_MEASURE_PATH), ())
        assert (run.network, run.cached, run.timeout_seconds) == (True, False, 900)
        assert run.key_file == "GOOGLE_APPLICATION_CREDENTIALS"
        assert set(run.own_variables) == {
            *("GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GENAI_USE_VERTEXAI"),
            *("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_PROJECT"),
        }

    def test_metric_without_reference_gets_all_turns(self) -> None:
        given = json.loads(asked(evaluator(threshold=0.75), a_case(TURN, TURN, expected=1)).stdin)
        assert (given["metric"], given["threshold"]) == (SAFETY, 0.75)
        assert (len(given["actual"]), given["expected"]) == (2, None)

    def test_metric_with_reference_gets_matched_turns(self) -> None:
        given = json.loads(asked(evaluator(COHERENCE), a_case(TURN, TURN, expected=1)).stdin)
        assert (len(given["actual"]), len(given["expected"])) == (1, 1)
        assert given["threshold"] == 3  # the middle of the range 1 to 5

    @pytest.mark.parametrize(
        ("expected", "why"), [(None, "no matching eval case"), (0, "the eval case has no turns")]
    )
    def test_case_without_expected_turns_is_skipped(self, expected: int | None, why: str) -> None:
        assert evaluator(COHERENCE).ask(a_case(TURN, expected=expected)) == Skip(reason=why)

    def test_trace_without_turns_is_an_error(self) -> None:
        with pytest.raises(EvaluatorError, match="no turns found"):
            evaluator().ask(a_case())

    def test_tool_response_follows_its_call(self) -> None:
        calls = (ToolCall(name="f", args={"a": 1}, id="1"), ToolCall(name="g", id="2"))
        responses = (
            ToolResponse(name="h", output=["x"], id="3"),
            ToolResponse(name="g", output="gone", id="2", call_index=1, failed=True),
            ToolResponse(name="f", output={"b": 2}, id="1", call_index=0),
        )
        one = Turn(id="t", user_text="q", tool_calls=calls, tool_responses=responses)
        [given] = json.loads(asked(evaluator(), a_case(one)).stdin)["actual"]
        contents = [each["content"] for each in given["intermediate_data"]["invocation_events"]]
        parts = [(each["role"], *each["parts"]) for each in contents]
        assert parts == [
            ("model", {"function_call": {"id": "1", "name": "f", "args": {"a": 1}}}),
            ("user", {"function_response": {"id": "1", "name": "f", "response": {"b": 2}}}),
            ("model", {"function_call": {"id": "2", "name": "g"}}),
            ("user", _answer("2", "g", {"error": "gone"})),
            ("user", _answer("3", "h", {"result": ["x"]})),
        ]
        assert given["final_response"] is None

    def test_request_contains_turn_texts(self) -> None:
        [given] = json.loads(asked(evaluator(), a_case(TURN)).stdin)["actual"]
        assert given == {
            "invocation_id": "t",
            "user_content": {"role": "user", "parts": [{"text": "q"}]},
            "final_response": {"role": "model", "parts": [{"text": "yes"}, {"text": "no"}]},
            "intermediate_data": {"invocation_events": []},
        }


def _answer(id_: str, name: str, response: Any) -> Any:
    return {"function_response": {"id": id_, "name": name, "response": response}}


class TestJudgement:
    def test_judgement_has_overall_and_turn_scores(self) -> None:
        printed = result(0.5, turn(1.0), turn(0.0, explanation=(None, "it does harm")))
        judgement = judged(evaluator(threshold=0.6), a_case(TURN, TURN), printed)
        assert (judgement.score, judgement.passed) == (0.5, False)
        assert judgement.turn_scores == (1.0, 0.0)
        assert judgement.misses == ("turn 2: it does harm",)
        lowest = replace(evaluator(threshold=0.1), turn_score="min")
        assert judged(lowest, a_case(TURN, TURN), printed).score == 0.0

    def test_multi_turn_metric_reports_unfulfilled_rubrics(self) -> None:
        notes = {"asks": (0.0, "it did not"), "ends": (0.0, None), "greets": (1.0, "it did")}
        printed = result(0.5, turn(None), turn(0.5, **notes, explanation=(None, "well")))
        judgement = judged(evaluator(SUCCESS), a_case(TURN, TURN), printed)
        assert (judgement.score, judgement.passed, judgement.turn_scores) == (0.5, True, ())
        assert judgement.misses == ("asks: it did not", "ends")

    @pytest.mark.parametrize(("score", "share", "passed"), [(1, 0, False), (3, 0.5, True)])
    def test_one_to_five_score_is_normalized(
        self, score: float, share: float, *, passed: bool
    ) -> None:
        judgement = judged(
            evaluator(COHERENCE), a_case(TURN, expected=1), result(score, turn(score))
        )
        assert (judgement.score, judgement.passed) == (share, passed)
        assert judgement.turn_scores == (share,)

    def test_missing_turn_fails_case_unless_allowed(self) -> None:
        case, printed = a_case(TURN, expected=2), result(5, turn(5))
        judgement = judged(evaluator(COHERENCE), case, printed)
        assert (judgement.score, judgement.passed) == (1.0, False)
        assert judgement.details == {"missing_turns": 1, "unexpected_turns": 0}
        assert judged(evaluator(COHERENCE, turn_mismatch_fails=False), case, printed).passed


class TestErrors:
    @pytest.mark.parametrize(
        ("printed", "why"),
        [
            (
                result(1.0, turn(1.0), turn(None)),
                "turn 2: Google's ADK returned no score: no reason reported",
            ),
            (
                result(1.0, turn(1.0), turn(None, error=(None, "too busy"))),
                "turn 2: Google's ADK returned no score: too busy",
            ),
            (
                result(0.5, turn(1.0), {**turn(0.0), "status": "NOT_EVALUATED"}),
                "turn 2: Google's ADK returned no score",
            ),
            (result(None, turn(1.0), turn(1.0)), "^Google's ADK returned no score"),
            (result(0.5, turn(1.0)), "Google's ADK scored 1 of 2 turns"),
            (
                result(3.0, turn(1.0), turn(5.0)),
                "turn 2: Google's ADK returned score 5; it must be between 0 and 1",
            ),
            ('{"error": "ValueError: no project"}', "Google's ADK failed: ValueError: no project$"),
            (
                '{"error": "ModuleNotFoundError: no pandas"}',
                r'no pandas; install it: pip install "google-adk\[eval\]>=2.13"',
            ),
            ("", "invalid result of Google's ADK: Invalid JSON"),
            ('{"score": NaN}', "invalid result of Google's ADK at `score`"),
            ('{"turns": [{"score": "x"}]}', r"ADK at `turns\.0\.score`"),
        ],
    )
    def test_invalid_result_is_an_error(self, printed: str, why: str) -> None:
        with pytest.raises(EvaluatorError, match=why):
            judged(evaluator(), a_case(TURN, TURN), printed)

    def test_multi_turn_metric_without_score_is_an_error(self) -> None:
        printed = result(None, turn(None), turn(None, error=(None, "too busy")))
        with pytest.raises(EvaluatorError, match=r"^Google's ADK returned no score: too busy"):
            judged(evaluator(SUCCESS), a_case(TURN, TURN), printed)

    def test_killed_program_is_an_error(self) -> None:
        with pytest.raises(EvaluatorError, match=r"ADK was killed by signal 9 .*: Killed"):
            judged(evaluator(), a_case(TURN), "", exit_code=-9)

    def test_unexpected_response_type_is_a_type_error(self) -> None:
        request = evaluator().ask(a_case(TURN))
        assert isinstance(request, Compose)
        settled = ConstantJudgement(judgement=Judgement(score=1, passed=True))
        with pytest.raises(TypeError):
            request.then((settled,))
