"""The head commit of a repository."""

from pathlib import Path

import pytest

from agentci.github.events import read_head_commit
from tests.helpers.repositories import commit, git, repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "agent")


class TestHeadCommit:
    def test_commit_of_branch_is_read(self, root: Path) -> None:
        first = commit(root)
        assert read_head_commit(root) == first
        assert commit(root) == read_head_commit(root) != first

    def test_commit_of_packed_branch_is_read(self, root: Path) -> None:
        made = commit(root)
        git(root, "branch", "main-too", "HEAD")
        git(root, "tag", "--annotate", "v1", "--message", "x")
        git(root, "pack-refs", "--all")
        assert not (root / ".git" / "refs" / "heads" / "main").exists()
        assert read_head_commit(root) == made

    def test_commit_of_detached_head_is_read(self, root: Path) -> None:
        made = commit(root)
        commit(root)
        git(root, "checkout", "--quiet", "--detach", made)
        assert read_head_commit(root) == made

    def test_worktree_has_its_own_commit(self, root: Path, tmp_path: Path) -> None:
        commit(root)
        git(root, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "other"))
        made = commit(tmp_path / "other")
        assert read_head_commit(tmp_path / "other") == made
        git(root, "pack-refs", "--all")
        assert read_head_commit(tmp_path / "other") == made != read_head_commit(root)

    def test_sha256_commit_is_read(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "--quiet", "--object-format", "sha256")
        made = commit(tmp_path)
        assert len(made) == 64
        assert read_head_commit(tmp_path) == made


class TestNoHeadCommit:
    def test_repository_without_commits_has_no_commit(self, root: Path) -> None:
        assert read_head_commit(root) == ""

    def test_folder_without_repository_has_no_commit(self, tmp_path: Path) -> None:
        assert read_head_commit(tmp_path) == ""

    @pytest.mark.parametrize("head", ["", "ref: refs/heads/.invalid", "ref: ../../etc", "x\0y"])
    def test_unreadable_head_gives_no_commit(self, root: Path, head: str) -> None:
        commit(root)
        (root / ".git" / "HEAD").write_text(head)
        assert read_head_commit(root) == ""
