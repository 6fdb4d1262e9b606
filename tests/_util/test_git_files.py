"""What is checked out and what is committed, however git keeps it."""

import os
from pathlib import Path

import pytest

from agentci._util.git_files import is_tracked, read_head_commit
from agentci._util.workspace import Workspace
from tests.helpers.repositories import commit, git, repository, track


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "agent")


class TestTheCommit:
    def test_of_a_branch(self, root: Path) -> None:
        first = commit(root)
        assert read_head_commit(root) == first
        assert commit(root) == read_head_commit(root) != first

    def test_of_a_branch_that_is_packed(self, root: Path) -> None:
        made = commit(root)
        git(root, "branch", "main-too", "HEAD")
        git(root, "tag", "--annotate", "v1", "--message", "x")
        git(root, "pack-refs", "--all")
        assert not (root / ".git" / "refs" / "heads" / "main").exists()
        assert read_head_commit(root) == made

    def test_that_is_checked_out_by_itself(self, root: Path) -> None:
        made = commit(root)
        commit(root)
        git(root, "checkout", "--quiet", "--detach", made)
        assert read_head_commit(root) == made

    def test_of_a_worktree_is_its_own(self, root: Path, tmp_path: Path) -> None:
        commit(root)
        git(root, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "other"))
        made = commit(tmp_path / "other")
        assert read_head_commit(tmp_path / "other") == made
        git(root, "pack-refs", "--all")
        assert read_head_commit(tmp_path / "other") == made != read_head_commit(root)

    def test_of_sha_256(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "--quiet", "--object-format", "sha256")
        made = commit(tmp_path)
        assert len(made) == 64
        assert read_head_commit(tmp_path) == made


class TestThereIsNone:
    def test_before_the_first_one(self, root: Path) -> None:
        assert read_head_commit(root) == ""

    def test_without_a_repository(self, tmp_path: Path) -> None:
        assert read_head_commit(tmp_path) == ""

    @pytest.mark.parametrize("head", ["", "ref: refs/heads/.invalid", "ref: ../../etc", "x\0y"])
    def test_where_only_git_can_tell(self, root: Path, head: str) -> None:
        commit(root)
        (root / ".git" / "HEAD").write_text(head)
        assert read_head_commit(root) == ""


class TestACacheIsCommitted:
    def test_where_git_tracks_a_file_below_it(self, root: Path) -> None:
        assert not self._is_committed(root, "cache")
        track(root, "cache/x")
        assert self._is_committed(root, "cache")
        assert self._is_committed(root, "evals/../cache")
        assert not self._is_committed(root, "cach")

    def test_in_a_worktree(self, root: Path, tmp_path: Path) -> None:
        (root / "cache").mkdir()
        (root / "cache" / "x").touch()
        commit(root)
        git(root, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "other"))
        assert self._is_committed(tmp_path / "other", "cache")

    def test_in_a_repository_below_the_workspace(self, root: Path, tmp_path: Path) -> None:
        track(root, "cache/x")
        assert self._is_committed(tmp_path, "agent/cache")
        assert not self._is_committed(tmp_path, "cache")

    def test_that_is_the_whole_repository(self, root: Path, tmp_path: Path) -> None:
        track(root, "x")
        assert self._is_committed(root, ".")
        assert self._is_committed(tmp_path, "agent")

    def test_not_where_a_folder_elsewhere_has_its_name(self, root: Path) -> None:
        track(root, "src/cache/x")
        assert not self._is_committed(root, "cache")

    @pytest.mark.parametrize("version", ["2", "3", "4"])
    @pytest.mark.parametrize("name", ["x", "x" * 200, f"{'x' * 200}/" * 25 + "x"])
    def test_of_one_file_whatever_the_format_and_the_length_of_its_name(
        self, root: Path, version: str, name: str
    ) -> None:
        track(root, f"cache/{name}")
        git(root, "update-index", "--index-version", version, "--skip-worktree", f"cache/{name}")
        assert self._is_committed(root, "cache")

    def test_of_a_name_that_is_no_text(self, root: Path) -> None:
        name = os.fsdecode(b"caf\xe9")
        track(root, f"{name}/x")
        assert self._is_committed(root, name)

    @staticmethod
    def _is_committed(root: Path, folder: str) -> bool:
        return is_tracked(root / folder, Workspace(root=root, cwd=root))
