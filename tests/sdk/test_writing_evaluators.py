"""The programs in docs/writing-evaluators.md run and behave as the page describes."""

import json
import re
import subprocess
import sys
import textwrap
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
    steps = {"tool_calls": [{"name": "search", "args": {}}]}
    turn = {"user_content": "Is it?", "final_response": "Yes.", "intermediate_steps": steps}
    case = {"metric_name": "cites_its_sources", "invocations": [turn]}
    program.with_name("case.json").write_text(json.dumps(case))
    test = program.with_name("test_cites_its_sources.py")
    test.write_text(
        "from pathlib import Path\n"
        "from agentci.sdk import EvalInput\n"
        "from cites_its_sources import cites_its_sources\n"
        f"def test_program() -> None:\n{textwrap.indent(TEST, '    ')}"
    )
    for tool in (["pytest", "-q", "-p", "no:cacheprovider"], ["mypy", "--strict"]):
        done = subprocess.run(
            [sys.executable, "-m", *tool, test.name],
            cwd=program.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_documented_program_in_another_language_scores_traces(tmp_path: Path) -> None:
    path = tmp_path / "answers.js"
    path.write_text(SCRIPT)
    assert Counter(result["status"] for result in _evaluate(path)) == {"passed": 5}


def _evaluate(program: Path, **fields: Any) -> list[Any]:
    folder = program.parent
    for name in ("2026-03-10.jsonl", "where_is_my_parcel.json"):
        (folder / name).write_bytes((ROOT / "examples/agentevals/recordings" / name).read_bytes())
    entry = {"name": "new", "type": "code", "path": program.name, "threshold": 1.0, **fields}
    config = {"traces": ["*.jsonl", "*parcel.json"], "evaluators": [entry]}
    (folder / "eval_config.yaml").write_text(json.dumps(config))
    results: list[Any] = run_agentci(["run", "eval_config.yaml"], cwd=folder).results["results"]
    return results
