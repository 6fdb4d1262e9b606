"""Evaluators that are programs: their input, and the judgement for their output."""

import json
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.code import CodeEvaluator
from agentci.model.case import Case
from agentci.model.program import LocalProgram
from agentci.model.requests import (
    EvaluatorIdentity,
    Judgement,
    MetricResult,
    ProgramOutput,
    RunProgram,
)
from agentci.model.trace import ToolCall, Trace, Turn
from agentci.model.values import IsolationMode, Json, JsonObject, Place
from agentci.runner.dispatch import dispatch_request
from tests.helpers.support import EVALUATORS, make_services

PLACE = Place(file="eval_config.yaml", line=3)
TURN = Turn(
    id="aa01",
    user_text="Weather in Paris?",
    answer_parts=("Sunny today.",),
    tool_calls=(ToolCall(name="get_weather"),),
)
CASE = Case(id="paris", trace=Trace(id="0af7", key="0af7", turns=(TURN,), place=PLACE))


class TestAsk:
    def test_request_runs_program_with_case(self) -> None:
        asked = _evaluator("/evals/ev.py", threshold=0.7, config={"min_length": 20}).ask(CASE)
        assert asked.program == LocalProgram(path="/evals/ev.py")
        assert asked.timeout_seconds == 30
        assert asked.executor == "local"
        payload = json.loads(asked.stdin)
        assert payload["metric_name"] == "ev"
        assert payload["threshold"] == 0.7
        assert payload["config"] == {"min_length": 20}
        assert [turn["invocation_id"] for turn in payload["invocations"]] == ["aa01"]

    def test_same_case_gives_equal_request(self) -> None:
        assert _evaluator().ask(CASE) == _evaluator().ask(CASE)

    def test_input_has_default_threshold(self) -> None:
        assert json.loads(_evaluator(threshold=None).ask(CASE).stdin)["threshold"] == 0.5


class TestJudgement:
    @pytest.mark.parametrize(
        ("answer", "passed"),
        [
            pytest.param({"score": 0.5}, True, id="score at the threshold"),
            pytest.param({"score": 0.49}, False, id="score below the threshold"),
            pytest.param({"score": 1, "status": "FAILED"}, False, id="FAILED overrides the score"),
            pytest.param({"score": 0, "status": "PASSED"}, True, id="PASSED overrides the score"),
            pytest.param({"score": 1, "status": "NOT_EVALUATED"}, None, id="declined, good score"),
            pytest.param({"score": 0, "status": "NOT_EVALUATED"}, None, id="declined, bad score"),
        ],
    )
    def test_status_takes_precedence_over_score(
        self, answer: JsonObject, passed: bool | None
    ) -> None:
        judgement = _read(answer)
        assert judgement.passed is passed
        assert judgement.score == answer["score"]

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            ({"score": 1}, None),
            ({"score": 1, "status": "PASSED"}, None),
            ({"score": 0, "status": "FAILED"}, None),
            ({"score": 1, "status": "NOT_EVALUATED"}, None),
            ({"score": 1, "status": "FAILED"}, "the evaluator returned status FAILED"),
            ({"score": 0, "status": "PASSED"}, "the evaluator returned status PASSED"),
        ],
    )
    def test_reason_reports_status_that_contradicts_score(
        self, answer: JsonObject, reason: str | None
    ) -> None:
        assert _read(answer).reason == reason

    def test_turn_scores_and_details_are_kept(self) -> None:
        judgement = _read(
            {"score": 1, "per_invocation_scores": [1, None], "details": {"reason": "all fine"}}
        )
        assert judgement.turn_scores == (1.0, None)
        assert judgement.details == {"reason": "all fine"}
        assert judgement.reasoning == "all fine"

    def test_huge_details_are_truncated(self) -> None:
        details: JsonObject = {
            "issues": ["x" * 5_000, *["y"] * 500_000],
            "missing_tools": None,
            "reason": "z" * 1_000_000,
            "raw": ["r"] * 100_000,
        }
        judgement = _read({"score": 0, "per_invocation_scores": [0] * 99_999, "details": details})
        assert judgement.passed is False
        assert len(judgement.turn_scores) == 10_000
        assert len(judgement.misses) == 101
        assert judgement.misses[0].endswith("\N{HORIZONTAL ELLIPSIS} (4,025 characters more)")
        assert judgement.misses[-1] == "\N{HORIZONTAL ELLIPSIS} and 499,901 more"
        assert 900 < len(judgement.reasoning or "") <= 1_000
        assert judgement.details.keys() == {"issues", "reason", "left_out"}
        assert "the limit is 262,144" in str(judgement.details["left_out"])

    def test_large_details_within_limit_are_kept(self) -> None:
        details: JsonObject = {"raw": ["r"] * 20_000, "issues": ["x" * 5_000]}
        assert _read({"score": 0, "details": details}).details == details

    @pytest.mark.parametrize(
        ("details", "misses"),
        [
            pytest.param({"issues": ["too short", "no tool"]}, ("too short", "no tool"), id="list"),
            pytest.param({"issues": "too short"}, ("too short",), id="single string"),
            pytest.param({"issues": [{"turn": 1}, 2]}, ('{"turn": 1}', "2"), id="not strings"),
            pytest.param({"missing_tools": ["look"]}, ("missing tools: look",), id="missing tools"),
            pytest.param({"issues": None}, (), id="null"),
            pytest.param({"others": ["x"]}, (), id="another key"),
            pytest.param(None, (), id="no details"),
        ],
    )
    def test_issues_of_failed_check_become_misses(
        self, details: Json, misses: tuple[str, ...]
    ) -> None:
        assert _read({"score": 0, "details": details}).misses == misses

    @pytest.mark.parametrize("status", ["PASSED", "NOT_EVALUATED"])
    def test_check_that_did_not_fail_has_no_misses(self, status: str) -> None:
        answer: JsonObject = {"score": 0, "status": status, "details": {"issues": ["too short"]}}
        assert _read(answer).misses == ()

    @pytest.mark.parametrize(
        ("details", "reasoning"),
        [
            ({"issues": ["no refund", "no order"]}, "no refund; no order"),
            ({"issues": ["no refund"], "reason": "not applicable"}, "not applicable"),
            ({}, None),
        ],
    )
    def test_issues_of_a_check_without_a_verdict_are_its_reasoning(
        self, details: JsonObject, reasoning: str | None
    ) -> None:
        answer: JsonObject = {"score": 0, "status": "NOT_EVALUATED", "details": details}
        assert _read(answer).reasoning == reasoning

    def test_unexpected_response_type_is_a_type_error(self) -> None:
        with pytest.raises(TypeError):
            _evaluator().read(MetricResult(score=1, turn_scores=()))


class TestProgramFailure:
    @pytest.mark.parametrize(
        ("exit_code", "stderr", "ending"),
        [
            pytest.param(3, " nope\nline2\n", "exited with code 3: nope\nline2", id="with stderr"),
            pytest.param(1, "\n", "exited with code 1", id="without stderr"),
            pytest.param(
                -9,
                "",
                "was killed by signal 9 (SIGKILL) (possible cause: out of memory)",
                id="killed",
            ),
            pytest.param(-11, "", "was killed by signal 11 (SIGSEGV)", id="crashed"),
            pytest.param(-99, "", "was killed by signal 99", id="unnamed signal"),
            pytest.param(
                127,
                "env: ruby: not found",
                "exited with code 127: env: ruby: not found (127 usually means: command not found)",
                id="command not found",
            ),
            pytest.param(
                139,
                "",
                "exited with code 139 (139 usually means: signal 11, SIGSEGV)",
                id="crashed in a container or under a shell",
            ),
            pytest.param(255, "", "exited with code 255", id="no such signal"),
        ],
    )
    def test_failed_program_is_an_error_not_zero_score(
        self, exit_code: int, stderr: str, ending: str
    ) -> None:
        assert _complaint(b'{"score": 1}', exit_code=exit_code, stderr=stderr) == (
            f"Evaluator `ev` {ending}"
        )

    @pytest.mark.parametrize(
        ("stderr", "hint"),
        [
            pytest.param(
                "PermissionError: [Errno 13] Permission denied", "only to /tmp, and", id="files"
            ),
            pytest.param(
                "No module named 'agentevals_evaluator_sdk'",
                "only the image with its packages",
                id="packages",
            ),
            pytest.param("socket.gaierror: name resolution", "has no network access", id="network"),
        ],
    )
    def test_container_failure_hint_names_what_is_missing(self, stderr: str, hint: str) -> None:
        evaluator = _evaluator(image="python:3", network=False)
        with pytest.raises(EvaluatorError) as caught:
            evaluator.read(_reply(b"", exit_code=1, stderr=stderr))
        message = str(caught.value)
        assert hint in message
        assert "workspace" not in message
        assert "install agentevals" not in message

    def test_long_stderr_is_cut_to_last_lines(self) -> None:
        complaint = _complaint(b"", exit_code=1, stderr="noise\n" * 9_000 + "ValueError: x\n")
        assert complaint.endswith("noise\nValueError: x")
        assert len(complaint.splitlines()) == 20

    def test_long_stderr_line_is_cut_to_its_end(self) -> None:
        complaint = _complaint(b"", exit_code=1, stderr="x" * 50_000 + "end")
        assert complaint.endswith("xend")
        assert len(complaint) < 2_100

    @pytest.mark.parametrize("stdout", [b"", b" \n", b"\xef\xbb\xbf\r\n"])
    def test_empty_stdout_error_includes_stderr(self, stdout: bytes) -> None:
        assert _complaint(stdout, stderr="judged\n") == (
            "Evaluator `ev` printed nothing on stdout;"
            ' print a result such as {"score": 1.0}\nstderr:\njudged'
        )

    def test_empty_stdout_error_without_stderr_is_one_line(self) -> None:
        assert "\n" not in _complaint(b"")


class TestRealPrograms:
    @pytest.mark.parametrize("program", ["good.py", "good.js", "good.ts", "good.sh"])
    def test_program_in_any_language_is_run(self, program: str) -> None:
        assert _judged_by(program).passed is True

    def test_program_using_sdk_runs_unchanged(self) -> None:
        judgement = _judged_by("uses_the_sdk.py", config={"words": 4})
        assert judgement.score == 0.5
        assert judgement.turn_scores == (0.5,)
        assert judgement.details == {"issues": ["aa01: 2 of 4 words"]}

    def test_turn_scores_of_any_count_are_kept(self) -> None:
        judgement = _judged_by("per_turn_scores_of_any_kind.py")
        assert judgement.turn_scores == (0.2, None, 7.0, 1.0, 0.5)

    def test_output_with_byte_order_mark_is_parsed(self) -> None:
        assert _judged_by("starts_with_a_byte_order_mark.py").score == 1

    def test_printed_workflow_commands_are_kept_as_text(self) -> None:
        judgement = _judged_by("prints_workflow_commands.py")
        assert "##[error]forged" in judgement.misses
        assert judgement.reasoning == "::add-mask::passed"

    @pytest.mark.parametrize(
        ("program", "complaint"),
        [
            ("exits_3.py", "exited with code 3: nope\nline2"),
            ("kills_itself.py", "was killed by signal 9 (SIGKILL)"),
            ("prints_nothing.py", "printed nothing on stdout"),
            (
                "prints_a_log_line_first.py",
                "printed an invalid result: text before the JSON: 'loading model'",
            ),
            (
                "prints_two_results.py",
                "printed an invalid result: text after the JSON on line 2",
            ),
            ("writes_utf16.py", "printed an invalid result: the encoding is UTF-16"),
            ("writes_latin1.py", "printed an invalid result: byte 40 (0xe9) is not valid UTF-8"),
            ("score_nan.py", "printed an invalid result: `NaN` is not a JSON number"),
            ("nan_in_details.py", "printed an invalid result: `NaN` is not a JSON number"),
            ("score_true.py", "returned score true; it must be a number between 0 and 1"),
            ("hangs.py", "timed out after 1 s"),
        ],
    )
    def test_faulty_program_is_an_error_with_cause(self, program: str, complaint: str) -> None:
        with pytest.raises(EvaluatorError) as caught:
            _judged_by(program, timeout_seconds=1 if program == "hangs.py" else 30)
        assert str(caught.value).startswith(f"Evaluator `ev` {complaint}")

    def test_missing_sdk_error_says_how_to_install(self) -> None:
        with pytest.raises(EvaluatorError, match=r"\(install agentevals-evaluator-sdk in agentci"):
            _judged_by("imports_what_is_not_there.py", isolation="spawn")


def _evaluator(
    path: str = "/evals/ev.py",
    *,
    threshold: float | None = 0.5,
    config: JsonObject | None = None,
    timeout_seconds: float = 30,
    **run: Any,
) -> CodeEvaluator:
    return CodeEvaluator(
        identity=EvaluatorIdentity(
            name="ev",
            type="code",
            criterion="score >= 0.5",
            threshold=threshold,
            required=True,
            place=PLACE,
        ),
        definition={},
        config=config or {},
        run=RunProgram(
            program=LocalProgram(path=path), stdin="", timeout_seconds=timeout_seconds, **run
        ),
        program_place=PLACE,
    )


def _reply(stdout: bytes, *, exit_code: int = 0, stderr: str = "") -> ProgramOutput:
    return ProgramOutput(stdout=stdout, stderr=stderr, exit_code=exit_code)


def _read(answer: JsonObject) -> Judgement:
    return _evaluator().read(_reply(json.dumps(answer).encode()))


def _complaint(stdout: bytes, *, exit_code: int = 0, stderr: str = "") -> str:
    with pytest.raises(EvaluatorError) as caught:
        _evaluator().read(_reply(stdout, exit_code=exit_code, stderr=stderr))
    return str(caught.value)


def _judged_by(
    program: str,
    *,
    config: JsonObject | None = None,
    timeout_seconds: float = 30,
    isolation: IsolationMode = "fork",
) -> Judgement:
    evaluator = _evaluator(
        str(EVALUATORS / program),
        config=config,
        timeout_seconds=timeout_seconds,
        isolation=isolation,
    )
    services = make_services(EVALUATORS, {})
    return evaluator.read(dispatch_request(evaluator.ask(CASE), name="ev", services=services))
