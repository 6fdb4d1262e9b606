"""A model judges: what it is asked, what becomes of its answer, and what keeps it from that."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.http.servers import Answer, script, serve
from tests.judges.bench import refused, said
from tests.support import Ran, run_agentci

GOOD = said(json.dumps({"reasoning": "so", "hits": ["h"], "misses": [], "score": 0.9}))
BAD = said(json.dumps({"reasoning": "no", "hits": [], "misses": ["m"], "score": 0.3}))
KEY = "sk-secret-0123456789"


def run(folder: Path, judge: dict[str, Any] | None, *options: str, cases: int = 1) -> Ran:
    """Have a model judge ``cases`` answers."""
    evaluators = [{"name": "j", "type": "llm_judge"}]
    listed = [
        {"id": f"c{i}", "criteria": "says Paris", "input": "Capital?", "evaluators": evaluators}
        for i in range(cases)
    ]
    outputs = [
        {"id": f"c{i}", "output_messages": [{"role": "assistant", "content": f"Paris {i}"}]}
        for i in range(cases)
    ]
    file = {"outputs": "out.jsonl", "cases": listed, **({"judge": judge} if judge else {})}
    (folder / "e.yaml").write_text(json.dumps(file))
    (folder / "out.jsonl").write_text("\n".join(map(json.dumps, outputs)))
    environ = {"KEY": KEY, "OPENAI_API_KEY": "sk-other"}
    return run_agentci(["run", "e.yaml", *options], cwd=folder, environ=environ)


def at(url: str, **others: Any) -> dict[str, Any]:
    return {"provider": "openai", "model": "m", "base_url": url, "api_key_env": "KEY", **others}


def test_a_good_answer_passes(tmp_path: Path) -> None:
    with serve(script(GOOD)) as server:
        ran = run(tmp_path, at(server.url))
    [result] = ran.results["results"]
    assert (ran.code, result["status"], result["score"]) == (0, "passed", 0.9)
    assert (result["hits"], result["misses"], result["reasoning"]) == (["h"], [], "so")
    [asked] = server.asked
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert "says Paris" in asked.body.decode()
    assert "Paris 0" in asked.body.decode()


def test_a_bad_answer_shuts_the_gate(tmp_path: Path) -> None:
    with serve(script(BAD)) as server:
        ran = run(tmp_path, at(server.url))
    [result] = ran.results["results"]
    assert (ran.code, result["status"], result["misses"]) == (1, "failed", ["m"])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (said("It is good."), "the judge's reply holds no verdict"),
        (said('{"score": 1'), "the judge's reply holds"),
        (said('{"score": 1}', "length"), "cut off"),
        (said("", "content_filter"), "refused to reply"),
        (refused(401, message="bad key"), "see whether the key in KEY is the right one"),
    ],
)
def test_what_is_no_verdict_neither_passes_nor_fails(
    tmp_path: Path, answer: Answer, why: str
) -> None:
    with serve(script(answer)) as server:
        ran = run(tmp_path, at(server.url))
    [result] = ran.results["results"]
    assert (ran.code, result["status"], result["score"]) == (3, "errored", None)
    assert why in result["reason"]
    assert KEY not in (tmp_path / "agentci-results" / "results.json").read_text() + ran.out


def test_the_budget_is_that_of_the_whole_run(tmp_path: Path) -> None:
    with serve(script(GOOD)) as server:
        ran = run(tmp_path, at(server.url, max_calls=2), cases=3)
    statuses = [result["status"] for result in ran.results["results"]]
    assert sorted(statuses) == ["errored", "passed", "passed"]
    assert len(server.asked) == 2
    [why] = [each["reason"] for each in ran.results["results"] if each["status"] == "errored"]
    assert "max_calls is 2" in why


def test_the_model_can_be_named_on_the_command_line(tmp_path: Path) -> None:
    with serve(script(GOOD)) as server:
        run(tmp_path, at(server.url), "--judge-model", "other")
    assert json.loads(server.asked[0].body)["model"] == "other"


def test_a_program_can_judge(tmp_path: Path) -> None:
    code = "import sys; print('{\"score\": %d}' % ('Paris 0' in sys.stdin.read()))"
    ran = run(tmp_path, {"command": [sys.executable, "-c", code]})
    assert (ran.code, ran.results["results"][0]["score"]) == (0, 1.0)


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        (None, "e.yaml:1:133: it asks a model, and no `judge` says which one"),
        ({"provider": "openai"}, "j cannot be judged: no model is named"),
        (
            {"provider": "openai", "model": "m", "api_key_env": "NOPE"},
            "the environment variable NOPE, for the judge's key, is not set",
        ),
        (
            {"provider": "openai", "model": "m", "base_url": "https://models.github.ai/inference"},
            "GitHub Models, which ended on 2026-07-30",
        ),
        ({"provider": "opennai", "model": "m"}, "did you mean 'openai'?"),
        ({"provider": "openai", "modle": "m"}, "unknown key 'modle' (did you mean 'model'?)"),
        (
            {"provider": "openai", "model": "m", "samples": 0},
            "judge.samples must be a whole number from 1 to 99",
        ),
    ],
)
def test_a_judge_that_cannot_be_asked_is_told_before_anything_is(
    tmp_path: Path, judge: dict[str, Any] | None, why: str
) -> None:
    ran = run(tmp_path, judge)
    assert ran.code == 2
    assert why in ran.out


def test_a_plan_says_who_would_be_asked(tmp_path: Path) -> None:
    ran = run(tmp_path, at("http://localhost:1", samples=3), "--plan")
    assert "c0, j: ask m (openai) 3 times" in ran.out
    program = run(tmp_path, {"command": ["claude", "-p"]}, "--plan")
    assert "c0, j: ask claude -p 1 time" in program.out
