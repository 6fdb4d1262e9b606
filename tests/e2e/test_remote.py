"""Evaluators that are kept elsewhere: fetched, verified, cached, locked, and then run as any."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recordings import otlp
from tests.sources.fake_github import FakeGitHub
from tests.support import Ran, run_agentci

REPOSITORY = "agentevals-dev/evaluators"
REF = "evaluators/fixed/fixed.py"
PROGRAM = """\
import json, pathlib, sys
json.load(sys.stdin)
score = float((pathlib.Path(__file__).parent / "score.txt").read_text())
print(json.dumps({"score": score}))
"""


def _files(score: str = "0.75") -> dict[str, str]:
    return {
        REF: PROGRAM,
        "evaluators/fixed/score.txt": score,
        "evaluators/fixed/evaluator.yaml": "name: fixed\n",
        "evaluators/other/other.py": "raise SystemExit(1)\n",
    }


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trace.json").write_text(otlp())
    _configure(tmp_path)
    return tmp_path


def _configure(folder: Path, more: str = "") -> None:
    (folder / "agentci.yaml").write_text(
        "traces: trace.json\n"
        "evaluators:\n"
        "  - name: fixed\n"
        "    type: remote\n"
        f"    ref: {REF}\n"
        f"    {more}\n"
    )


def _agentci(folder: Path, github: FakeGitHub, *arguments: str) -> Ran:
    environ = {"AGENTCI_GITHUB_API_URL": github.api, "AGENTCI_GITHUB_RAW_URL": github.raw}
    return run_agentci(arguments, cwd=folder, environ=environ)


class TestRun:
    def test_takes_the_whole_folder_and_judges_by_it(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, _files())
        ran = _agentci(folder, github, "run")
        assert ran.code == 0, (ran.out, ran.err, ran.problems)
        [result] = ran.results["results"]
        assert (result["status"], result["score"], result["type"]) == ("passed", 0.75, "remote")
