"""`repeat` runs an evaluator several times and aggregates its results."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentci.reports.results_schema import make_results_schema
from tests._util.http.servers import script, serve
from tests.e2e.dice import PROGRAM, cached_entry, dice, entry, judge
from tests.e2e.judged import JUDGE, at, scored, write
from tests.e2e.judged import judge as judge_cases
from tests.helpers.support import ROOT, Ran, run_agentci
from tests.helpers.waiting import wait_until

FLIPS = (0.9, 0.1, 0.8)
RANDOM = """\
import json, random, sys
json.load(sys.stdin)
print(json.dumps({"score": random.random()}))
"""
HANGS_AT = 0.5
HANGS = f"{PROGRAM}import time\nif json.loads(text)['score'] == {HANGS_AT}: time.sleep(300)\n"


def answered(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


class TestProgram:
    def test_program_runs_once_per_repeat(self, tmp_path: Path) -> None:
        with dice(tmp_path, {"a": FLIPS}) as thrown:
            judged = judge(tmp_path, evaluators=[entry(thrown, repeat=3)])
        result = judged.result
        assert (judged.ran.code, thrown.thrown["a"]) == (0, 3)
        assert (result["status"], result["score"]) == ("passed", pytest.approx(0.6))
        assert result["reason"] == "2 of 3 repeats passed: 0.9, 0.1, 0.8"
        assert result["repeats"] == {
            "aggregation": "majority",
            "flip_rate": pytest.approx(1 / 3),
            "repeats": [
                {"status": "passed", "score": 0.9, "reason": None},
                {"status": "failed", "score": 0.1, "reason": None},
                {"status": "passed", "score": 0.8, "reason": None},
            ],
        }

    def test_repeat_by_mean_compares_mean_with_threshold(self, tmp_path: Path) -> None:
        with dice(tmp_path, {"a": (0.6, 0.6, 0.1)}) as thrown:
            fields = {"repeat": 3, "repeat_by": "mean"}
            judged = judge(tmp_path, evaluators=[entry(thrown, **fields)])
        assert judged.ran.code == 1
        reason = "mean of 3 repeats: 0.6, 0.6, 0.1"
        assert (judged.result["status"], judged.result["reason"]) == ("failed", reason)

    def test_crash_errors_check_and_ends_repeats(self, tmp_path: Path) -> None:
        with dice(tmp_path, {"a": (0.9, None, 0.9)}) as thrown:
            judged = judge(tmp_path, evaluators=[entry(thrown, repeat=3)])
        assert (judged.ran.code, thrown.thrown["a"]) == (3, 2)
        assert judged.result["reason"].startswith("repeat 2 of 3: Evaluator `own` ")
        assert judged.result["repeats"]["flip_rate"] is None

    @pytest.mark.parametrize("isolation", ["fork", "spawn"])
    def test_random_state_differs_between_repeats(self, tmp_path: Path, isolation: str) -> None:
        with dice(tmp_path, {"a": FLIPS}) as thrown:
            (tmp_path / "own.py").write_text(RANDOM)
            judged = judge(tmp_path, evaluators=[entry(thrown, repeat=5, isolation=isolation)])
        repeats = judged.result["repeats"]["repeats"]
        assert len({each["score"] for each in repeats}) == 5

    def test_interrupted_repeats_give_no_result(self, tmp_path: Path) -> None:
        throws = (0.9, 0.9, 0.9, *(HANGS_AT for _ in range(96)))
        with dice(tmp_path, {"a": throws}) as thrown:
            (tmp_path / "own.py").write_text(HANGS)
            own = entry(thrown, repeat=99, timeout=900)
            config = {"traces": "a.json", "evaluators": [own]}
            (tmp_path / "agentci.yaml").write_text(json.dumps(config))
            process = subprocess.Popen(
                [sys.executable, "-m", "agentci", "run"],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            wait_until(lambda: thrown.thrown["a"] > 3)
            process.send_signal(signal.SIGINT)
            process.communicate()
        assert process.returncode == 130
        report = json.loads((tmp_path / "agentci-results" / "results.json").read_text())
        assert (report["complete"], report["results"]) == (False, [])


class TestCachedResponses:
    def test_each_repeat_is_cached_separately(self, tmp_path: Path) -> None:
        with dice(tmp_path, {"a": FLIPS, "b": (0.1, 0.2, 0.9)}) as thrown:
            first, second = (
                judge(tmp_path, evaluators=[cached_entry(thrown, repeat=3)]) for _ in range(2)
            )
        assert thrown.thrown == {"a": 3, "b": 3}
        assert [each["cached"] for each in second.results] == [True, True]
        assert [each.get("repeats") for each in first.results] == [
            each.get("repeats") for each in second.results
        ]

    def test_first_repeat_reuses_response_of_single_run(self, tmp_path: Path) -> None:
        with dice(tmp_path, {"a": FLIPS}) as thrown:
            judge(tmp_path, evaluators=[cached_entry(thrown)])
            again = judge(tmp_path, evaluators=[cached_entry(thrown, repeat=3)])
            once = judge(tmp_path, evaluators=[cached_entry(thrown)])
        assert thrown.thrown["a"] == 3
        assert [each["score"] for each in again.result["repeats"]["repeats"]] == [*FLIPS]
        assert (again.result["cached"], once.result["score"]) == (False, 0.9)

    def test_repeats_before_crash_are_cached(self, tmp_path: Path) -> None:
        with dice(tmp_path, {"a": (0.9, None, 0.8, 0.7)}) as thrown:
            judge(tmp_path, evaluators=[cached_entry(thrown, repeat=3)])
            again = judge(tmp_path, evaluators=[cached_entry(thrown, repeat=3)])
        assert thrown.thrown["a"] == 4
        repeats = again.result["repeats"]["repeats"]
        assert [each["score"] for each in repeats] == [0.9, 0.8, 0.7]

    @pytest.mark.parametrize(("options", "fields"), [(("--no-cache",), {}), ((), {"cache": False})])
    def test_disabled_cache_runs_all_repeats_again(
        self, tmp_path: Path, options: tuple[str, ...], fields: dict[str, bool]
    ) -> None:
        with dice(tmp_path, {"a": FLIPS}) as thrown:
            for _ in range(2):
                judge(tmp_path, *options, evaluators=[cached_entry(thrown, repeat=3, **fields)])
        assert thrown.thrown["a"] == 6


class TestJudge:
    def test_judge_is_called_per_repeat_and_cached(self, tmp_path: Path) -> None:
        answers = [scored(each) for each in (0.9, 0.1, 0.95)]
        with serve(script(*answers)) as server:
            runs = [
                judge_cases(tmp_path, at(server.url), *options, evaluators=[{**JUDGE, "repeat": 3}])
                for options in ((), ("--offline",))
            ]
        assert len(server.asked) == 3
        assert [run.statuses for run in runs] == [["passed"], ["passed"]]
        assert [run.cached for run in runs] == [[False], [True]]
        assert runs[0].reasons == runs[1].reasons == ["2 of 3 repeats passed: 0.9, 0.1, 0.95"]

    def test_missing_cached_repeat_errors_offline(self, tmp_path: Path) -> None:
        with serve(script(scored(0.9))) as server:
            judge_cases(tmp_path, at(server.url))
            run = judge_cases(
                tmp_path, at(server.url), "--offline", evaluators=[{**JUDGE, "repeat": 2}]
            )
        assert (len(server.asked), run.statuses) == (1, ["errored"])
        assert run.reasons[0].startswith("repeat 2 of 2: ")

    def test_each_repeat_takes_all_samples(self, tmp_path: Path) -> None:
        answers = [scored(each) for each in (0.9, 0.8, 1.0, 0.1, 0.2, 0.3)]
        with serve(script(*answers)) as server:
            judging = at(server.url, samples=3)
            runs = [
                judge_cases(tmp_path, judging, evaluators=[{**JUDGE, "repeat": 2}]) for _ in "12"
            ]
        assert len(server.asked) == 6
        for run in runs:
            repeats = run.report["results"][0]["repeats"]["repeats"]
            assert [each["score"] for each in repeats] == [0.9, 0.2]

    def test_composite_repeats_call_all_members(self, tmp_path: Path) -> None:
        composite = {
            "name": "both",
            "type": "composite",
            "repeat": 2,
            "aggregator": {"type": "weighted_average"},
            "evaluators": [JUDGE, {**JUDGE, "name": "k", "prompt": "{{candidate_answer}}?"}],
        }
        answers = [scored(each) for each in (0.8, 1.0, 0.1, 0.3)]
        with serve(script(*answers)) as server:
            run = judge_cases(tmp_path, at(server.url), evaluators=[composite])
        repeats = run.report["results"][0]["repeats"]["repeats"]
        assert [each["score"] for each in repeats] == [pytest.approx(0.9), pytest.approx(0.2)]
        assert len(server.asked) == 4


class TestReports:
    @pytest.fixture
    def ran(self, tmp_path: Path) -> Ran:
        with dice(tmp_path, {"a": (0.9, 0.9, 0.1), "b": (0.9,)}) as thrown:
            return judge(tmp_path, evaluators=[entry(thrown, repeat=3)]).ran

    def test_flaky_checks_are_reported(self, ran: Ran) -> None:
        line = "own: 1 of 2 checks flaky (flip rate 0.167)"
        assert f"\nRepeats\n  {line}" in ran.out
        folder = ran.folder / "agentci-results"
        assert f"### Repeats\n\n- {line}" in (folder / "summary.md").read_text()
        assert line in (folder / "report.html").read_text()

    def test_results_match_schema_and_contain_flip_rate(self, ran: Ran) -> None:
        jsonschema.validate(ran.results, make_results_schema())
        [row] = ran.results["evaluators"]
        assert row["flip_rate"] == pytest.approx(1 / 6)

    def test_junit_contains_repeats_and_flip_rate(self, ran: Ran) -> None:
        junit = (ran.folder / "agentci-results" / "junit.xml").read_text()
        assert junit.count('<property name="repeats" value="3"') == 2
        assert '<property name="flip_rate" value="0.333333"' in junit
        assert '<property name="flip_rate" value="0"' in junit


class TestPlan:
    def test_plan_shows_number_of_repeats(self, tmp_path: Path) -> None:
        with dice(tmp_path, {"a": FLIPS}) as thrown:
            judged = judge(tmp_path, "--plan", evaluators=[entry(thrown, repeat=3)])
        assert judged.ran.out.splitlines()[0].endswith(" for at most 30 s; 3 repeats")
        assert not thrown.thrown

    def test_shards_with_different_repeats_cannot_be_merged(self, tmp_path: Path) -> None:
        with dice(tmp_path, {"a": FLIPS, "b": FLIPS}) as thrown:
            for shard, repeat in ((1, 3), (2, 2)):
                options = ("--shard", f"{shard}/2", "--output-dir", f"s{shard}")
                judge(tmp_path, *options, evaluators=[entry(thrown, repeat=repeat)])
        ran = run_agentci(["merge", "s1", "s2"], cwd=tmp_path)
        assert ran.code == 2
        assert "has other checks, gates, evaluators or recorded runs" in ran.out


def test_merged_shards_contain_same_repeats_as_one_run(tmp_path: Path) -> None:
    throws = dict.fromkeys("abcd", FLIPS)
    with dice(tmp_path, throws) as thrown:
        evaluators = [entry(thrown, repeat=3)]
        whole = judge(tmp_path, evaluators=evaluators).report
        for shard in (1, 2):
            options = ("--shard", f"{shard}/2", "--output-dir", f"s{shard}")
            judge(tmp_path, *options, evaluators=evaluators)
    ran = run_agentci(["merge", "s1", "s2"], cwd=tmp_path)
    assert ran.code == 0
    assert [each.get("repeats") for each in ran.results["results"]] == [
        each.get("repeats") for each in whole["results"]
    ]
    assert "own: 4 of 4 checks flaky (flip rate 0.333)" in ran.out


def test_baseline_without_content_and_other_repeat_count_is_not_comparable(tmp_path: Path) -> None:
    outcomes: list[str] = []
    first = ("--output-dir", "earlier", "--content", "none")
    with dice(tmp_path, {"a": FLIPS}) as thrown:
        for repeat in (3, 3, 4):
            options = ("--baseline", "earlier") if outcomes else first
            judged = judge(tmp_path, *options, evaluators=[entry(thrown, repeat=repeat)])
            found = judged.report and judged.report["comparison"]["evaluators"][0]["outcome"]
            outcomes.append(found or "none")
    assert outcomes == ["none", "insufficient-data", "non-comparable"]


def test_each_trial_is_evaluated_with_all_repeats(tmp_path: Path) -> None:
    trials = {"count": 2, "strategy": "mean"}
    evaluators = [{**JUDGE, "repeat": 3}]
    answers = [scored(each) for each in (0.9, 0.1, 0.95, 0.2, 0.1, 0.3)]
    with serve(script(*answers)) as server:
        write(tmp_path, at(server.url), 1, evaluators, execution={"trials": trials})
        lines = [
            {"id": "c0", "attempt": attempt, "output_messages": [answered(text)]}
            for attempt, text in enumerate(("Paris.", "London."))
        ]
        (tmp_path / "out.jsonl").write_text("\n".join(map(json.dumps, lines)))
        ran = run_agentci(["run", "e.yaml"], cwd=tmp_path, environ={"KEY": "k"})
    [result] = ran.results["results"]
    assert len(server.asked) == 6
    means = [pytest.approx(0.65), pytest.approx(0.2)]
    assert [each["score"] for each in result["trials"]["trials"]] == means
    assert [each["score"] for each in result["repeats"]["repeats"]] == [0.9, 0.1, 0.95]


@pytest.mark.parametrize(
    ("evaluator", "message"),
    [
        (
            {"name": "response_match_score", "type": "builtin", "repeat": 3},
            "`repeat` has no effect here: the result for a recorded run never varies",
        ),
        (
            {
                "name": "same",
                "type": "openai_eval",
                "repeat": 3,
                "grader": {
                    "type": "string_check",
                    "input": "{{ item.actual_response }}",
                    "operation": "eq",
                    "reference": "x",
                },
            },
            "`repeat` has no effect here: the result for a recorded run never varies",
        ),
        (
            {"name": "own", "type": "code", "path": "own.py", "repeat": 100},
            "`repeat` must be a whole number from 1 to 99, not 100",
        ),
        (
            {"name": "own", "type": "code", "path": "own.py", "repeat_by": "mean"},
            "`repeat_by` has no effect without `repeat`",
        ),
        (
            {"name": "own", "type": "code", "path": "own.py", "repeat_by": "median"},
            "`repeat_by` must be majority or mean, not the string 'median'",
        ),
        (
            {
                "name": "p",
                "type": "prompt",
                "prompt": "{{response}}?",
                "threshold": True,
                "judge": {"command": ["true"]},
                "repeat": 3,
                "repeat_by": "mean",
            },
            "`repeat_by: mean` needs a score and a threshold; this evaluator has none",
        ),
    ],
)
def test_invalid_repeat_in_config_is_rejected(
    tmp_path: Path, evaluator: dict[str, Any], message: str
) -> None:
    with dice(tmp_path, {"a": FLIPS}):
        judged = judge(tmp_path, evaluators=[evaluator])
    assert judged.ran.code == 2
    assert message in judged.ran.out


def test_default_repeat_skips_deterministic_evaluators(tmp_path: Path) -> None:
    builtin = {"name": "response_match_score", "type": "builtin", "required": False}
    with dice(tmp_path, {"a": FLIPS}) as thrown:
        evaluators = [builtin, entry(thrown)]
        judged = judge(tmp_path, evaluators=evaluators, defaults={"repeat": 3})
    assert judged.ran.code == 0
    assert [bool(each.get("repeats")) for each in judged.report["results"]] == [False, True]


def test_default_repeat_by_without_any_repeat_is_rejected(tmp_path: Path) -> None:
    with dice(tmp_path, {"a": FLIPS}) as thrown:
        shared = {"repeat_by": "mean"}
        alone = judge(tmp_path, evaluators=[entry(thrown)], defaults=shared)
        evaluators = [entry(thrown, repeat=3), entry(thrown, name="once")]
        beside = judge(tmp_path, evaluators=evaluators, defaults=shared)
    assert alone.ran.code == 2
    assert "agentci.yaml:1" in alone.ran.out
    assert "`repeat_by` has no effect without `repeat`" in alone.ran.out
    assert [bool(each.get("repeats")) for each in beside.report["results"]] == [True, False]


@pytest.mark.parametrize(
    ("evaluator", "message"),
    [
        (
            {"name": "has", "type": "contains", "value": "x", "repeat": 3},
            "`repeat` has no effect here",
        ),
        ({**JUDGE, "repeat_by": "mean"}, "`repeat_by` has no effect without `repeat`"),
        (
            {
                "name": "both",
                "type": "composite",
                "aggregator": {"type": "weighted_average"},
                "evaluators": [{**JUDGE, "repeat": 2}],
            },
            "the member 'j' of a composite cannot have `repeat`",
        ),
        (
            {
                "name": "both",
                "type": "composite",
                "aggregator": {"type": "threshold", "threshold": 0.5},
                "evaluators": [{"name": "has", "type": "contains", "value": "x"}],
                "repeat": 3,
            },
            "`repeat` has no effect here",
        ),
    ],
)
def test_invalid_repeat_in_eval_file_is_rejected(
    tmp_path: Path, evaluator: dict[str, Any], message: str
) -> None:
    run = judge_cases(tmp_path, at("http://127.0.0.1:9"), evaluators=[evaluator])
    assert run.ran.code == 2
    assert message in run.ran.out
