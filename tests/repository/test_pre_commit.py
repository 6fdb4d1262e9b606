"""The pre-commit hook: its file patterns and its output."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentci._util.workspace import find_workspace
from agentci.config.discovery import SKIPPED_FOLDERS, find_configs
from tests.helpers.support import ROOT

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
HOOK: Any = yaml.safe_load(MANIFEST.read_text())[0]
GOOD = "evaluators:\n  - {name: tool_trajectory_avg_score, type: builtin, required: false}\n"
NAMES = (
    *("agentci.yaml", "eval_config.yaml", "evals/eval_config.yaml", "evals/agentci.yaml"),
    *(".agentci/a.yaml", ".agentci/.a.yaml", ".agentci/b/a.yaml", "evals/.agentci/a.yaml"),
    *("a.eval.yaml", "b/c/a.eval.yaml", ".a.eval.yaml", "eval.yaml", "b/.eval.yaml"),
    *("a.eval.yml", "agentci.yml", "a.yaml", ".b/a.eval.yaml", "b/.c/a.eval.yaml"),
    *("my_agentci.yaml", "eval_config.yaml.txt"),
    *(f"b/{name}/a.eval.yaml" for name in SKIPPED_FOLDERS),
)


def test_hook_patterns_match_config_discovery(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    workspace = find_workspace(tmp_path, root=tmp_path)
    found = {workspace.display_path(path) for path in find_configs([], workspace)[0]}
    given = {
        name
        for name in NAMES
        if re.search(HOOK["files"], name) and not re.search(HOOK["exclude"], name)
    }
    assert given == found


class Repository:
    """A repository with the hook in its .pre-commit-config.yaml."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder / "repository", folder / "home"
        hooks, programs = folder / "hooks", folder / "programs"
        for each in (self.folder, self.home, hooks, programs):
            each.mkdir()
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            **{f"GIT_{who}_NAME": "ci" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "ci@example.invalid" for who in ("AUTHOR", "COMMITTER")},
            "PRE_COMMIT_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "PATH": f"{programs}:{os.environ['PATH']}",
        }
        program = programs / "agentci"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agentci "$@"\n')
        program.chmod(0o755)
        shutil.copy2(MANIFEST, hooks)
        self._git("init", "--quiet", cwd=hooks)
        self._git("add", "--all", cwd=hooks)
        self._git("commit", "--quiet", "--message", "hooks", cwd=hooks)
        self._git("init", "--quiet", cwd=self.folder)
        # Runs agentci from this checkout, not an installed package.
        hook = {"id": "agentci-validate", "language": "unsupported"}
        revision = self._git("rev-parse", "HEAD", cwd=hooks)
        config = {"repos": [{"repo": str(hooks), "rev": revision, "hooks": [hook]}]}
        self.write(".pre-commit-config.yaml", yaml.safe_dump(config))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    def run_on_all_files(self) -> subprocess.CompletedProcess[str]:
        """Runs pre-commit on all files."""
        self._git("add", "--all", cwd=self.folder)
        return self._run(sys.executable, "-m", "pre_commit", "run", "--verbose", cwd=self.folder)

    def _git(self, *arguments: str, cwd: Path) -> str:
        done = self._run("git", *arguments, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=cwd, env=self.environ, capture_output=True, text=True, check=False
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_valid_configs_pass_hook(repository: Repository) -> None:
    repository.write("eval_config.yaml", GOOD)
    done = repository.run_on_all_files()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout


def test_invalid_config_is_reported_with_place(repository: Repository) -> None:
    repository.write("eval_config.yaml", GOOD)
    repository.write("evals/refunds.eval.yaml", GOOD.replace("builtin", "bulitin"))
    done = repository.run_on_all_files()
    assert done.returncode == 1
    assert "Failed" in done.stdout
    assert "evals/refunds.eval.yaml:2:" in done.stdout
    assert "1 error, 1 warning in 2 files" in done.stdout


def test_commit_without_configs_skips_hook(repository: Repository) -> None:
    repository.write("evals.txt", GOOD)
    done = repository.run_on_all_files()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no files to check" in done.stdout
