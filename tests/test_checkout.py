"""The commit that is checked out, however git keeps it."""

from pathlib import Path

import pytest

from agentci.checkout import commit_at, head_of
from agentci.github.context import github_of
from agentci.workspace import Workspace
from tests.repositories import commit, git, repository

WORKFLOW = "c0de" * 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "agent")


class TestTheCommit:
    def test_of_a_branch(self, root: Path) -> None:
        first = commit(root)
        assert head_of(root) == first
        assert commit(root) == head_of(root) != first

    def test_of_a_branch_that_is_packed(self, root: Path) -> None:
        made = commit(root)
        git(root, "branch", "main-too", "HEAD")
        git(root, "tag", "--annotate", "v1", "--message", "x")
        git(root, "pack-refs", "--all")
        assert not (root / ".git" / "refs" / "heads" / "main").exists()
        assert head_of(root) == made

    def test_that_is_checked_out_by_itself(self, root: Path) -> None:
        made = commit(root)
        commit(root)
        git(root, "checkout", "--quiet", "--detach", made)
        assert head_of(root) == made

    def test_of_a_worktree_is_its_own(self, root: Path, tmp_path: Path) -> None:
        commit(root)
        git(root, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "other"))
        made = commit(tmp_path / "other")
        assert head_of(tmp_path / "other") == made
        git(root, "pack-refs", "--all")
        assert head_of(tmp_path / "other") == made != head_of(root)

    def test_of_sha_256(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "--quiet", "--object-format", "sha256")
        made = commit(tmp_path)
        assert len(made) == 64
        assert head_of(tmp_path) == made


class TestThereIsNone:
    def test_before_the_first_one(self, root: Path) -> None:
        assert head_of(root) == ""

    def test_without_a_repository(self, tmp_path: Path) -> None:
        assert head_of(tmp_path) == ""

    @pytest.mark.parametrize("head", ["", "ref: refs/heads/.invalid", "ref: ../../etc", "x\0y"])
    def test_where_only_git_can_tell(self, root: Path, head: str) -> None:
        commit(root)
        (root / ".git" / "HEAD").write_text(head)
        assert head_of(root) == ""


class TestWhatIsJudged:
    def test_is_what_is_checked_out(self, root: Path) -> None:
        made = commit(root)
        assert self._judged(root, GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW) == made

    def test_else_what_the_workflow_runs_on(self, tmp_path: Path) -> None:
        assert self._judged(tmp_path, GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW) == WORKFLOW

    def test_else_nobody_knows(self, tmp_path: Path) -> None:
        assert self._judged(tmp_path, GITHUB_SHA=WORKFLOW) == ""
        assert self._judged(tmp_path, GITHUB_ACTIONS="true", GITHUB_SHA="main") == ""

    @staticmethod
    def _judged(root: Path, **environ: str) -> str:
        return commit_at(Workspace(root=root, cwd=root), github_of(environ))
