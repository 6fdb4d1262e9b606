"""The examples do what they are shown for, also where they are copied elsewhere."""

import shutil
from pathlib import Path

import pytest

from tests.support import ROOT, run_agentci

EXAMPLES = sorted(path.parent.name for path in ROOT.glob("examples/*/eval_config.yaml"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_opens_the_gate_unless_it_is_called_failing(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    ran = run_agentci(["run", f"{name}/eval_config.yaml"], cwd=tmp_path)
    assert ran.code == (1 if name.endswith("-failing") else 0), ran.out
    assert ran.results["totals"]["errored"] == 0
