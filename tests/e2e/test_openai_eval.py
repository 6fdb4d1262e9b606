"""Graders of the Evals API, from a config to the report, with a golden case and without."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.replies import Judged, run
from tests.http.servers import script, serve
from tests.judges.bench import said
from tests.recordings import otlp
from tests.support import run_agentci

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


def grade(folder: Path, grader: dict[str, Any], **config: Any) -> Judged:
    entry = {"name": "g", "type": "openai_eval", "threshold": 0.9, "grader": grader}
    whole = {"traces": "trace.json", "evaluators": [entry], **config}
    (folder / "trace.json").write_text(otlp())
    (folder / "set.json").write_text(json.dumps(GOLDEN))
    (folder / "agentci.yaml").write_text(json.dumps(whole))
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


def test_a_plan_says_what_would_be_done(tmp_path: Path) -> None:
    grade(tmp_path, {"type": "string_check", "operation": "ne", "reference": "x"})
    ran = run_agentci(["run", "--plan"], cwd=tmp_path)
    assert "g: judge what is recorded" in ran.out
