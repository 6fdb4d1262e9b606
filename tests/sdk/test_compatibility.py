"""The same evaluator accepts and prints the same with both SDKs."""

import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any

import agentevals_evaluator_sdk  # type: ignore[import-untyped] # ships no types
import pytest

import agentci.sdk
from tests.sdk.programs import CASE, ORIGINAL, OURS, run_evaluator

pytestmark = pytest.mark.slow

RESULTS = [
    "score=1",
    "score=0.1 + 0.2",
    "score=1 / 3, status=EvalStatus.FAILED",
    "score=0, status='PASSED'",
    "score=0.0, status=EvalStatus.NOT_EVALUATED, details={'reason': 'nothing to judge'}",
    "score=0.5, per_invocation_scores=[1, None, 0.25]",
    "score=0.5, per_invocation_scores=(1.0, 0.0)",
    "score=1, per_invocation_scores=[7, -1]",
    "score=1, details={}",
    "score=1, details={'issues': ['“ü”, \\u2028 \\x7f </script>', '\\n\\t\\\\'], 'n': 10**30}",
    "score=1, details={'set': {1}, 'tuple': (1, [2]), 'status': EvalStatus.PASSED, 'text': 'x'}",
    "score=1, details={'not': float('nan'), 'never': [float('inf')]}",
    "score=1, details={'calls': case.invocations[0].intermediate_steps.tool_calls}",
    "score=1, details={'turns': case.invocations, 'config': case.config}",
    "score=case.threshold, details={'golden': case.expected_invocations}",
]


@pytest.mark.parametrize("result", RESULTS)
def test_both_sdks_print_the_same_bytes(result: str, tmp_path: Path) -> None:
    ours, theirs = _run_with_both(tmp_path, f"def judge(case):\n    return EvalResult({result})\n")
    assert (ours.returncode, ours.stderr) == (0, "")
    assert ours.stdout == theirs.stdout


@pytest.mark.parametrize("score", ["1e-7", "0.00001", "1e-300", "5e-324"])
def test_both_sdks_print_the_same_number(score: str, tmp_path: Path) -> None:
    source = f"def judge(case):\n    return EvalResult(score={score})\n"
    ours, theirs = _run_with_both(tmp_path, source)
    assert json.loads(ours.stdout) == json.loads(theirs.stdout)


def test_both_sdks_run_async_evaluators(tmp_path: Path) -> None:
    source = (
        "async def judge(case):\n"
        "    import asyncio\n"
        "    await asyncio.sleep(0)\n"
        "    return EvalResult(score=0.5)\n"
    )
    ours, theirs = _run_with_both(tmp_path, source)
    assert ours.stdout == theirs.stdout != ""


def test_both_sdks_provide_every_input_field(tmp_path: Path) -> None:
    source = """
def judge(case):
    seen = [case.protocol_version, case.metric_name, case.threshold, case.config]
    for turn in case.invocations:
        seen += [turn.invocation_id, turn.user_content, turn.final_response]
        seen += [turn.performance_metrics, turn.trace_id, turn.span_id]
        for call in turn.intermediate_steps.tool_calls:
            seen += [call.name, call.args, call.id]
        for answer in turn.intermediate_steps.tool_responses:
            seen += [answer.name, answer.output, answer.status, answer.id, answer.response]
    return EvalResult(score=1, details={"seen": seen})
"""
    ours, theirs = _run_with_both(tmp_path, source)
    assert len(json.loads(ours.stdout)["details"]["seen"]) == 24
    assert ours.stdout == theirs.stdout


@pytest.mark.parametrize(
    "given",
    [
        {"metric_name": "judge"},
        {"metric_name": "judge", "protocol_version": "1.7", "new": {"field": 1}},
        {**CASE, "expected_invocations": CASE["invocations"]},
        {**CASE, "expected_invocations": []},
    ],
    ids=["minimal input", "later minor version", "eval case", "empty eval case"],
)
def test_both_sdks_read_input(given: dict[str, Any], tmp_path: Path) -> None:
    source = """
def judge(case):
    turns = [case.invocations, case.expected_invocations]
    return EvalResult(score=case.threshold, details={"turns": turns, "config": case.config})
"""
    ours, theirs = _run_with_both(tmp_path, source, json.dumps(given))
    assert (ours.returncode, ours.stderr) == (0, "")
    assert ours.stdout == theirs.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "No input received on stdin"),
        (" \n", "No input received on stdin"),
        ("{", "Failed to parse input: "),
        ("[]", "Failed to parse input: "),
        ("{}", "Failed to parse input: "),
        ('{"metric_name": null}', "Failed to parse input: "),
        ('{"metric_name": "judge", "config": null}', "Failed to parse input: "),
        ('{"metric_name": "judge", "threshold": null}', "Failed to parse input: "),
        ('{"metric_name": "judge", "invocations": {}}', "Failed to parse input: "),
        ('{"metric_name": "judge", "invocations": [5]}', "Failed to parse input: "),
    ],
)
def test_both_sdks_reject_invalid_input(given: str, message: str, tmp_path: Path) -> None:
    source = "def judge(case):\n    return EvalResult(score=1)\n"
    for done in _run_with_both(tmp_path, source, given):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('words')", "Evaluator function raised: 'words'\nTraceback"),
        ("return EvalResult(score=1.5)", "Evaluator function raised: "),
        ("return EvalResult(score=float('nan'))", "Evaluator function raised: "),
        ("return EvalResult(score=1, status='passed')", "Evaluator function raised: "),
        ("return EvalResult(score=1, per_invocation_scores=None)", "Evaluator function raised: "),
        ("return EvalResult(score=1, details=['x'])", "Evaluator function raised: "),
        ("return EvalResult()", "Evaluator function raised: "),
        ("return 0.5", "Evaluator function must return EvalResult, got float"),
        ("return {'score': 1}", "Evaluator function must return EvalResult, got dict"),
        ("pass", "Evaluator function must return EvalResult, got NoneType"),
    ],
)
def test_both_sdks_fail_on_evaluator_error(body: str, message: str, tmp_path: Path) -> None:
    for done in _run_with_both(tmp_path, f"def judge(case):\n    {body}\n"):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(message)


@pytest.mark.parametrize("name", agentevals_evaluator_sdk.__all__)
def test_sdk_exports_every_original_name_with_same_fields(name: str) -> None:
    ours, theirs = getattr(agentci.sdk, name), getattr(agentevals_evaluator_sdk, name)
    if hasattr(theirs, "model_fields"):
        fields = dataclasses.fields(ours)
        names = [field.name for field in fields if field.name in theirs.model_fields]
        assert names == list(theirs.model_fields)
        required = {each.name for each in fields if _has_no_default(each)}
        assert required == {n for n, f in theirs.model_fields.items() if f.is_required()}


@pytest.mark.parametrize("sdk", [OURS, ORIGINAL])
def test_evaluator_can_be_called_as_a_function(sdk: str) -> None:
    module = importlib.import_module(sdk)

    @module.evaluator  # type: ignore[untyped-decorator] # either of two modules
    def judge(case: Any, bonus: float = 0.0) -> Any:
        """Judges."""
        return module.EvalResult(score=case.threshold + bonus)

    case = module.EvalInput(metric_name="judge", threshold=0.25)
    assert judge(case).score == 0.25
    assert judge(case=case, bonus=0.5).score == 0.75
    assert (judge.__name__, judge.__doc__) == ("judge", "Judges.")


def _has_no_default(field: "dataclasses.Field[Any]") -> bool:
    return field.default is field.default_factory is dataclasses.MISSING


def _run_with_both(folder: Path, source: str, stdin: str = json.dumps(CASE)) -> tuple[Any, Any]:
    return (
        run_evaluator(folder, source, stdin=stdin, sdk=OURS),
        run_evaluator(folder, source, stdin=stdin, sdk=ORIGINAL),
    )
