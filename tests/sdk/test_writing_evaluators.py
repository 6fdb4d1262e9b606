"""The programs in docs/writing-evaluators.md run and behave as the page describes."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.support import ROOT, run_agentci

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/writing-evaluators.md").read_text(encoding="utf-8")


def _snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


PROGRAM, OTHER_IMPORT, TEST = _snippets("python")
(SCRIPT,) = _snippets("js")
(EXECUTABLE,) = _snippets("sh")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "cites_its_sources.py"
    path.write_text(PROGRAM)
    return path


def test_documented_evaluator_scores_traces(program: Path) -> None:
    results = _evaluate(program, config={"mark": "Your desk lamp"})
    statuses = Counter(result["status"] for result in results)
    assert statuses == {"passed": 1, "failed": 3, "skipped": 1}
    misses = {miss for result in results for miss in result["misses"]}
    assert misses == {"turn 1: no 'Your desk lamp' in the answer"}


def test_documented_evaluator_runs_with_agentevals_sdk(program: Path) -> None:
    own_import = re.search(r"^from agentci\.sdk .*\n", PROGRAM, re.MULTILINE)
    assert own_import
    ours = _evaluate(program, config={"mark": "Your desk lamp"})
    program.write_text(PROGRAM.replace(own_import[0], OTHER_IMPORT))
    theirs = _evaluate(program, config={"mark": "Your desk lamp"})
    for result in (*ours, *theirs):
        del result["seconds"], result["fingerprint"]
    assert ours == theirs


def test_documented_unit_test_passes(program: Path) -> None:
    test = program.with_name("test_cites_its_sources.py")
    test.write_text(TEST)
    for tool in (["pytest", "-q", "-p", "no:cacheprovider"], ["mypy", "--strict"]):
        done = subprocess.run(
            [sys.executable, "-m", *tool, test.name],
            cwd=program.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "text", "statuses"),
    [
        ("answers.js", SCRIPT, {"passed": 5}),
        ("calls_a_tool", EXECUTABLE, {"passed": 4, "failed": 1}),
    ],
)
def test_documented_programs_in_other_languages_score_traces(
    name: str, text: str, statuses: dict[str, int], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    path.chmod(0o755)
    assert Counter(result["status"] for result in _evaluate(path)) == statuses


def _evaluate(program: Path, **fields: Any) -> list[Any]:
    folder = program.parent
    for name in ("2026-03-10.jsonl", "where_is_my_parcel.json"):
        (folder / name).write_bytes((ROOT / "examples/agentevals/recordings" / name).read_bytes())
    entry = {"name": "new", "type": "code", "path": program.name, "threshold": 1.0, **fields}
    config = {"traces": ["*.jsonl", "*parcel.json"], "evaluators": [entry]}
    (folder / "eval_config.yaml").write_text(json.dumps(config))
    results: list[Any] = run_agentci(["run", "eval_config.yaml"], cwd=folder).results["results"]
    return results
