"""Graders of the OpenAI Evals API, with and without expected answers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests._util.http.servers import Answer, script, serve
from tests.e2e.cached_runs import Judged, run
from tests.e2e.test_forks import environ as fork
from tests.helpers.recordings import otlp
from tests.helpers.support import Ran, run_agentci
from tests.judges.bench import embedded, said
from tests.judges.evals_api.service import FakeEvals

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
    folder: Path, grader: dict[str, Any], fields: Mapping[str, object] | None = None, **config: Any
) -> None:
    entry = {"name": "g", "type": "openai_eval", "threshold": 0.9, "grader": grader}
    whole = {"traces": "trace.json", "evaluators": [{**entry, **(fields or {})}], **config}
    (folder / "trace.json").write_text(otlp())
    (folder / "set.json").write_text(json.dumps(GOLDEN))
    (folder / "agentci.yaml").write_text(json.dumps(whole))


def grade(folder: Path, grader: dict[str, Any], **config: Any) -> Judged:
    configure(folder, grader, **config)
    return run(folder)


def test_answer_is_compared_with_expected_answer(tmp_path: Path) -> None:
    grader = {"type": "text_similarity", "evaluation_metric": "rouge_l"}
    judged = grade(tmp_path, grader, eval_set="set.json")
    [result] = judged.results
    assert (judged.code, result["status"]) == (1, "failed")
    assert 0 < result["score"] < 0.9
    assert result["misses"][0].startswith("turn 1: rouge_l 0.")


def test_check_without_eval_set_is_skipped(tmp_path: Path) -> None:
    grader = {"type": "text_similarity", "evaluation_metric": "bleu"}
    assert grade(tmp_path, grader).code == 2
    judged = grade(tmp_path, grader, gate={"on_empty": "allow"})
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


def test_python_grader_is_cached_with_cache_true(tmp_path: Path) -> None:
    def grade_cached(source: str) -> Judged:
        configure(tmp_path, {"type": "python", "source": source}, {"cache": True})
        return run(tmp_path)

    for cached in (False, True):
        judged = grade_cached(FUNCTION)
        [result] = judged.results
        assert (judged.code, result["score"], result["cached"]) == (0, 1.0, cached), result
    changed = grade_cached(FUNCTION.replace("1.0", "0.5"))
    assert [each["score"] for each in changed.results] == [0.5]


def test_python_grader_is_not_cached_by_default(tmp_path: Path) -> None:
    for _ in range(2):
        assert grade(tmp_path, {"type": "python", "source": FUNCTION}).cached == [False]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def grade(sample, item): return item['x']", "KeyError: 'x'"),
        (
            "def grade(sample, item): return float('inf')",
            "`grade` returned inf; it must be a finite number",
        ),
        ("def other(sample, item): return 1", "no function `grade` in the source"),
        ("import urllib.request as u\ndef grade(s, i): u.urlopen('http://127.0.0.1')", "network"),
    ],
)
def test_grade_function_without_score_is_errored(tmp_path: Path, source: str, reason: str) -> None:
    judged = grade(tmp_path, {"type": "python", "source": source})
    [result] = judged.results
    assert (judged.code, result["status"], result["score"]) == (3, "errored", None)
    assert result["reason"].startswith("turn 1: `grade` exited with code 1")
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
def test_label_model_grades_by_passing_labels(
    tmp_path: Path, label: str, code: int, status: str
) -> None:
    with serve(script(said(json.dumps({"reasoning": "so", "label": label})))) as server:
        judge = {"provider": "openai", "base_url": server.url}
        judged = grade(tmp_path, LABELS, judge=judge)
    [result] = judged.results
    assert (judged.code, result["status"]) == (code, status)
    sent = json.loads(server.asked[0].body)
    assert sent["model"] == "grader-1"
    assert "temperature" not in sent


def test_score_model_result_is_used_in_formula(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("vector", "code", "status", "score"),
    [
        ([0.3, 0.1], 0, "passed", 0.948683),
        ([0.0, 0.1], 1, "failed", 0.0),
        ([-1.0, 0.0], 1, "failed", 0.0),
        ([0.0, 0.0], 3, "errored", None),
    ],
)
def test_cosine_similarity_of_embeddings_is_scored_and_cached(
    tmp_path: Path, vector: list[float], code: int, status: str, score: float | None
) -> None:
    with serve(script(embedded([1.0, 0.0], vector, usage={"prompt_tokens": 9}))) as server:
        judge = {"embedding_model": "vectors-1", "base_url": server.url}
        first = grade(tmp_path, COSINE, judge=judge, eval_set="set.json")
        again = grade(tmp_path, COSINE, judge=judge, eval_set="set.json")
    [result] = first.results
    assert (first.code, result["status"]) == (code, status), result
    assert result["score"] == (None if score is None else pytest.approx(score, abs=1e-6))
    [answer, expected] = json.loads(server.asked[0].body)["input"]
    assert expected == "It is sunny in Paris."
    assert answer != expected
    # A failed comparison is not cached.
    assert again.cached == [score is not None]
    assert len(server.asked) == (1 if score is not None else 2)


def test_judge_usage_counts_cached_embeddings_as_saved(tmp_path: Path) -> None:
    with serve(script(embedded([1], [1], usage={"prompt_tokens": 9}))) as server:
        judge = {"embedding_model": "vectors-1", "base_url": server.url}
        configure(tmp_path, COSINE, judge=judge, eval_set="set.json")
        usages = [run_agentci(["run"], cwd=tmp_path).results["judges"] for _ in range(2)]
    [[first], [again]] = usages
    nothing = {"calls": 0, "tokens": 0, "usd": None}
    once = {"calls": 1, "tokens": 9, "usd": None}
    assert (first["spent"], first["saved"]) == (once, nothing)
    assert (again["spent"], again["saved"]) == (nothing, once)


def test_embedding_grader_works_in_multi_and_in_plan(tmp_path: Path) -> None:
    asked = {"type": "string_check", "operation": "ne"}
    grader = {"type": "multi", "graders": {"a": COSINE, "b": asked}, "calculate_output": "a*b"}
    with serve(script(embedded([1, 1], [1, 1]))) as server:
        judge = {"embedding_model": "vectors-1", "base_url": server.url}
        judged = grade(tmp_path, grader, judge=judge, eval_set="set.json")
        planned = run_agentci(["run", "--plan"], cwd=tmp_path)
    assert [each["score"] for each in judged.results] == [1.0]
    assert "g: g: compare embeddings of vectors-1 (openai)" in planned.out


def test_unavailable_embeddings_are_errored_and_offline_sends_nothing(tmp_path: Path) -> None:
    with serve(script(Answer(status=404))) as server:
        judge = {"embedding_model": "vectors-1", "base_url": server.url}
        judged = grade(tmp_path, COSINE, judge=judge, eval_set="set.json")
        offline = run_agentci(["run", "--offline"], cwd=tmp_path)
    [result] = judged.results
    assert (judged.code, result["status"]) == (3, "errored")
    assert "check that it offers vectors-1, and that `base_url` is right" in result["reason"]
    assert "`--offline` calls no model" in offline.results["results"][0]["reason"]
    assert len(server.asked) == 1


def test_missing_key_is_rejected_before_any_call(tmp_path: Path) -> None:
    configure(tmp_path, COSINE, judge={"embedding_model": "e"}, eval_set="set.json")
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == 2
    assert "evaluator `g`: the environment variable OPENAI_API_KEY" in ran.out


def test_missing_secrets_on_fork_skip_check(tmp_path: Path) -> None:
    configure(tmp_path, COSINE, judge={"embedding_model": "e"}, eval_set="set.json")
    ran = run_agentci(["run"], cwd=tmp_path, environ=fork(tmp_path))
    [result] = ran.results["results"]
    assert result["status"] == "skipped"
    assert "the environment variable OPENAI_API_KEY" in result["reason"]


def elsewhere(folder: Path, url: str, *options: str, key: str = "sk-0123456789") -> Ran:
    fields = {"backend": "remote", "base_url": f"{url}/v1", "api_key_env": "GRADER_KEY"}
    configure(folder, COSINE, fields, eval_set="set.json")
    return run_agentci(["run", *options], cwd=folder, environ={"GRADER_KEY": key})


@pytest.mark.parametrize(("score", "code", "status"), [(0.95, 0, "passed"), (0.5, 1, "failed")])
def test_remote_backend_score_is_used(tmp_path: Path, score: float, code: int, status: str) -> None:
    fake = FakeEvals(score=lambda _: score, polls=0)
    with serve(fake) as server:
        ran = elsewhere(tmp_path, server.url)
    [result] = ran.results["results"]
    assert (ran.code, result["status"], result["score"]) == (code, status, score)
    assert fake.evals == set()


def test_remote_backend_refusal_is_errored(tmp_path: Path) -> None:
    fake = FakeEvals(refusals=[Answer(status=403)])
    with serve(fake) as server:
        ran = elsewhere(tmp_path, server.url)
    [result] = ran.results["results"]
    assert (ran.code, result["status"]) == (3, "errored")
    assert result["reason"].startswith("the service returned status 403")


def test_remote_backend_can_be_calibrated(tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text('{"case": "c", "human": "pass"}')
    with serve(FakeEvals(score=lambda _: 0.95, polls=0)) as server:
        elsewhere(tmp_path, server.url, "--plan")
        ran = run_agentci(
            ["calibrate", "--labels", "labels.jsonl"], cwd=tmp_path, environ={"GRADER_KEY": "sk-1"}
        )
    assert ran.code == 0, ran.out
    assert "g: 1 case with a label\n" in ran.out


def test_offline_sends_nothing_to_remote_backend(tmp_path: Path) -> None:
    fake = FakeEvals(score=lambda _: 0.95, polls=0)
    with serve(fake) as server:
        ran = elsewhere(tmp_path, server.url, "--offline")
        assert server.asked == []
    [result] = ran.results["results"]
    assert (ran.code, result["status"]) == (3, "errored")
    assert result["reason"] == "`--offline` calls no grading service"


@pytest.mark.parametrize(
    ("url", "key", "why"),
    [
        ("https://x.example", "", "the API key of the service is missing: `GRADER_KEY` is not set"),
        ("http://x.example", "k", "evaluator `g`: invalid `base_url`"),
        ("https://api.openai.com", "k", "OpenAI ended its Evals API on 2026-10-31"),
    ],
)
def test_invalid_remote_backend_is_rejected_before_any_call(
    tmp_path: Path, url: str, key: str, why: str
) -> None:
    ran = elsewhere(tmp_path, url, key=key)
    assert ran.code == 2
    assert why in ran.out


@pytest.mark.parametrize(
    ("url", "code", "why"),
    [
        ("https://api.openai.com", 2, "agentci.yaml:1:"),
        ("http://x.example", 2, "evaluator `g`: invalid `base_url`"),
        ("https://x.example", 0, "no problems in 1 file"),
    ],
)
def test_validate_does_not_require_key(tmp_path: Path, url: str, code: int, why: str) -> None:
    elsewhere(tmp_path, url, "--plan")
    ran = run_agentci(["validate"], cwd=tmp_path)
    assert ran.code == code
    assert why in ran.out


def test_plan_names_remote_backend(tmp_path: Path) -> None:
    ran = elsewhere(tmp_path, "https://x.example", "--plan")
    assert "g: g: grade 1 turn with https://x.example/v1" in ran.out


def test_plan_of_local_grader_shows_no_call(tmp_path: Path) -> None:
    grade(tmp_path, {"type": "string_check", "operation": "ne", "reference": "x"})
    ran = run_agentci(["run", "--plan"], cwd=tmp_path)
    assert "g: evaluate without a program or model" in ran.out
