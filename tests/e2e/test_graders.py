"""Grader functions, from the config entry to the report."""

from pathlib import Path

import pytest

from tests.e2e.cached_runs import Judged, run
from tests.helpers.recordings import otlp
from tests.helpers.support import run_agentci

SHORT = """\
import json, os, socket, statistics
from words import LIMIT

def short(sample, item):
    print("grading", item["query"])
    return {
        "score": 1.0 if len(sample["output_text"]) < LIMIT else 0.0,
        "reason": sample["tool_calls"][0]["name"],
        "seen": [item["sample"] == sample, sample["tool_calls"][0]["arguments"], os.getcwd()],
    }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "graders.py").write_text(SHORT)
    (tmp_path / "evals" / "words.py").write_text("LIMIT = 100\n")
    (tmp_path / "trace.json").write_text(otlp())
    _configure(tmp_path)
    return tmp_path


def _configure(folder: Path, *fields: str, grader: str = "evals/graders.py:short") -> None:
    entry = ", ".join(["name: short", "type: grader", f"grader: '{grader}'", *fields])
    config = f"traces: trace*.json\nevaluators:\n- {{{entry}}}\n"
    (folder / "agentci.yaml").write_text(config)


def _grade(folder: Path, source: str, *fields: str) -> Judged:
    (folder / "evals" / "graders.py").write_text(source)
    _configure(folder, *fields)
    return run(folder)


@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_grader_function_scores_trace(folder: Path, isolation: str) -> None:
    _configure(folder, "threshold: 0.9", f"isolation: {isolation}")
    judged = run(folder)
    [result] = judged.results
    assert (judged.code, result["status"], result["score"]) == (0, "passed", 1.0)
    assert (result["criterion"], result["type"]) == ("score >= 0.9", "grader")
    assert result["reasoning"] == "get_weather"
    assert result["details"]["seen"] == [True, {"city": "Paris"}, str(folder)]


def test_requirements_none_installs_no_packages(folder: Path) -> None:
    (folder / "evals" / "requirements.txt").write_text("there-is-no-such-package==1\n")
    _configure(folder, "requirements: none")
    assert run(folder).code == 0


def test_score_below_threshold_fails(folder: Path) -> None:
    judged = _grade(folder, "def short(sample, item): return 0.4", "threshold: 0.5")
    assert (judged.code, [each["status"] for each in judged.results]) == (1, ["failed"])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def short(s, i): return i['price']", "in short\n"),
        ("def short(s, i): return i['price']", "KeyError: 'price'"),
        ("def short(s, i): return None", "`short` returned None; it must be a number"),
        (
            "def short(s, i): return float('nan')",
            "`short` returned nan; it must be a finite number",
        ),
        ("def short(s, i): return 4", "returned score 4; it must be between 0 and 1"),
        ("def short(s, i): return -0.1", "returned score -0.1; it must be between 0 and 1"),
        (
            "def short(s, i): return {'score': 1, 'x': float('nan')}",
            "returned an invalid result: `NaN`",
        ),
        ("def other(s, i): return 'short'", "no function `short` in graders.py"),
        ("import os\ndef short(s, i): os._exit(0)", "printed nothing on stdout"),
        ("def short(s, i):\n while True: pass", "timed out after 1 s; raise `timeout` if it"),
        (
            "def short(s, i): return open('words', 'w').close()",
            "(the sandbox allows writing only to TMPDIR",
        ),
    ],
)
def test_grader_without_valid_score_is_an_error(folder: Path, source: str, reason: str) -> None:
    judged = _grade(folder, source, "timeout: 1")
    [result] = judged.results
    assert (judged.code, result["status"], result["score"]) == (3, "errored", None)
    assert result["reason"].startswith("Evaluator `short` ")
    assert reason in result["reason"]


def test_changed_import_invalidates_cached_response(folder: Path) -> None:
    _configure(folder, "cache: true")
    first, second = run(folder), run(folder)
    assert (first.results[0]["cached"], second.results[0]["cached"]) == (False, True)
    (folder / "evals" / "words.py").write_text("LIMIT = 5\n")
    third = run(folder)
    assert (third.cached, third.results[0]["status"]) == ([False], "failed")


def test_functions_in_one_file_are_separate_evaluators(folder: Path) -> None:
    source = "def one(s, i): return 1\ndef nil(s, i): return 0\ndef grade(s, i): return 0.5"
    (folder / "evals" / "graders.py").write_text(source)
    names = {"one": ":one", "nil": ":nil", "by_default": ""}
    entries = "".join(
        f"- {{name: {name}, type: grader, grader: 'evals/graders.py{function}'}}\n"
        for name, function in names.items()
    )
    (folder / "agentci.yaml").write_text(f"traces: trace.json\nevaluators:\n{entries}")
    for _ in range(2):
        assert [each["score"] for each in run(folder).results] == [1.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("grader", "problem"),
    [
        ("evals/none.py:short", "agentci.yaml:3:"),
        ("evals/none.py:short", "evals/none.py does not exist"),
        ("evals/graders.py:not a name", "grader"),
        ("evals/graders.txt:short", "grader"),
        ("../graders.py:short", "../graders.py"),
        (
            "evals/graders.py:shrot",
            "3:39: error: no function 'shrot' in evals/graders.py; did you",
        ),
    ],
)
def test_missing_grader_is_config_error(folder: Path, grader: str, problem: str) -> None:
    _configure(folder, grader=grader)
    ran = run_agentci(["run"], cwd=folder)
    assert ran.code == 2
    assert problem in ran.out
