"""Trials: several runs of each case of an eval file, by its agent or recorded."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.support import Ran, run_agentci

# Answers with the score of its attempt, or fails if that is null.
AGENT: Final = """\
import json, sys
scores, attempt, cost = json.loads(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
score = scores[attempt]
if score is None:
    sys.exit("no API key")
print(json.dumps({"text": json.dumps(score), **({"cost_usd": cost} if cost else {})}))
"""
JUDGE: Final = """\
import json, sys
answer = json.loads(json.load(sys.stdin)["candidate_answer"])
print(json.dumps({"score": answer[sys.argv[1]] if isinstance(answer, dict) else answer}))
"""
Answer = float | Mapping[str, float] | None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "judge.py").write_text(JUDGE)
    return tmp_path


def _evaluator(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "type": "code_judge", "script": ["python3", "judge.py", name], **fields}


def _file(
    folder: Path,
    answers: Sequence[Answer] | None,
    *,
    cost: float = 0,
    evaluators: Sequence[Mapping[str, Any]] = (_evaluator("one"),),
    gate: Mapping[str, Any] | None = None,
    **trials: Any,
) -> None:
    content: dict[str, Any] = {
        "cases": [{"id": "a", "criteria": "c", "input": "q"}],
        "execution": {"trials": {"count": 3, **trials}, "evaluators": [*evaluators]},
        "gate": gate or {},
    }
    if answers is not None:
        arguments = [json.dumps(answers), "{ATTEMPT}", json.dumps(cost)]
        content["target"] = {"command": [sys.executable, "agent.py", *arguments]}
    (folder / "x.eval.yaml").write_text(json.dumps(content))


def _record(folder: Path, *rows: dict[str, Any]) -> None:
    lines = (json.dumps({"id": "a", **row}) for row in rows)
    (folder / "x.outputs.jsonl").write_text("\n".join(lines))


def _run(folder: Path, *options: str) -> Ran:
    return run_agentci(["run", "x.eval.yaml", *options], cwd=folder)


def _scores(row: Mapping[str, Any]) -> list[float | None]:
    return [trial["score"] for trial in row["trials"]["trials"]]


def _messages(ran: Ran) -> list[str]:
    return [problem["message"] for problem in ran.results["problems"]]


class TestBestTrial:
    def test_passing_trial_ends_trials(self, folder: Path) -> None:
        _file(folder, [0.2, 0.9, 1.0])
        ran = _run(folder)
        [row] = ran.results["results"]
        assert (ran.code, row["score"], _scores(row)) == (0, 0.9, [0.2, 0.9])
        assert ran.results["cases"][0]["turns"][0]["answer"] == "0.9"

    def test_case_fails_if_all_trials_fail(self, folder: Path) -> None:
        _file(folder, [0.2, 0.7, 0.3])
        ran = _run(folder)
        [row] = ran.results["results"]
        assert (ran.code, row["score"], _scores(row)) == (1, 0.7, [0.2, 0.7, 0.3])

    def test_best_trial_passes_all_required_evaluators(self, folder: Path) -> None:
        both = [_evaluator("one"), _evaluator("other"), _evaluator("hint", required=False)]
        answers = [{"one": 1, "other": 0.7, "hint": 1}, {"one": 0.8, "other": 0.8, "hint": 0}]
        _file(folder, answers, evaluators=both)
        rows = _run(folder).results["results"]
        assert [row["score"] for row in rows] == [0.8, 0.8, 0]

    def test_best_trial_uses_case_gate(self, folder: Path) -> None:
        both = [_evaluator("one"), _evaluator("other")]
        answers = [{"one": 1, "other": 0.7}, {"one": 0.8, "other": 0.8}]
        _file(folder, answers, evaluators=both, gate={"cases": {"threshold": 0.8}})
        ran = _run(folder)
        assert [row["score"] for row in ran.results["results"]] == [1, 0.7]
        vital = [_evaluator("one"), _evaluator("other", required=True)]
        _file(folder, answers, evaluators=vital, gate={"cases": {"threshold": 0.8}})
        ran = _run(folder)
        assert [row["score"] for row in ran.results["results"]] == [0.8, 0.8]

    def test_best_trial_follows_errored_trial(self, folder: Path) -> None:
        _file(folder, [None, 0.9])
        [row] = _run(folder).results["results"]
        assert (row["status"], _scores(row)) == ("passed", [None, 0.9])
        reason = row["trials"]["trials"][0]["reason"]
        assert reason.startswith("the agent exited with code 1: no API key\n(the agent sees only")

    def test_case_errors_if_all_trials_error(self, folder: Path) -> None:
        _file(folder, [None, None, None])
        ran = _run(folder)
        assert (ran.code, ran.results["results"][0]["status"]) == (3, "errored")


def test_plan_shows_number_of_trials(folder: Path) -> None:
    _file(folder, [1.0])
    assert (
        " 2 min; evaluate; up to 3 trials\n" in run_agentci(["plan", "x.eval.yaml"], cwd=folder).out
    )


class TestMeanOfTrials:
    def test_mean_includes_all_trials(self, folder: Path) -> None:
        _file(folder, [0.7, 0.9, 0.8], strategy="mean")
        [row] = _run(folder).results["results"]
        assert (row["status"], row["score"]) == ("passed", pytest.approx(0.8))
        assert row["reason"] == "mean of 3 trials: 0.7, 0.9, 0.8"

    def test_errored_trial_errors_mean(self, folder: Path) -> None:
        _file(folder, [1.0, None, 1.0], strategy="mean")
        ran = _run(folder)
        assert (ran.code, ran.results["results"][0]["status"]) == (3, "errored")
        assert "1 of 3 trials errored" in ran.results["results"][0]["reason"]


class TestCosts:
    def test_cost_limit_ends_trials(self, folder: Path) -> None:
        _file(folder, [0.7, 0.9, 0.8], cost=0.5, strategy="mean", cost_limit_usd=1.0)
        [row] = _run(folder).results["results"]
        assert (_scores(row), row["trials"]["cost_limited"]) == ([0.7, 0.9], True)

    def test_cost_limit_without_reported_costs_is_warning(self, folder: Path) -> None:
        _file(folder, [0.7, 0.9, 0.8], strategy="mean", cost_limit_usd=1.0)
        ran = _run(folder)
        assert _messages(ran) == [
            "`cost_limit_usd` has no effect: no output reports its `cost_usd`"
        ]
        assert not ran.results["results"][0]["trials"]["cost_limited"]


class TestRecordedOutputs:
    def test_recorded_outputs_are_used_as_trials(self, folder: Path) -> None:
        _file(folder, None, strategy="mean")
        _record(folder, {"text": "0.7"}, {"attempt": 2, "text": "0.8"}, {"text": "0.9"})
        ran = _run(folder)
        assert (ran.code, _messages(ran)) == (0, [])
        assert _scores(ran.results["results"][0]) == [0.7, 0.9, 0.8]

    def test_too_few_recorded_outputs_are_warning(self, folder: Path) -> None:
        _file(folder, None, strategy="mean", cost_limit_usd=2)
        _record(folder, {"text": "0.9", "cost_usd": 1})
        ran = _run(folder)
        assert (ran.code, _messages(ran)) == (
            0,
            ["`trials` needs 3 recorded outputs per case: 'a' has 1"],
        )
        _record(folder, {"text": "0.9", "cost_usd": 2})
        assert _messages(_run(folder)) == []

    def test_case_without_recorded_output_is_errored(self, folder: Path) -> None:
        _file(folder, None)
        _record(folder, {"id": "b", "text": "0.9"})
        ran = _run(folder)
        assert (ran.code, ran.results["results"][0]["status"]) == (3, "errored")

    def test_surplus_or_duplicate_attempts_are_reported(self, folder: Path) -> None:
        _file(folder, None)
        _record(folder, *[{"text": "0.9"}] * 4)
        assert _messages(_run(folder)) == ["case 'a' has more recorded outputs than trials (3)"]
        _record(folder, *[{"text": "0.9", "attempt": 1}] * 2)
        assert _messages(_run(folder)) == ["case 'a' has two recorded outputs of attempt 1"]

    def test_invalid_attempt_number_is_reported(self, folder: Path) -> None:
        _file(folder, None)
        _record(folder, {"text": "0.9", "attempt": -1})
        [message] = _messages(_run(folder))
        assert "`attempt` is not a whole number from 0" in message

    def test_agent_runs_only_missing_attempts(self, folder: Path) -> None:
        _file(folder, [0.1, 0.2, 0.3], strategy="mean")
        _record(folder, {"text": "0.9"}, {"attempt": 2, "text": "0.9"})
        [row] = _run(folder).results["results"]
        assert _scores(row) == [0.9, 0.2, 0.9]

    def test_recorded_trials_of_agent_reproduce_result(self, folder: Path) -> None:
        _file(folder, [0.7, 0.9, 0.8], cost=0.5, strategy="mean", cost_limit_usd=1.0)
        first = _run(folder).results["results"][0]
        ran = _run(folder, "--traces", "agentci-results/x.outputs.jsonl", "--offline")
        again = ran.results["results"][0]
        assert (again["score"], again["trials"]) == (first["score"], first["trials"])
