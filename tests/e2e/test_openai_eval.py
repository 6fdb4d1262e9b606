"""Graders of the Evals API, from a config to the report, with a golden case and without."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.replies import Judged, run
from tests.evals_api.service import FakeEvals
from tests.http.servers import Answer, script, serve
from tests.judges.bench import said
from tests.recordings import otlp
from tests.support import Ran, run_agentci

GOLDEN = {
    "eval_set_id": "s",
    "eval_cases": [
        {
            "eval_id": "c",
            "conversation": [
                {
                    "user_content": {"parts": [{"text": "Weather in Paris?"}]},
                    "final_response": {"parts": [{"text": "It is sunny in Paris."}]},
                }
            ],
        }
    ],
}


def configure(
    folder: Path, grader: dict[str, Any], fields: Mapping[str, str] | None = None, **config: Any
) -> None:
    entry = {"name": "g", "type": "openai_eval", "threshold": 0.9, "grader": grader}
    whole = {"traces": "trace.json", "evaluators": [{**entry, **(fields or {})}], **config}
    (folder / "trace.json").write_text(otlp())
    (folder / "set.json").write_text(json.dumps(GOLDEN))
    (folder / "agentci.yaml").write_text(json.dumps(whole))


def grade(folder: Path, grader: dict[str, Any], **config: Any) -> Judged:
    configure(folder, grader, **config)
    return run(folder)


def test_an_answer_is_compared_with_the_golden_one(tmp_path: Path) -> None:
    grader = {"type": "text_similarity", "evaluation_metric": "rouge_l"}
    judged = grade(tmp_path, grader, eval_set="set.json")
    [result] = judged.results
    assert (judged.code, result["status"]) == (1, "failed")
    assert 0 < result["score"] < 0.9
    assert result["misses"][0].startswith("turn 1: rouge_l 0.")


def test_without_a_golden_case_nothing_is_judged(tmp_path: Path) -> None:
    judged = grade(tmp_path, {"type": "text_similarity", "evaluation_metric": "bleu"})
    [result] = judged.results
    assert (judged.code, result["status"], result["reason"]) == (
        1,
        "skipped",
        "no eval set provided",
    )


FUNCTION = """\
import re, socket

def grade(sample, item):
    print("grading")
    assert item["actual_response"] == sample["output_text"]
    return 1.0 if re.search("Paris|sunny", sample["output_text"]) else 0.25
"""


def test_a_function_grades_and_its_reply_is_taken_again(tmp_path: Path) -> None:
    for cached in (False, True):
        judged = grade(tmp_path, {"type": "python", "source": FUNCTION})
        [result] = judged.results
        assert (judged.code, result["score"], result["cached"]) == (0, 1.0, cached), result
    changed = grade(tmp_path, {"type": "python", "source": FUNCTION.replace("1.0", "0.5")})
    assert [each["score"] for each in changed.results] == [0.5]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def grade(sample, item): return item['x']", "KeyError: 'x'"),
        ("def grade(sample, item): return float('inf')", "grade returned inf, which is no score"),
        ("def other(sample, item): return 1", "the source defines no function 'grade'"),
        ("import urllib.request as u\ndef grade(s, i): u.urlopen('http://127.0.0.1')", "network"),
    ],
)
def test_a_function_without_a_score_is_an_error(tmp_path: Path, source: str, reason: str) -> None:
    judged = grade(tmp_path, {"type": "python", "source": source})
    [result] = judged.results
    assert (judged.code, result["status"], result["score"]) == (3, "errored", None)
    assert result["reason"].startswith("turn 1: grade exited with code 1")
    assert reason in result["reason"]


MESSAGES = [{"role": "user", "content": "Rate {{ item.actual_response }}"}]
LABELS = {
    "type": "label_model",
    "model": "grader-1",
    "input": MESSAGES,
    "labels": ["good", "bad"],
    "passing_labels": ["good"],
}


@pytest.mark.parametrize(
    ("label", "code", "status"),
    [("good", 0, "passed"), ("bad", 1, "failed"), ("ugly", 3, "errored")],
)
def test_a_model_gives_a_label(tmp_path: Path, label: str, code: int, status: str) -> None:
    with serve(script(said(json.dumps({"reasoning": "so", "label": label})))) as server:
        judge = {"provider": "openai", "base_url": server.url}
        judged = grade(tmp_path, LABELS, judge=judge)
    [result] = judged.results
    assert (judged.code, result["status"]) == (code, status)
    sent = json.loads(server.asked[0].body)
    assert sent["model"] == "grader-1"
    assert "temperature" not in sent


def test_a_model_gives_a_number_to_a_formula(tmp_path: Path) -> None:
    scores = {"type": "score_model", "input": MESSAGES, "range": [1, 5]}
    grader = {
        "type": "multi",
        "graders": {"rated": scores, "asked": {"type": "string_check", "operation": "ne"}},
        "calculate_output": "0.5 * rated + 0.5 * asked",
    }
    with serve(script(said(json.dumps({"reasoning": "so", "result": 4})))) as server:
        judge = {"provider": "openai", "model": "m", "base_url": server.url}
        judged = grade(tmp_path, grader, judge=judge, eval_set="set.json")
    [result] = judged.results
    assert (result["score"], result["reasoning"]) == (0.875, "rated: so")


COSINE = {"type": "text_similarity", "evaluation_metric": "cosine"}


def elsewhere(folder: Path, url: str, *options: str, key: str = "sk-0123456789") -> Ran:
    fields = {"backend": "remote", "base_url": f"{url}/v1", "api_key_env": "GRADER_KEY"}
    configure(folder, COSINE, fields, eval_set="set.json")
    return run_agentci(["run", *options], cwd=folder, environ={"GRADER_KEY": key})


@pytest.mark.parametrize(("score", "code", "status"), [(0.95, 0, "passed"), (0.5, 1, "failed")])
def test_a_service_grades(tmp_path: Path, score: float, code: int, status: str) -> None:
    fake = FakeEvals(score=lambda _: score, polls=0)
    with serve(fake) as server:
        ran = elsewhere(tmp_path, server.url)
    [result] = ran.results["results"]
    assert (ran.code, result["status"], result["score"]) == (code, status, score)
    assert fake.evals == set()


def test_a_service_that_refuses_is_an_error(tmp_path: Path) -> None:
    fake = FakeEvals(refusals=[Answer(status=403)])
    with serve(fake) as server:
        ran = elsewhere(tmp_path, server.url)
    [result] = ran.results["results"]
    assert (ran.code, result["status"]) == (3, "errored")
    assert result["reason"].startswith("the service answered 403")


def test_a_service_is_held_against_people(tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text('{"case": "c", "human": "pass"}')
    with serve(FakeEvals(score=lambda _: 0.95, polls=0)) as server:
        elsewhere(tmp_path, server.url, "--plan")
        ran = run_agentci(
            ["calibrate", "--labels", "labels.jsonl"], cwd=tmp_path, environ={"GRADER_KEY": "sk-1"}
        )
    assert ran.code == 0, ran.out
    assert "g: 1 case with a label\n" in ran.out


def test_offline_no_service_is_asked(tmp_path: Path) -> None:
    fake = FakeEvals(score=lambda _: 0.95, polls=0)
    with serve(fake) as server:
        ran = elsewhere(tmp_path, server.url, "--offline")
        assert server.asked == []
    [result] = ran.results["results"]
    assert (ran.code, result["status"]) == (3, "errored")
    assert result["reason"] == "no service grades with --offline"


@pytest.mark.parametrize(
    ("url", "key", "why"),
    [
        ("https://x.example", "", "the environment variable GRADER_KEY, for the key of the"),
        ("http://x.example", "k", "g cannot be graded: base_url cannot be used"),
        ("https://api.openai.com", "k", "OpenAI takes no evals since 2026-10-31"),
    ],
)
def test_a_service_that_cannot_be_asked_is_told_before_anything_is(
    tmp_path: Path, url: str, key: str, why: str
) -> None:
    ran = elsewhere(tmp_path, url, key=key)
    assert ran.code == 2
    assert why in ran.out


@pytest.mark.parametrize(
    ("url", "code", "why"),
    [
        ("https://api.openai.com", 2, "agentci.yaml:1:"),
        ("http://x.example", 2, "g cannot be graded: base_url cannot be used"),
        ("https://x.example", 0, "no problems in 1 file"),
    ],
)
def test_a_config_is_looked_at_without_the_key(
    tmp_path: Path, url: str, code: int, why: str
) -> None:
    elsewhere(tmp_path, url, "--plan")
    ran = run_agentci(["validate"], cwd=tmp_path)
    assert ran.code == code
    assert why in ran.out


def test_a_plan_says_who_would_grade(tmp_path: Path) -> None:
    ran = elsewhere(tmp_path, "https://x.example", "--plan")
    assert "g: g: have 1 turn graded at https://x.example/v1" in ran.out


def test_a_plan_says_what_would_be_done(tmp_path: Path) -> None:
    grade(tmp_path, {"type": "string_check", "operation": "ne", "reference": "x"})
    ran = run_agentci(["run", "--plan"], cwd=tmp_path)
    assert "g: judge what is recorded" in ran.out
