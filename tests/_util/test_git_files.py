"""The head commit of a repository, and which folders git tracks."""

import os
from pathlib import Path

import pytest

from agentci._util.git_files import is_tracked, read_head_commit
from agentci._util.workspace import Workspace
from tests.helpers.repositories import commit, git, repository, track


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


class TestIsTracked:
    def test_folder_with_tracked_file_is_tracked(self, root: Path) -> None:
        assert not self._is_tracked(root, "cache")
        track(root, "cache/x")
        assert self._is_tracked(root, "cache")
        assert self._is_tracked(root, "evals/../cache")
        assert not self._is_tracked(root, "cach")

    def test_folder_in_worktree_is_tracked(self, root: Path, tmp_path: Path) -> None:
        (root / "cache").mkdir()
        (root / "cache" / "x").touch()
        commit(root)
        git(root, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "other"))
        assert self._is_tracked(tmp_path / "other", "cache")

    def test_folder_in_nested_repository_is_tracked(self, root: Path, tmp_path: Path) -> None:
        track(root, "cache/x")
        assert self._is_tracked(tmp_path, "agent/cache")
        assert not self._is_tracked(tmp_path, "cache")

    def test_root_of_repository_is_tracked(self, root: Path, tmp_path: Path) -> None:
        track(root, "x")
        assert self._is_tracked(root, ".")
        assert self._is_tracked(tmp_path, "agent")

    def test_same_folder_name_elsewhere_is_not_tracked(self, root: Path) -> None:
        track(root, "src/cache/x")
        assert not self._is_tracked(root, "cache")

    @pytest.mark.parametrize("version", ["2", "3", "4"])
    @pytest.mark.parametrize("name", ["x", "x" * 200, f"{'x' * 200}/" * 25 + "x"])
    def test_any_index_version_and_name_length_is_read(
        self, root: Path, version: str, name: str
    ) -> None:
        track(root, f"cache/{name}")
        git(root, "update-index", "--index-version", version, "--skip-worktree", f"cache/{name}")
        assert self._is_tracked(root, "cache")

    def test_name_that_is_not_utf8_is_tracked(self, root: Path) -> None:
        name = os.fsdecode(b"caf\xe9")
        track(root, f"{name}/x")
        assert self._is_tracked(root, name)

    @staticmethod
    def _is_tracked(root: Path, folder: str) -> bool:
        return is_tracked(root / folder, Workspace(root=root, cwd=root))
