"""``agentci evaluator run`` takes graders, prompts and datasets."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.commands.test_evaluator_run import headings, sections
from tests.helpers.recordings import otlp
from tests.helpers.support import EVALUATORS, Ran, run_agentci

ROWS = (
    {"id": "good", "query": "How?", "response": "Fine.", "limit": 10},
    {"id": "bad", "query": "How?", "response": "Rather badly.", "limit": 10},
)
GRADERS = """\
import sys

def short(sample, item):
    print("said", len(sample["output_text"]))
    long = len(sample["output_text"]) > item.get("limit", 5)
    return {"score": 0.25 if long else 0.75, "reason": "by length"}
"""
PROMPT = "Score from 1 to 5.\nQ: {{query}}\nA: {{response}}\n"
JUDGE = """\
import json, sys
asked = sys.stdin.read()
print(json.dumps({"result": 4 if "Fine." in asked else 2, "reason": "by its words"}))
"""
JUDGE_OPTION = ("--judge", json.dumps({"command": [sys.executable, "judge.py"]}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "evals").mkdir()
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    (tmp_path / "trace.json").write_text(otlp())
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "evals" / "graders.py").write_text(GRADERS)
    (tmp_path / "evals" / "relevance.md").write_text(PROMPT)
    return tmp_path


def run_evaluator(folder: Path, *arguments: str) -> Ran:
    return run_agentci(["evaluator", "run", *arguments], cwd=folder)


def statuses(ran: Ran) -> list[str]:
    return [each.removeprefix("status: ") for each in headings(ran.out) if "status" in each]


def test_grader_runs_on_rows_of_dataset(folder: Path) -> None:
    ran = run_evaluator(folder, "evals/graders.py:short", "--dataset", "data.jsonl")
    assert (ran.code, ran.err) == (1, "")
    assert [each for each in headings(ran.out) if each.startswith("case")] == [
        "case good (1 of 2)",
        "case bad (2 of 2)",
    ]
    assert statuses(ran) == ["passed", "failed"]
    found = sections(ran.out)
    given = json.loads(found["stdin"])
    assert (given["function"], given["item"]["limit"]) == ("short", 10)
    assert given["sample"]["output_text"] == "Rather badly."
    assert found["stderr"] == "said 13\n"
    assert found["status"].splitlines()[:2] == ["score: 0.25", "criterion: score >= 0.5"]
    assert "by length" in found["status"]


def test_grader_runs_on_traces_with_threshold(folder: Path) -> None:
    arguments = ("evals/graders.py:short", "--trace", "trace.json", "--threshold", "0.25")
    ran = run_evaluator(folder, *arguments)
    assert (ran.code, statuses(ran)) == (0, ["passed"])
    assert "criterion: score >= 0.25" in sections(ran.out)["status"]


def test_trace_is_matched_with_row(folder: Path) -> None:
    row = {"id": "weather", "query": "What is the weather in Paris?", "limit": 100}
    (folder / "data.jsonl").write_text(json.dumps(row))
    ran = run_evaluator(
        folder, "evals/graders.py:short", "--trace", "trace.json", "--dataset", "data.jsonl"
    )
    assert json.loads(sections(ran.out)["stdin"])["item"]["limit"] == 100
    assert ran.code == 0


def test_dataset_may_be_outside_workspace(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "rows.jsonl"
    (folder / "data.jsonl").rename(other)
    ran = run_evaluator(folder, "evals/graders.py:short", "--dataset", str(other))
    assert (ran.code, statuses(ran)) == (1, ["passed", "failed"]), ran.err


def test_program_runs_on_rows_of_dataset(folder: Path) -> None:
    ran = run_evaluator(folder, str(EVALUATORS / "good.py"), "--dataset", "data.jsonl")
    assert (ran.code, statuses(ran)) == (0, ["passed", "passed"])


def test_prompt_shows_what_judge_is_asked_and_responds(folder: Path) -> None:
    ran = run_evaluator(
        folder, "evals/relevance.md", "--dataset", "data.jsonl", "--threshold", "3", *JUDGE_OPTION
    )
    assert (ran.code, statuses(ran)) == (1, ["passed", "failed"]), ran.err
    found = sections(ran.out)
    assert "Rather badly." in found["prompt"]
    assert "{{" not in found["prompt"]
    assert json.loads(found["response"]) == {"result": 2, "reason": "by its words"}
    assert found["status"].splitlines() == [
        "score: None",
        "criterion: result >= 3",
        "- the judge returned 2, required: result >= 3",
        "by its words",
    ]


def test_failing_judge_is_an_error(folder: Path) -> None:
    (folder / "judge.py").write_text("print('nothing')")
    ran = run_evaluator(
        folder, "evals/relevance.md", "--dataset", "data.jsonl", "--threshold", "0.5", *JUDGE_OPTION
    )
    assert (ran.code, statuses(ran)) == (3, ["errored", "errored"])
    assert "response" not in sections(ran.out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("evals/graders.py:other --dataset data.jsonl", "no function 'other' in evals/graders.py"),
        ("none.py:short --dataset data.jsonl", "none.py is not an existing file"),
        ("evals/graders.py:short", "--trace and --dataset are missing"),
        ("evals/graders.py:short --dataset ''", "--dataset is empty"),
        ("evals/graders.py:short --dataset none.jsonl", "none.jsonl is not an existing file"),
        ("evals/graders.py:short --dataset judge.py", "judge.py:1"),
        ("evals/graders.py:short --trace trace.json --config {}", "--config has no effect on a"),
        ("evals/graders.py:short --trace trace.json --judge-model openai/m", "--judge-model has"),
        (
            "evals/relevance.md --trace trace.json --timeout 3",
            "--timeout has no effect on a prompt",
        ),
        ("evals/relevance.md --trace trace.json", "--threshold of a prompt is a number, `true` or"),
        ("evals/relevance.md --trace trace.json --threshold high", "found 'high'"),
        ("evals/relevance.md --trace trace.json --threshold 3", "a prompt needs a judge model"),
        (
            "evals/relevance.md --trace trace.json --threshold 3 --judge '{\"comand\": []}'",
            "--judge: unknown field 'comand'; did you mean 'command'?",
        ),
        (
            "evals/relevance.md --trace trace.json --threshold 3 --judge-model openai/m",
            "OPENAI_API_KEY",
        ),
        ("evals/empty.md --trace trace.json --threshold 3", "evals/empty.md"),
    ],
)
def test_invalid_option_is_reported_before_running(
    folder: Path, arguments: str, message: str
) -> None:
    (folder / "evals" / "empty.md").write_text("{{ query")
    ran = run_evaluator(folder, *shlex.split(arguments))
    assert (ran.code, ran.out) == (2, "")
    assert message in str(ran.problems[0])
