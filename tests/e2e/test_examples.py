"""The examples give their documented results, also when copied to another folder."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.support import ROOT, run_agentci

EXAMPLES = sorted(
    path.relative_to(ROOT / "examples").as_posix()
    for pattern in ("*/eval_config.yaml", "*/*.eval.yaml")
    for path in ROOT.glob(f"examples/{pattern}")
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_passes_unless_its_name_ends_in_failing(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    ran = run_agentci(["run", name], cwd=tmp_path)
    assert ran.code == (1 if "-failing/" in name else 0), ran.out
    assert ran.results["totals"]["errored"] == 0


def test_results_of_three_tools_are_under_one_gate(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    ran = run_agentci(["run", "results/eval_config.yaml"], cwd=tmp_path)
    assert {each["type"] for each in ran.results["results"]} == {"deepeval", "evalite", "junit"}
    assert [gate["config"] for gate in ran.results["gates"]] == ["results/eval_config.yaml"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("agentevals", 0), ("agentevals-failing", 1)])
def test_demo_shows_what_github_shows(name: str, code: int) -> None:
    ran = subprocess.run(
        [ROOT / "scripts" / "demo.sh", f"examples/{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    assert not [line for line in lines if line.startswith("::")]
    assert any(line.startswith("## ") and "Quality gate" in line for line in lines)
    failing = "This demo fails on purpose: it shows what a regression looks like."
    assert (lines[-1] == failing) == bool(code)
