"""Cached judge responses are used only for exactly the same prompt and settings."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests._util.http.servers import script, serve
from tests.e2e.judged import JUDGE, KEY, at, judge, scored
from tests.helpers.support import ROOT, cache_of
from tests.judges.bench import refused, said

GOOD = scored(0.9, prompt_tokens=100, completion_tokens=20)
VOTES = [said(json.dumps({"reasoning": "so", "score": each})) for each in (0.9, 0.2, 0.8)]


def without_times(report: Any) -> Any:
    for result in report["results"]:
        del result["seconds"], result["cached"]
    del report["judges"]
    return report


class TestUnchangedPrompt:
    def test_unchanged_prompt_is_sent_once(self, tmp_path: Path) -> None:
        with serve(script(GOOD)) as server:
            first, second = (judge(tmp_path, at(server.url), cases=3) for _ in range(2))
        assert len(server.asked) == 3
        assert (first.cached, second.cached) == ([False] * 3, [True] * 3)
        assert second.statuses == ["passed"] * 3

    def test_cached_run_writes_same_report_except_durations(self, tmp_path: Path) -> None:
        with serve(script(*VOTES)) as server:
            runs = [judge(tmp_path, at(server.url, samples=3)) for _ in "12"]
        assert len(server.asked) == 3
        reports = [without_times(run.report) for run in runs]
        assert reports[0] == reports[1]
        assert reports[0]["results"][0]["details"]["judge"] == {
            "model": "m",
            "samples": 3,
            "verdicts": 3,
            "split": True,
            "tokens": {"read": None, "written": None},
        }

    def test_only_missing_samples_are_requested(self, tmp_path: Path) -> None:
        with serve(script(*VOTES)) as server:
            judge(tmp_path, at(server.url, samples=1))
            more = judge(tmp_path, at(server.url, samples=3))
        assert (len(server.asked), more.cached) == (3, [False])
        assert more.report["results"][0]["score"] == 0.8

    def test_cached_response_is_evaluated_with_current_threshold(self, tmp_path: Path) -> None:
        with serve(script(GOOD)) as server:
            judge(tmp_path, at(server.url))
            strict = {**JUDGE, "required": 0.95}
            second = judge(tmp_path, at(server.url), evaluators=[strict])
        assert (len(server.asked), second.cached, second.statuses) == (1, [True], ["failed"])

    def test_key_and_price_do_not_affect_cache(self, tmp_path: Path) -> None:
        with serve(script(GOOD)) as server:
            judge(tmp_path, at(server.url))
            other = at(server.url, api_key_env="OTHER", price={"input": 1, "output": 1})
            second = judge(tmp_path, other, environ={"OTHER": "k2"})
        assert (len(server.asked), second.cached) == (1, [True])
        assert KEY.encode() not in (cache_of(tmp_path) / "responses.sqlite3").read_bytes()

    def test_judge_command_response_is_cached(self, tmp_path: Path) -> None:
        (tmp_path / "rate.py").write_text("print('{\"score\": 1}')")
        command = {"command": [sys.executable, "rate.py"]}
        assert [judge(tmp_path, command).cached for _ in "12"] == [[False], [True]]
        (tmp_path / "rate.py").write_text("print('{\"score\": 0}')")
        again = judge(tmp_path, command)
        assert (again.cached, again.statuses) == ([False], ["failed"])

    def test_judge_command_is_run_again_if_a_module_changes(self, tmp_path: Path) -> None:
        (tmp_path / "rate.py").write_text("import scale\nprint('{\"score\": %s}' % scale.SCORE)")
        (tmp_path / "scale.py").write_text("SCORE = 1")
        (tmp_path / "unused.py").write_text("")
        command = {"command": [sys.executable, "rate.py"]}
        assert [judge(tmp_path, command).cached for _ in "12"] == [[False], [True]]
        (tmp_path / "unused.py").write_text("SCORE = 0")
        assert judge(tmp_path, command).cached == [True]
        (tmp_path / "scale.py").write_text("SCORE = 0")
        again = judge(tmp_path, command)
        assert (again.cached, again.statuses) == ([False], ["failed"])

    def test_composite_members_are_cached(self, tmp_path: Path) -> None:
        members = [JUDGE, {"name": "k", "type": "llm_judge"}, {"name": "has", "type": "contains"}]
        members[2]["value"] = "Paris"
        composite = {
            "name": "all",
            "type": "composite",
            "evaluators": members,
            "aggregator": {"type": "weighted_average"},
        }
        with serve(script(GOOD)) as server:
            runs = [judge(tmp_path, at(server.url), evaluators=[composite]) for _ in "12"]
        assert [run.cached for run in runs] == [[False], [True]]
        judges = runs[1].report["results"][0]["details"]["judges"]
        assert [(each["name"], each["tokens"]["read"]) for each in judges] == [
            ("j", 100),
            ("k", 100),
        ]


def test_judge_usage_and_savings_are_reported(tmp_path: Path) -> None:
    priced = {"price": {"input": 1.0, "output": 10.0}}
    with serve(script(said("Hm."), GOOD)) as server:
        first, second = (judge(tmp_path, at(server.url, **priced), cases=2) for _ in "12")
        third = judge(tmp_path, at(server.url), cases=2)
    nothing = {"calls": 0, "tokens": 0, "usd": 0.0}
    [usage] = first.report["judges"]
    assert (usage["config"], usage["saved"]) == ("e.yaml", nothing)
    # The request without a verdict was repeated, and both are paid for.
    assert usage["spent"]["calls"] == 3
    assert usage["spent"]["tokens"] > 240
    assert second.report["judges"] == [
        {
            "config": "e.yaml",
            "spent": nothing,
            "saved": {"calls": 2, "tokens": 240, "usd": 0.0006},
        }
    ]
    saved = "saved by cached responses: 2 calls, 240 tokens, $0.0006"
    line = f"Judge usage: 0 calls, 0 tokens, $0; {saved}"
    assert f"\n{line}\n" in second.ran.out
    assert third.report["judges"][0]["saved"] == {"calls": 2, "tokens": 240, "usd": None}


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"temperature": 0.5},
        {"effort": "low"},
        {"max_output_tokens": 2000},
        {"provider": "anthropic", "cache": True},
    ],
    ids=str,
)
def test_changed_judge_setting_sends_prompt_again(
    tmp_path: Path, change: Mapping[str, Any]
) -> None:
    with serve(script(GOOD)) as server:
        judge(tmp_path, at(server.url))
        second = judge(tmp_path, at(server.url, **change))
    assert (len(server.asked), second.cached) == (2, [False])


def test_new_case_is_evaluated_beside_cached_one(tmp_path: Path) -> None:
    with serve(script(GOOD)) as server:
        judge(tmp_path, at(server.url), cases=1)
        second = judge(tmp_path, at(server.url), cases=2)
    assert (len(server.asked), second.cached) == (2, [True, False])


@pytest.mark.parametrize(
    "answer", [said("It is good."), said('{"score": 1}', "length"), refused(401)]
)
def test_response_without_verdict_is_not_cached(tmp_path: Path, answer: Any) -> None:
    with serve(script(answer)) as server:
        assert judge(tmp_path, at(server.url)).statuses == ["errored"]
    with serve(script(GOOD)) as server:
        again = judge(tmp_path, at(server.url))
    # The URL of the service is part of the cache key.
    assert (again.statuses, again.cached, len(server.asked)) == (["passed"], [False], 1)


def test_verdicts_are_cached_despite_refused_sample(tmp_path: Path) -> None:
    answers = (said("Hm.", "content_filter"), *VOTES[:2])
    with serve(script(*answers, refused(500))) as server:
        first = judge(tmp_path, at(server.url, samples=3))
        second = judge(tmp_path, at(server.url, samples=3, replay="only"))
    assert len(server.asked) == 3
    assert first.report["results"][0]["score"] == second.report["results"][0]["score"] == 0.55
    assert second.cached == [True]


@pytest.mark.parametrize("options", [(), ("--no-cache",)])
def test_equal_prompts_in_one_run_share_response(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Otherwise a later run, which finds one response, would give another result."""
    names = [{**JUDGE, "name": f"j{i}"} for i in range(6)]
    scores = [scored(each / 10) for each in range(10)]
    with serve(script(*scores)) as server:
        first = judge(tmp_path, at(server.url), *options, "--jobs", "6", evaluators=names)
        second = judge(tmp_path, at(server.url), evaluators=names)
    found = [[each["score"] for each in run.report["results"]] for run in (first, second)]
    assert found == [[0.0] * 6] * 2
    assert len(server.asked) == 1


class TestCachingDisabled:
    def test_no_cache_option_sends_prompt_again(self, tmp_path: Path) -> None:
        with serve(script(GOOD)) as server:
            runs = [judge(tmp_path, at(server.url), *given) for given in ((), ("--no-cache",), ())]
        assert len(server.asked) == 2
        assert [run.cached for run in runs] == [[False], [False], [True]]

    def test_cache_false_neither_reads_nor_writes(self, tmp_path: Path) -> None:
        with serve(script(GOOD)) as server:
            runs = [judge(tmp_path, at(server.url, cache=False)) for _ in "12"]
            after = judge(tmp_path, at(server.url))
        assert [run.cached for run in (*runs, after)] == [[False]] * 3
        assert len(server.asked) == 3

    def test_cache_false_applies_to_one_evaluator(self, tmp_path: Path) -> None:
        two: list[Any] = [
            JUDGE,
            {"name": "k", "type": "llm_judge", "judge": {"cache": False, "effort": "x"}},
        ]
        with serve(script(GOOD)) as server:
            runs = [judge(tmp_path, at(server.url), evaluators=two) for _ in "12"]
        assert [run.cached for run in runs] == [[False, False], [True, False]]

    def test_cache_false_with_replay_only_is_rejected(self, tmp_path: Path) -> None:
        found = judge(tmp_path, at("http://localhost:1", cache=False, replay="only"))
        assert found.ran.code == 2
        assert "`cache: false` and `replay: only` exclude each other" in found.ran.out


class TestCacheOnly:
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        """The URL of a stopped server that has answered one case."""
        with serve(script(GOOD)) as server:
            judge(tmp_path, at(server.url))
            return server.url

    def test_replay_only_works_without_key(self, tmp_path: Path, url: str) -> None:
        found = judge(tmp_path, at(url, replay="only"), cases=2, environ={})
        assert (found.ran.code, found.statuses) == (3, ["passed", "errored"])
        assert found.cached == [True, False]
        assert found.reasons[1] == (
            "no cached response for this prompt, and `replay: only` calls no model"
        )

    def test_offline_works_without_key(self, tmp_path: Path, url: str) -> None:
        found = judge(tmp_path, at(url), "--offline", cases=2, environ={})
        assert (found.ran.code, found.statuses) == (3, ["passed", "errored"])
        assert found.reasons[1] == (
            "no cached response for this prompt, and `--offline` calls no model"
        )

    def test_replay_only_errors_without_cache(self, tmp_path: Path, url: str) -> None:
        (cache_of(tmp_path) / "responses.sqlite3").unlink()
        found = judge(tmp_path, at(url, replay="only"), environ={})
        assert (found.ran.code, found.statuses) == (3, ["errored"])


def test_corrupt_response_is_requested_again(tmp_path: Path) -> None:
    with serve(script(GOOD)) as server:
        judge(tmp_path, at(server.url))
        with sqlite3.connect(cache_of(tmp_path) / "responses.sqlite3") as file:
            file.execute("UPDATE responses SET stdout = replace(stdout, '0.9', '0.1')")
        file.close()
        found = [judge(tmp_path, at(server.url)) for _ in "12"]
    assert (len(server.asked), [run.cached for run in found]) == (2, [[False], [True]])
    assert found[1].statuses == ["passed"]


def test_concurrent_runs_share_response_cache(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    cache = ("--cache-dir", str(tmp_path / "cache"))
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from tests.e2e.judged import at, judge\n"
        "judge(Path(sys.argv[1]), at(sys.argv[2]), *sys.argv[3:], cases=8)"
    )
    with serve(script(GOOD)) as server:
        runs = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(folder), server.url, *cache],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            for folder in folders
        ]
        assert [each.wait() for each in runs] == [0, 0]
        asked = len(server.asked)
        after = judge(folders[0], at(server.url), *cache, cases=8)
    assert after.cached == [True] * 8
    assert len(server.asked) == asked
