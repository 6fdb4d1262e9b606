"""The guarantees of ``agentci.sdk`` for evaluator programs."""

import ast
import io
import json
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import agentci.sdk
from agentci.evaluators.agentevals.code import parse_eval_result
from agentci.evaluators.program_output import parse_output
from agentci.model.values import replace
from agentci.sdk import (
    EvalInput,
    EvalResult,
    EvalStatus,
    IntermediateStepData,
    InvocationData,
    ToolCallData,
    evaluator,
)
from tests.sdk.programs import CASE, run_evaluator


class TestEvalResult:
    @pytest.mark.parametrize("score", [0, 1, 0.5, Fraction(1, 2), Decimal("0.5"), -0.0])
    def test_score_from_0_to_1_is_accepted(self, score: Any) -> None:
        result = EvalResult(score=score)
        assert result.score == float(score)
        assert type(result.score) is float

    @pytest.mark.parametrize(
        "score", [1.01, -1, float("nan"), float("inf"), True, "0.5", None, [1.0]]
    )
    def test_invalid_score_is_rejected(self, score: Any) -> None:
        with pytest.raises(ValueError, match="score must be a number between 0 and 1") as caught:
            EvalResult(score=score)
        assert repr(score) in str(caught.value)

    def test_status_is_accepted_by_name(self) -> None:
        assert EvalResult(score=1, status="FAILED").status is EvalStatus.FAILED  # type: ignore[arg-type] # as text

    @pytest.mark.parametrize("status", ["failed", "", 1, ["FAILED"]])
    def test_unknown_status_is_rejected(self, status: Any) -> None:
        with pytest.raises(ValueError, match="status must be an EvalStatus or None"):
            EvalResult(score=1, status=status)

    @pytest.mark.parametrize("scores", [None, 0.5, "1", ["1"], [True], [float("nan")], {1.0}])
    def test_invalid_turn_scores_are_rejected(self, scores: Any) -> None:
        with pytest.raises(ValueError, match="must be a list of numbers and None"):
            EvalResult(score=1, per_invocation_scores=scores)

    def test_unknown_result_field_is_rejected(self) -> None:
        with pytest.raises(TypeError, match="reasoning"):
            EvalResult(score=1, reasoning="fine")  # type: ignore[call-arg] # that is the point


class TestEvalInput:
    def test_input_is_read_from_json(self) -> None:
        case = EvalInput.from_json(json.dumps(CASE))
        assert case.threshold == 1.0
        assert case.invocations[0].intermediate_steps.tool_calls == [
            ToolCallData(name="find", args={"n": [1, 2.5, None]}, id="c1")
        ]
        assert case.invocations[1] == InvocationData(final_response=None)

    def test_input_can_be_constructed_in_tests(self) -> None:
        steps = IntermediateStepData(tool_calls=[ToolCallData(name="find")])
        turn = InvocationData(final_response="Yes.", intermediate_steps=steps)
        case = EvalInput(metric_name="judge", invocations=[turn])
        assert (case.protocol_version, case.threshold, case.config) == ("1.1", 0.5, {})
        assert replace(case, threshold=0.7).threshold == 0.7

    @pytest.mark.parametrize(
        ("given", "complaint"),
        [
            (
                {"invocations": [{}, {"final_response": 5}]},
                "input.invocations[1].final_response is 5",
            ),
            ({"invocations": "all"}, "input.invocations is 'all', not of type list"),
            ({"threshold": True}, "input.threshold is True, not of type float"),
            ({"config": ["a"]}, "input.config is ['a'], not of type dict"),
            ({"invocations": [{"intermediate_steps": {"tool_calls": [{}]}}]}, "'name'"),
        ],
    )
    def test_invalid_input_error_names_member(self, given: dict[str, Any], complaint: str) -> None:
        with pytest.raises(TypeError) as caught:
            EvalInput.from_json(json.dumps({"metric_name": "judge", **given}))
        assert complaint in str(caught.value)


class TestProgram:
    def test_stray_stdout_is_redirected_to_stderr(self, tmp_path: Path) -> None:
        source = """
def judge(case):
    import ctypes, os
    print("by itself")
    os.system("echo by a child")
    ctypes.CDLL(None).printf(b"by a C library")
    return EvalResult(score=1)
"""
        done = run_evaluator(tmp_path, source)
        assert parse_eval_result(parse_output(done.stdout.encode())).score == 1
        printed = ("by itself", "by a child", "by a C library")
        assert [text for text in printed if text not in done.stderr] == []

    def test_output_after_the_result_is_redirected(self, tmp_path: Path) -> None:
        source = "def judge(case):\n    return EvalResult(score=1)\n"
        done = run_evaluator(tmp_path, source, tail="judge.run()\nprint('done')\n")
        assert parse_eval_result(parse_output(done.stdout.encode())).score == 1
        assert done.stderr == "done\n"

    @pytest.mark.parametrize("version", ["2.0", "10.1", "0.9", ""])
    def test_other_major_protocol_version_is_a_warning(self, version: str, tmp_path: Path) -> None:
        source = "def judge(case):\n    return EvalResult(score=1)\n"
        stdin = json.dumps({**CASE, "protocol_version": version})
        done = run_evaluator(tmp_path, source, stdin=stdin)
        assert json.loads(done.stdout)["score"] == 1
        assert done.stderr == f"warning: the input uses protocol {version!r}; expected 1.1\n"

    def test_result_of_wrong_type_error_explains_return(self, tmp_path: Path) -> None:
        done = run_evaluator(tmp_path, "def judge(case):\n    return 0.5\n")
        assert done.stderr == (
            "Evaluator function must return EvalResult, got float of builtins; use "
            "`from agentci.sdk import EvalResult` and `return EvalResult(score=...)`\n"
        )

    def test_result_of_another_sdk_is_rejected(self, tmp_path: Path) -> None:
        source = (
            "def judge(case):\n"
            "    import agentevals_evaluator_sdk as other\n"
            "    return other.EvalResult(score=1)\n"
        )
        done = run_evaluator(tmp_path, source)
        assert "got EvalResult of agentevals_evaluator_sdk.types; use" in done.stderr

    def test_invalid_score_assigned_later_is_rejected(self, tmp_path: Path) -> None:
        source = (
            "def judge(case):\n"
            "    result = EvalResult(score=1)\n"
            "    result.score += 1\n"
            "    return result\n"
        )
        done = run_evaluator(tmp_path, source)
        assert (done.returncode, done.stdout) == (1, "")
        assert "raised: score must be a number between 0 and 1, got 2.0\n" in done.stderr

    def test_circular_details_are_rejected(self, tmp_path: Path) -> None:
        source = (
            "def judge(case):\n"
            "    case.config['itself'] = case.config\n"
            "    return EvalResult(score=1, details=case.config)\n"
        )
        done = run_evaluator(tmp_path, source)
        assert (done.returncode, done.stdout) == (1, "")
        assert "raised: Circular reference detected" in done.stderr

    def test_deeply_nested_input_is_rejected(self, tmp_path: Path) -> None:
        source = "def judge(case):\n    return EvalResult(score=1)\n"
        done = run_evaluator(tmp_path, source, stdin="[" * 100_000)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Failed to parse input: maximum recursion depth")

    def test_non_json_details_are_converted(self, tmp_path: Path) -> None:
        source = """
def judge(case):
    from datetime import date
    from enum import Enum
    from pathlib import Path
    Colour = Enum("Colour", "RED")
    odd = [date(2026, 3, 10), Path("a/b"), Colour.RED, frozenset({1}), b"x", EvalResult, "\\ud800"]
    return EvalResult(score=1, details={"odd": odd})
"""
        done = run_evaluator(tmp_path, source)
        assert json.loads(done.stdout)["details"]["odd"] == [
            *("2026-03-10", "a/b", 1, [1], "b'x'", "<class 'agentci.sdk.EvalResult'>", "?")
        ]

    def test_evaluator_exit_code_is_preserved(self, tmp_path: Path) -> None:
        done = run_evaluator(tmp_path, "def judge(case):\n    raise SystemExit(7)\n")
        assert (done.returncode, done.stdout, done.stderr) == (7, "", "")

    def test_evaluator_runs_inside_a_test(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        @evaluator
        def judge(case: EvalInput) -> EvalResult:
            sys.stdout.write("a log\n")
            return EvalResult(score=case.threshold)

        for _ in range(2):  # nothing is left of the first time
            monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(CASE)))
            judge.run()
            printed = capsys.readouterr()
            assert json.loads(printed.out)["score"] == 1
            assert printed.err == "a log\n"

    async def _judge(self, case: EvalInput) -> EvalResult:
        return EvalResult(score=case.threshold)

    def test_async_method_runs_as_evaluator(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(CASE)))
        evaluator(self._judge).run()
        assert json.loads(capsys.readouterr().out)["score"] == 1


class TestModule:
    def test_sdk_imports_only_the_standard_library(self) -> None:
        tree = ast.parse(Path(agentci.sdk.__file__).read_text(encoding="utf-8"))
        imported = {name.partition(".")[0] for node in ast.walk(tree) for name in _imported(node)}
        assert imported - sys.stdlib_module_names == set()

    def test_sdk_module_works_without_the_package(self, tmp_path: Path) -> None:
        package = tmp_path / "agentci"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "sdk.py").write_bytes(Path(agentci.sdk.__file__).read_bytes())
        source = (
            "def judge(case):\n"
            "    import agentci.sdk\n"
            "    return EvalResult(score=1, details={'from': agentci.sdk.__file__})\n"
        )
        done = run_evaluator(tmp_path, source)
        assert json.loads(done.stdout)["details"]["from"] == str(package / "sdk.py")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
