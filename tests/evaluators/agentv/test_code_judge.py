"""``code_judge`` and ``composite``: requests, and judgements from the output."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentv.findings import clamp_score
from agentci.evaluators.evaluator import Evaluator
from agentci.model.requests import (
    Compose,
    ConstantJudgement,
    Judgement,
    MetricResult,
    ProgramOutput,
    RunCommand,
    Task,
)
from tests.evaluators.agentv.agentv_cases import case, program_output, run_with_answer, suite_of

CODE = {"name": "c", "type": "code_judge", "script": ["judge"]}


def _only(*entries: Mapping[str, Any], key: str = "cases") -> Evaluator:
    [evaluator] = suite_of(*entries, key=key).evaluators
    return evaluator


def _request(key: str = "cases", **fields: Any) -> RunCommand:
    request = _only({**CODE, **fields}, key=key).ask(case(run_with_answer("x")))
    assert isinstance(request, RunCommand)
    return request


def _read(response: ProgramOutput, key: str = "cases", **fields: Any) -> Judgement:
    return _only({**CODE, **fields}, key=key).read(response)


class TestRequest:
    def test_script_list_is_the_command(self) -> None:
        assert _request(script=["python3", "a b.py"]).command == ("python3", "a b.py")

    def test_script_line_runs_in_shell(self) -> None:
        assert _request(script="cat | wc").command == ("sh", "-c", "cat | wc")

    def test_simple_script_line_runs_without_shell(self) -> None:
        assert _request(script="uv run judge.py").command == ("uv", "run", "judge.py")
        assert _request(script="python3 judge.py").command == ("python3", "judge.py")
        assert _request(script="./judge.ts strict").command == ("./judge.ts", "strict")
        assert _request(script="judge.ts strict").command == ("sh", "-c", "judge.ts strict")
        assert _request(script="uv run judge.py > /dev/null").command[0] == "sh"

    def test_working_directory_defaults_to_eval_file_folder(self) -> None:
        assert (_request().folder, _request(cwd="judges").folder) == ("/w", "/w/judges")

    def test_timeout_network_and_limits_come_from_entry(self) -> None:
        request = _request(timeout=7, network=False, env=["KEY"], memory_mb=9, processes=3)
        assert (request.timeout_seconds, request.network, request.variables) == (7, False, ("KEY",))
        assert (request.memory_mb, request.processes) == (9, 3)

    def test_request_defaults_to_uncached_fork(self) -> None:
        assert (_request().isolation, _request().cached) == ("fork", False)
        request = _request(isolation="spawn", cache=True)
        assert (request.isolation, request.cached) == ("spawn", True)
        assert json.loads(request.stdin)["config"] is None

    def test_docker_executor_is_requested(self) -> None:
        assert (_request().executor, _request().image) == ("local", "")
        request = _request(executor="docker", image="python:3.12-slim")
        assert (request.executor, request.image) == ("docker", "python:3.12-slim")
        assert json.loads(request.stdin)["config"] is None

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"executor": "docker"}, "`executor: docker` needs an `image`"),
            ({"image": "some/image"}, "`image` needs `executor: docker`"),
            ({"executor": "podman"}, "`executor` must be local or docker, not the string 'podman'"),
            ({"executor": "docker", "image": "--rm"}, "`image` must be an image name"),
        ],
    )
    def test_invalid_executor_or_image_is_rejected(
        self, fields: Mapping[str, str], message: str
    ) -> None:
        with pytest.raises(InputError, match=re.escape(message)):
            _request(**fields)

    def test_config_contains_other_keys_of_entry(self) -> None:
        config = json.loads(_request(maxItems=3, config={"a": 1}).stdin)["config"]
        assert config == {"maxItems": 3, "config": {"a": 1}}

    def test_newer_files_merge_config_into_one_object(self) -> None:
        config = json.loads(_request(key="tests", maxItems=3, config={"a": 1}).stdin)["config"]
        assert config == {"maxItems": 3, "a": 1}

    def test_config_is_null_without_other_keys(self) -> None:
        assert json.loads(_request().stdin)["config"] is None

    def test_code_judge_needs_no_resources(self) -> None:
        assert _only(CODE).needs == ()


class TestResult:
    def test_score_passes_at_entry_threshold(self) -> None:
        assert not _read(program_output('{"score": 0.7}')).passed
        assert _read(program_output('{"score": 0.7}'), min_score=0.7).passed
        assert _read(program_output('{"score": 0.7}'), required=0.7).passed

    def test_missing_score_is_share_of_passed_assertions(self) -> None:
        results = {"assertions": [{"text": "a", "passed": True}, {"text": "b", "passed": False}]}
        judgement = _read(program_output(json.dumps(results)))
        assert (judgement.score, judgement.hits, judgement.misses) == (0.5, ("a",), ("b",))

    @pytest.mark.parametrize(
        ("fields", "score", "passed"),
        [
            ({"pass": True, "reason": "fine"}, 1.0, True),
            ({"pass": False}, 0.0, False),
            ({"pass": False, "score": 1}, 1.0, False),
            ({"pass": True, "score": 0.5}, 0.5, False),
        ],
    )
    def test_result_of_agentv_5_is_read(
        self, fields: dict[str, Any], score: float, passed: bool
    ) -> None:
        judgement = _read(program_output(json.dumps(fields)), key="tests", type="script")
        assert (judgement.score, judgement.passed) == (score, passed)
        assert judgement.reasoning == fields.get("reason")

    def test_checks_of_agentv_5_are_hits_and_misses(self) -> None:
        checks = [{"text": "a", "pass": True}, {"text": "b", "pass": False, "reason": "r"}]
        judgement = _read(program_output(json.dumps({"checks": checks})), key="tests")
        assert (judgement.score, judgement.hits, judgement.misses) == (0.5, ("a",), ("b",))

    def test_file_generation_selects_hits_or_assertions(self) -> None:
        results = {"score": 1, "hits": ["h"], "assertions": [{"text": "a", "passed": True}, 3]}
        response = program_output(json.dumps(results))
        assert _read(response).hits == ("h",)
        assert _read(response, key="tests").hits == ("a",)

    def test_details_and_reasoning_are_kept(self) -> None:
        judgement = _read(program_output('{"score": 1, "details": {"n": 1}, "reasoning": "why"}'))
        assert (judgement.details, judgement.reasoning) == ({"n": 1}, "why")

    def test_oversized_result_is_truncated(self) -> None:
        results = {"score": 1, "hits": ["x" * 2000] * 300, "details": {"n": 1}}
        judgement = _read(program_output(json.dumps(results)))
        assert (len(judgement.hits), judgement.details) == (101, {})

    @pytest.mark.parametrize(
        ("response", "why"),
        [
            (program_output("fine"), "printed an invalid result"),
            (program_output(" \n"), "printed nothing on stdout"),
            (program_output("", exit_code=3, stderr="boom"), "exited with code 3: boom"),
            (program_output('{"score": 1}', exit_code=1), "exited with code 1$"),
            (
                program_output('{"score": 0, "misses": ["m"], "reasoning": "r"}', exit_code=1),
                "exited with code 1\nPrinted result:\n- m\n- r$",
            ),
        ],
    )
    def test_invalid_output_is_an_error(self, response: ProgramOutput, why: str) -> None:
        with pytest.raises(EvaluatorError, match=f"Evaluator `c` {why}"):
            _read(response)

    @pytest.mark.parametrize(("program", "is_suggested"), [("uv", True), ("python3", False)])
    def test_missing_module_error_suggests_uv(self, program: str, is_suggested: bool) -> None:
        response = program_output(
            "", exit_code=1, stderr="ModuleNotFoundError: No module named 'rich'"
        )
        with pytest.raises(EvaluatorError) as caught:
            _read(response, script=[program, "run", "judge.py"])
        assert ("install uv in an earlier step" in str(caught.value)) is is_suggested

    def test_wrong_response_type_is_a_type_error(self) -> None:
        with pytest.raises(TypeError):
            _only(CODE).read(MetricResult(score=1, turn_scores=()))


def test_nan_score_is_clamped_to_zero() -> None:
    assert clamp_score(float("nan")) == 0.0


class TestComposite:
    def _compose(self, aggregator: Mapping[str, Any], **fields: Any) -> Evaluator:
        members = [{**CODE, "name": name} for name in ("a", "b")]
        return _only(
            {
                "name": "both",
                "type": "composite",
                "aggregator": aggregator,
                "evaluators": members,
                **fields,
            },
            key=fields.pop("key", "cases"),
        )

    def _then(self, evaluator: Evaluator, *scores: float) -> Task:
        request = evaluator.ask(case(run_with_answer("x")))
        assert isinstance(request, Compose)
        assert [name for name, _ in request.parts] == ["a", "b"]
        results = [{"score": s, "hits": ["h"], "misses": ["m"], "reasoning": "r"} for s in scores]
        return request.then(tuple(program_output(json.dumps(each)) for each in results))

    def _settled(self, evaluator: Evaluator, *scores: float) -> Judgement:
        settled = self._then(evaluator, *scores)
        assert isinstance(settled, ConstantJudgement)
        return evaluator.read(settled)

    def test_composite_score_is_weighted_mean(self) -> None:
        weighted = {"type": "weighted_average", "weights": {"a": 3}}
        assert self._settled(self._compose(weighted), 1.0, 0.0).score == 0.75

    def test_zero_total_weight_scores_zero(self) -> None:
        weights = {"type": "weighted_average", "weights": {"a": 0, "b": 0}}
        assert self._settled(self._compose(weights), 1.0, 1.0).score == 0.0

    def test_composite_reports_its_members(self) -> None:
        judgement = self._settled(self._compose({"type": "weighted_average"}), 1.0, 0.6)
        assert judgement.hits == ("[a] h", "[b] h")
        assert judgement.reasoning == "a: r; b: r"
        assert judgement.details["members"] == {
            "a": {"score": 1.0, "verdict": "pass"},
            "b": {"score": 0.6, "verdict": "borderline"},
        }

    def test_threshold_composite_scores_share_of_passed_members(self) -> None:
        half = {"type": "threshold", "threshold": 0.5}
        judgement = self._settled(self._compose(half), 1.0, 0.0)
        assert (judgement.score, judgement.passed) == (0.5, True)
        assert judgement.hits[0] == "1/2 evaluators passed (threshold: 0.5)"
        judgement = self._settled(self._compose(half), 0.0, 0.0)
        assert (judgement.passed, judgement.misses[0]) == (
            False,
            "0/2 evaluators passed (threshold: 0.5)",
        )

    def test_program_can_aggregate_members(self) -> None:
        evaluator = self._compose({"type": "code-grader", "path": "python3 sum.py"})
        request = self._then(evaluator, 1.0, 0.2)
        assert isinstance(request, Compose)
        [(name, command)] = request.parts
        assert isinstance(command, RunCommand)
        assert (name, command.command) == ("both", ("sh", "-c", "python3 sum.py"))
        assert not command.cached
        assert json.loads(command.stdin)["results"]["b"] == {
            "score": 0.2,
            "verdict": "fail",
            "hits": ["h"],
            "misses": ["m"],
            "assertions": [{"text": "h", "passed": True}, {"text": "m", "passed": False}],
            "expectedAspectCount": 2,
            "reasoning": "r",
        }
        settled = request.then((program_output('{"score": 0.9}'),))
        assert isinstance(settled, ConstantJudgement)
        assert evaluator.read(settled).score == 0.9

    @pytest.mark.parametrize(
        ("printed", "passed"),
        [
            ({"score": 0.9, "verdict": "fail"}, False),
            ({"score": 0.9, "verdict": "borderline"}, False),
            ({"score": 0.2, "verdict": "pass"}, True),
            ({"verdict": "pass"}, True),
            ({"score": 0.9, "verdict": "perhaps"}, True),
            ({"score": 0.2, "verdict": True}, False),
        ],
    )
    def test_verdict_of_aggregator_decides(self, printed: Mapping[str, Any], passed: bool) -> None:
        judgement = self._aggregate(printed)
        assert (judgement.score, judgement.passed) == (printed.get("score", 0.0), passed)

    def test_failing_verdict_above_the_threshold_is_the_reason(self) -> None:
        judgement = self._aggregate({"score": 0.9, "verdict": "fail"})
        assert judgement.reason == "failed by the verdict of its aggregator"

    @pytest.mark.parametrize("field", ["min_score", "required"])
    def test_threshold_of_the_composite_holds_for_a_passing_verdict(self, field: str) -> None:
        assert not self._aggregate({"score": 0.2, "verdict": "pass"}, **{field: 0.5}).passed
        assert self._aggregate({"score": 0.5, "verdict": "pass"}, **{field: 0.5}).passed

    def test_negated_composite_swaps_the_verdict(self) -> None:
        assert self._aggregate({"score": 0.9, "verdict": "fail"}, negate=True).passed
        assert not self._aggregate({"score": 0.1, "verdict": "pass"}, negate=True).passed

    def test_verdict_of_a_code_judge_is_ignored(self) -> None:
        assert _read(program_output('{"score": 0.9, "verdict": "fail"}')).passed

    def _aggregate(self, printed: Mapping[str, Any], **fields: Any) -> Judgement:
        evaluator = self._compose({"type": "code-grader", "path": "x"}, **fields)
        request = self._then(evaluator, 1.0, 0.2)
        assert isinstance(request, Compose)
        settled = request.then((program_output(json.dumps(printed)),))
        assert isinstance(settled, ConstantJudgement)
        return evaluator.read(settled)

    def test_composite_needs_what_its_members_need(self) -> None:
        assert self._compose({"type": "weighted_average"}).needs == ()

    def test_nested_composite_reports_all_members(self) -> None:
        inner = {
            "name": "inner",
            "type": "composite",
            "aggregator": {"type": "weighted_average"},
            "evaluators": [{"name": "t", "type": "latency", "threshold": 1}],
        }
        outer = _only({**inner, "name": "outer", "evaluators": [inner]})
        request = outer.ask(case(run_with_answer("x", duration_ms=1)))
        assert isinstance(request, Compose)
        [(_, part)] = request.parts
        assert isinstance(part, Compose)
        [(_, leaf)] = part.parts
        assert isinstance(leaf, ConstantJudgement)
        inside = part.then((leaf,))
        assert isinstance(inside, ConstantJudgement)
        settled = request.then((inside,))
        assert isinstance(settled, ConstantJudgement)
        members = {"inner": {"score": 1.0, "verdict": "pass", "members": {
            "t": {"score": 1.0, "verdict": "pass"}}}}  # fmt: skip
        assert settled.judgement.details["members"] == members
        assert settled.judgement.hits == ("[inner] [t] Duration 1ms <= 1ms threshold",)
