"""Which commit a run evaluates: what is checked out, else that of the workflow."""

from pathlib import Path

import pytest

from agentci._util.workspace import Workspace
from agentci.github.context import read_github_context
from agentci.github.workflow import find_checked_out_commit
from tests.helpers.repositories import commit, repository

WORKFLOW = "c0de" * 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "agent")


class TestEvaluatedCommit:
    def test_is_what_is_checked_out(self, root: Path) -> None:
        made = commit(root)
        assert self._judged(root, GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW) == made

    def test_is_what_is_checked_out_around_the_working_directory(self, root: Path) -> None:
        (root / "evals").mkdir()
        made = commit(root)
        for cwd in (root, root / "evals"):
            assert (
                self._judged(root.parent, cwd, GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW) == made
            )

    def test_is_the_whole_where_the_working_directory_is_a_submodule(self, root: Path) -> None:
        repository(root / "sub")
        commit(root / "sub")
        made = commit(root)
        assert self._judged(root, root / "sub", GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW) == made

    def test_else_what_the_workflow_runs_on(self, tmp_path: Path) -> None:
        assert self._judged(tmp_path, GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW) == WORKFLOW

    def test_else_nobody_knows(self, tmp_path: Path) -> None:
        assert self._judged(tmp_path, GITHUB_SHA=WORKFLOW) == ""
        assert self._judged(tmp_path, GITHUB_ACTIONS="true", GITHUB_SHA="main") == ""

    @staticmethod
    def _judged(root: Path, cwd: Path | None = None, **environ: str) -> str:
        return find_checked_out_commit(
            Workspace(root=root, cwd=cwd or root), read_github_context(environ)
        )
