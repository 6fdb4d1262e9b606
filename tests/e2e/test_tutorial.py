"""Every command of docs/tutorial.md, from an empty folder, with a model on this machine."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from examples.agents.mock_model import mock_model
from tests.helpers.repositories import repository
from tests.helpers.support import ROOT

pytestmark = pytest.mark.slow

BLOCK = re.compile(r"^```(sh|python|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What the test environment has already.
SKIPPED = ("pip install", "export ")
KEYLESS = "python ../mock_model.py agentci record"


@pytest.mark.parametrize("has_key", [True, False])
def test_every_command_does_what_the_tutorial_says(has_key: bool, tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    shutil.copy(ROOT / "examples/agents/mock_model.py", tmp_path)
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    printed = ""
    ran: list[str] = []
    with mock_model() as model:
        environ = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **{
                f"GIT_{who}_{what}": "a@example.com"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
            "OPENAI_API_KEY": "sk-not-a-key-of-anyone" if has_key else "",
            "OPENAI_BASE_URL": f"{model.url}/v1" if has_key else "",
        }
        for language, content in BLOCK.findall(text):
            if language == "python":
                (folder / "agent.py").write_text(content)
            elif language == "yaml":
                assert (folder / "evals/cases.yaml").is_file()
                (folder / "evals/cases.yaml").write_text(content)
            for line in content.splitlines() if language == "sh" else ():
                if line.startswith(SKIPPED):
                    continue
                command = line if has_key else line.replace("agentci record", KEYLESS)
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=folder,
                    env=environ,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                expected = 1 if "# exit code 1" in line else 0
                assert done.returncode == expected, f"{line}\n{done.stdout}{done.stderr}"
                printed += done.stdout
                ran.append(line.split("#")[0].strip())
    assert f"`{KEYLESS}`" in text
    for command in ("agentci init --yes", "agentci accept --all", "agentci run"):
        assert command in ran
    shown = text.partition("# exit code 1\n```\n```\n")[2].partition("```")[0]
    assert "case:calls: score 0" in shown
    assert shown in printed
    assert (folder / "traces/recorded.requests").is_dir()
    workflow = (folder / ".github/workflows/agent-eval.yml").read_text()
    assert "pip install --target .agent-packages -r requirements.txt" in workflow


def test_mistyped_command_of_the_mock_model_is_one_line(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "examples/agents/mock_model.py", "no-such-program"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    message = "cannot start no-such-program: No such file or directory\n"
    assert (ran.returncode, ran.stderr) == (127, message)
