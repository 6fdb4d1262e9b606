"""``code_judge`` and ``composite``: requests, and judgements from the output."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentv.findings import clamp_score
from agentci.evaluators.evaluator import Evaluator
from agentci.model.judgement import Judgement
from agentci.model.requests import (
    Compose,
    ConstantJudgement,
    MetricResult,
    ProgramOutput,
    RunCommand,
    Task,
)
from tests.evaluators.agentv.agentv_cases import case, printed, said, suite_of

CODE = {"name": "c", "type": "code_judge", "script": ["judge"]}


def _only(*entries: Mapping[str, Any], key: str = "cases") -> Evaluator:
    [evaluator] = suite_of(*entries, key=key).evaluators
    return evaluator


def _asked(key: str = "cases", **fields: Any) -> RunCommand:
    request = _only({**CODE, **fields}, key=key).ask(case(said("x")))
    assert isinstance(request, RunCommand)
    return request


def _read(response: ProgramOutput, key: str = "cases", **fields: Any) -> Judgement:
    return _only({**CODE, **fields}, key=key).read(response)


class TestTheRequest:
    def test_of_a_list_is_these_words(self) -> None:
        assert _asked(script=["python3", "a b.py"]).command == ("python3", "a b.py")

    def test_of_a_line_goes_to_a_shell(self) -> None:
        assert _asked(script="cat | wc").command == ("sh", "-c", "cat | wc")

    def test_of_a_line_that_runs_a_script_and_no_more_needs_no_shell(self) -> None:
        assert _asked(script="uv run judge.py").command == ("uv", "run", "judge.py")
        assert _asked(script="python3 judge.py").command == ("python3", "judge.py")
        assert _asked(script="./judge.ts strict").command == ("./judge.ts", "strict")
        assert _asked(script="judge.ts strict").command == ("sh", "-c", "judge.ts strict")
        assert _asked(script="uv run judge.py > /dev/null").command[0] == "sh"

    def test_takes_the_folder_of_the_file_or_the_one_that_is_named(self) -> None:
        assert (_asked().folder, _asked(cwd="judges").folder) == ("/w", "/w/judges")

    def test_gives_time_network_and_variables_as_the_entry_says(self) -> None:
        request = _asked(timeout=7, network=False, env=["KEY"], memory_mb=9, processes=3)
        assert (request.timeout_seconds, request.network, request.variables) == (7, False, ("KEY",))
        assert (request.memory_mb, request.processes) == (9, 3)

    def test_may_be_a_fork_and_is_cached_only_where_the_entry_says_so(self) -> None:
        assert (_asked().isolation, _asked().cached) == ("fork", False)
        request = _asked(isolation="spawn", cache=True)
        assert (request.isolation, request.cached) == ("spawn", True)
        assert json.loads(request.stdin)["config"] is None

    def test_may_be_for_a_container(self) -> None:
        assert (_asked().executor, _asked().image) == ("local", "")
        request = _asked(executor="docker", image="python:3.12-slim")
        assert (request.executor, request.image) == ("docker", "python:3.12-slim")
        assert json.loads(request.stdin)["config"] is None

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"executor": "docker"}, "`executor: docker` needs an `image`"),
            ({"image": "some/image"}, "`image` needs `executor: docker`"),
            ({"executor": "podman"}, "executor must be local or docker, not the text 'podman'"),
            ({"executor": "docker", "image": "--rm"}, "image must be the name of an image"),
        ],
    )
    def test_needs_an_image_for_that(self, fields: Mapping[str, str], told: str) -> None:
        with pytest.raises(InputError, match=re.escape(told)):
            _asked(**fields)

    def test_hands_other_keys_to_the_judge(self) -> None:
        told = json.loads(_asked(maxItems=3, config={"a": 1}).stdin)["config"]
        assert told == {"maxItems": 3, "config": {"a": 1}}

    def test_has_one_config_in_newer_files(self) -> None:
        told = json.loads(_asked(key="tests", maxItems=3, config={"a": 1}).stdin)["config"]
        assert told == {"maxItems": 3, "a": 1}

    def test_has_none_where_there_are_no_other_keys(self) -> None:
        assert json.loads(_asked().stdin)["config"] is None

    def test_needs_nothing_to_be_made_ready(self) -> None:
        assert _only(CODE).needs == ()


class TestTheAnswer:
    def test_passes_at_its_own_score(self) -> None:
        assert not _read(printed('{"score": 0.7}')).passed
        assert _read(printed('{"score": 0.7}'), min_score=0.7).passed
        assert _read(printed('{"score": 0.7}'), required=0.7).passed

    def test_without_a_score_is_the_share_of_assertions(self) -> None:
        told = {"assertions": [{"text": "a", "passed": True}, {"text": "b", "passed": False}]}
        judgement = _read(printed(json.dumps(told)))
        assert (judgement.score, judgement.hits, judgement.misses) == (0.5, ("a",), ("b",))

    def test_of_both_shapes_is_the_one_of_its_generation(self) -> None:
        told = {"score": 1, "hits": ["h"], "assertions": [{"text": "a", "passed": True}, 3]}
        response = printed(json.dumps(told))
        assert _read(response).hits == ("h",)
        assert _read(response, key="tests").hits == ("a",)

    def test_keeps_its_details_and_its_reasoning(self) -> None:
        judgement = _read(printed('{"score": 1, "details": {"n": 1}, "reasoning": "why"}'))
        assert (judgement.details, judgement.reasoning) == ({"n": 1}, "why")

    def test_of_a_flood_is_its_beginning(self) -> None:
        told = {"score": 1, "hits": ["x" * 2000] * 300, "details": {"n": 1}}
        judgement = _read(printed(json.dumps(told)))
        assert (len(judgement.hits), judgement.details) == (101, {})

    @pytest.mark.parametrize(
        ("response", "why"),
        [
            (printed("fine"), "printed an invalid result"),
            (printed(" \n"), "produced no output on stdout"),
            (printed("", exit_code=3, stderr="boom"), "exited with code 3: boom"),
            (printed('{"score": 1}', exit_code=1), "exited with code 1$"),
            (
                printed('{"score": 0, "misses": ["m"], "reasoning": "r"}', exit_code=1),
                "exited with code 1\nPrinted result:\n- m\n- r$",
            ),
        ],
    )
    def test_that_is_none_is_an_error(self, response: ProgramOutput, why: str) -> None:
        with pytest.raises(EvaluatorError, match=f"Evaluator `c` {why}"):
            _read(response)

    @pytest.mark.parametrize(("program", "is_told"), [("uv", True), ("python3", False)])
    def test_that_lacks_what_uv_would_have_installed_says_so(
        self, program: str, is_told: bool
    ) -> None:
        response = printed("", exit_code=1, stderr="ModuleNotFoundError: No module named 'rich'")
        with pytest.raises(EvaluatorError) as caught:
            _read(response, script=[program, "run", "judge.py"])
        assert ("install uv in an earlier step" in str(caught.value)) is is_told

    def test_of_another_engine_is_a_mistake_of_ours(self) -> None:
        with pytest.raises(TypeError):
            _only(CODE).read(MetricResult(score=1, turn_scores=()))


def test_no_number_is_a_zero() -> None:
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
        request = evaluator.ask(case(said("x")))
        assert isinstance(request, Compose)
        assert [name for name, _ in request.parts] == ["a", "b"]
        told = [{"score": s, "hits": ["h"], "misses": ["m"], "reasoning": "r"} for s in scores]
        return request.then(tuple(printed(json.dumps(each)) for each in told))

    def _settled(self, evaluator: Evaluator, *scores: float) -> Judgement:
        settled = self._then(evaluator, *scores)
        assert isinstance(settled, ConstantJudgement)
        return evaluator.read(settled)

    def test_is_the_weighted_mean(self) -> None:
        weighted = {"type": "weighted_average", "weights": {"a": 3}}
        assert self._settled(self._compose(weighted), 1.0, 0.0).score == 0.75

    def test_without_any_weight_is_a_zero(self) -> None:
        weights = {"type": "weighted_average", "weights": {"a": 0, "b": 0}}
        assert self._settled(self._compose(weights), 1.0, 1.0).score == 0.0

    def test_tells_of_its_members(self) -> None:
        judgement = self._settled(self._compose({"type": "weighted_average"}), 1.0, 0.6)
        assert judgement.hits == ("[a] h", "[b] h")
        assert judgement.reasoning == "a: r; b: r"
        assert judgement.details["members"] == {
            "a": {"score": 1.0, "verdict": "pass"},
            "b": {"score": 0.6, "verdict": "borderline"},
        }

    def test_may_be_the_share_that_passes(self) -> None:
        half = {"type": "threshold", "threshold": 0.5}
        judgement = self._settled(self._compose(half), 1.0, 0.0)
        assert (judgement.score, judgement.passed) == (0.5, True)
        assert judgement.hits[0] == "1/2 evaluators passed (threshold: 0.5)"
        judgement = self._settled(self._compose(half), 0.0, 0.0)
        assert (judgement.passed, judgement.misses[0]) == (
            False,
            "0/2 evaluators passed (threshold: 0.5)",
        )

    def test_may_be_left_to_a_program(self) -> None:
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
            "expectedAspectCount": 2,
            "reasoning": "r",
        }
        settled = request.then((printed('{"score": 0.9}'),))
        assert isinstance(settled, ConstantJudgement)
        assert evaluator.read(settled).score == 0.9

    def test_needs_what_its_members_need(self) -> None:
        assert self._compose({"type": "weighted_average"}).needs == ()

    def test_of_composites_tells_of_all_members(self) -> None:
        inner = {
            "name": "inner",
            "type": "composite",
            "aggregator": {"type": "weighted_average"},
            "evaluators": [{"name": "t", "type": "latency", "threshold": 1}],
        }
        outer = _only({**inner, "name": "outer", "evaluators": [inner]})
        request = outer.ask(case(said("x", duration_ms=1)))
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
