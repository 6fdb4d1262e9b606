"""Several runs of each case of an eval file: made by its agent, or recorded."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.support import Ran, run_agentci

# Answers with the next of its scores, or fails where that is none.
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
        said = [json.dumps(answers), "{ATTEMPT}", json.dumps(cost)]
        content["target"] = {"command": [sys.executable, "agent.py", *said]}
    (folder / "x.eval.yaml").write_text(json.dumps(content))


def _record(folder: Path, *rows: dict[str, Any]) -> None:
    lines = (json.dumps({"id": "a", **row}) for row in rows)
    (folder / "x.outputs.jsonl").write_text("\n".join(lines))


def _run(folder: Path, *options: str) -> Ran:
    return run_agentci(["run", "x.eval.yaml", *options], cwd=folder)


def _scores(row: Mapping[str, Any]) -> list[float | None]:
    return [trial["score"] for trial in row["trials"]["trials"]]


def _told(ran: Ran) -> list[str]:
    return [problem["message"] for problem in ran.results["problems"]]


class TestTheBestRun:
    def test_ends_the_trials_where_it_passes(self, folder: Path) -> None:
        _file(folder, [0.2, 0.9, 1.0])
        ran = _run(folder)
        [row] = ran.results["results"]
        assert (ran.code, row["score"], _scores(row)) == (0, 0.9, [0.2, 0.9])
        assert ran.results["cases"][0]["turns"][0]["answer"] == "0.9"

    def test_of_three_that_fail_fails(self, folder: Path) -> None:
        _file(folder, [0.2, 0.7, 0.3])
        ran = _run(folder)
        [row] = ran.results["results"]
        assert (ran.code, row["score"], _scores(row)) == (1, 0.7, [0.2, 0.7, 0.3])

    def test_is_the_first_that_passes_by_all_evaluators(self, folder: Path) -> None:
        both = [_evaluator("one"), _evaluator("other"), _evaluator("hint", required=False)]
        answers = [{"one": 1, "other": 0.7, "hint": 1}, {"one": 0.8, "other": 0.8, "hint": 0}]
        _file(folder, answers, evaluators=both)
        rows = _run(folder).results["results"]
        assert [row["score"] for row in rows] == [0.8, 0.8, 0]

    def test_is_the_first_whose_case_passes_where_the_gate_looks_at_cases(
        self, folder: Path
    ) -> None:
        both = [_evaluator("one"), _evaluator("other")]
        answers = [{"one": 1, "other": 0.7}, {"one": 0.8, "other": 0.8}]
        _file(folder, answers, evaluators=both, gate={"cases": {"threshold": 0.8}})
        ran = _run(folder)
        assert [row["score"] for row in ran.results["results"]] == [1, 0.7]
        vital = [_evaluator("one"), _evaluator("other", required=True)]
        _file(folder, answers, evaluators=vital, gate={"cases": {"threshold": 0.8}})
        ran = _run(folder)
        assert [row["score"] for row in ran.results["results"]] == [0.8, 0.8]

    def test_may_come_after_one_that_could_not_be_judged(self, folder: Path) -> None:
        _file(folder, [None, 0.9])
        [row] = _run(folder).results["results"]
        assert (row["status"], _scores(row)) == ("passed", [None, 0.9])
        reason = row["trials"]["trials"][0]["reason"]
        assert reason.startswith("the agent exited with code 1: no API key\n(the agent sees only")

    def test_of_none_that_could_be_judged_is_errored(self, folder: Path) -> None:
        _file(folder, [None, None, None])
        ran = _run(folder)
        assert (ran.code, ran.results["results"][0]["status"]) == (3, "errored")


def test_a_plan_says_how_many_there_may_be(folder: Path) -> None:
    _file(folder, [1.0])
    assert "s; evaluate; up to 3 trials\n" in run_agentci(["plan", "x.eval.yaml"], cwd=folder).out


class TestTheMean:
    def test_is_taken_over_all_runs(self, folder: Path) -> None:
        _file(folder, [0.7, 0.9, 0.8], strategy="mean")
        [row] = _run(folder).results["results"]
        assert (row["status"], row["score"]) == ("passed", pytest.approx(0.8))
        assert row["reason"] == "mean of 3 trials: 0.7, 0.9, 0.8"

    def test_is_none_where_a_run_could_not_be_judged(self, folder: Path) -> None:
        _file(folder, [1.0, None, 1.0], strategy="mean")
        ran = _run(folder)
        assert (ran.code, ran.results["results"][0]["status"]) == (3, "errored")
        assert "1 of 3 trials errored" in ran.results["results"][0]["reason"]


class TestCosts:
    def test_end_the_trials_at_their_limit(self, folder: Path) -> None:
        _file(folder, [0.7, 0.9, 0.8], cost=0.5, strategy="mean", cost_limit_usd=1.0)
        [row] = _run(folder).results["results"]
        assert (_scores(row), row["trials"]["cost_limited"]) == ([0.7, 0.9], True)

    def test_that_nobody_tells_are_warned_of(self, folder: Path) -> None:
        _file(folder, [0.7, 0.9, 0.8], strategy="mean", cost_limit_usd=1.0)
        ran = _run(folder)
        assert _told(ran) == ["`cost_limit_usd` has no effect: no output reports its `cost_usd`"]
        assert not ran.results["results"][0]["trials"]["cost_limited"]


class TestRecordedRuns:
    def test_are_the_trials_of_a_file_without_an_agent(self, folder: Path) -> None:
        _file(folder, None, strategy="mean")
        _record(folder, {"text": "0.7"}, {"attempt": 2, "text": "0.8"}, {"text": "0.9"})
        ran = _run(folder)
        assert (ran.code, _told(ran)) == (0, [])
        assert _scores(ran.results["results"][0]) == [0.7, 0.9, 0.8]

    def test_that_are_fewer_than_wanted_are_warned_of(self, folder: Path) -> None:
        _file(folder, None, strategy="mean", cost_limit_usd=2)
        _record(folder, {"text": "0.9", "cost_usd": 1})
        ran = _run(folder)
        assert (ran.code, _told(ran)) == (
            0,
            ["`trials` needs 3 recorded outputs per case: 'a' has 1"],
        )
        _record(folder, {"text": "0.9", "cost_usd": 2})
        assert _told(_run(folder)) == []

    def test_of_other_cases_leave_one_without_any_errored(self, folder: Path) -> None:
        _file(folder, None)
        _record(folder, {"id": "b", "text": "0.9"})
        ran = _run(folder)
        assert (ran.code, ran.results["results"][0]["status"]) == (3, "errored")

    def test_have_a_number_each(self, folder: Path) -> None:
        _file(folder, None)
        _record(folder, *[{"text": "0.9"}] * 4)
        assert _told(_run(folder)) == ["case 'a' has more recorded outputs than trials (3)"]
        _record(folder, *[{"text": "0.9", "attempt": 1}] * 2)
        assert _told(_run(folder)) == ["case 'a' has two recorded outputs of attempt 1"]

    def test_that_say_an_odd_number_are_a_problem(self, folder: Path) -> None:
        _file(folder, None)
        _record(folder, {"text": "0.9", "attempt": -1})
        [told] = _told(_run(folder))
        assert "`attempt` is not a whole number from 0" in told

    def test_are_not_made_again(self, folder: Path) -> None:
        _file(folder, [0.1, 0.2, 0.3], strategy="mean")
        _record(folder, {"text": "0.9"}, {"attempt": 2, "text": "0.9"})
        [row] = _run(folder).results["results"]
        assert _scores(row) == [0.9, 0.2, 0.9]

    def test_that_an_agent_has_made_say_the_same_again(self, folder: Path) -> None:
        _file(folder, [0.7, 0.9, 0.8], cost=0.5, strategy="mean", cost_limit_usd=1.0)
        first = _run(folder).results["results"][0]
        ran = _run(folder, "--traces", "agentci-results/x.outputs.jsonl", "--offline")
        again = ran.results["results"][0]
        assert (again["score"], again["trials"]) == (first["score"], first["trials"])
