"""Atomic writes, and removal of files and folders."""

from pathlib import Path

import pytest

from agentci._util.files import remove_path, remove_stale_temporaries, write_file_atomically


class TestWriteFileAtomically:
    def test_symlink_is_replaced_and_target_kept(self, tmp_path: Path) -> None:
        (tmp_path / "precious").write_text("mine")
        (tmp_path / "f").symlink_to(tmp_path / "precious")
        write_file_atomically(tmp_path / "f", b"new", owner=None)
        assert (tmp_path / "f").read_bytes() == b"new"
        assert (tmp_path / "precious").read_text() == "mine"

    def test_failed_write_leaves_no_temporary_file(self, tmp_path: Path) -> None:
        (tmp_path / "f" / "x").mkdir(parents=True)
        with pytest.raises(IsADirectoryError):
            write_file_atomically(tmp_path / "f", b"new", owner=None)
        assert [path.name for path in tmp_path.iterdir()] == ["f"]


class TestRemovePath:
    def test_missing_path_counts_as_removed(self, tmp_path: Path) -> None:
        assert remove_path(tmp_path / "nothing")

    def test_symlink_target_is_not_removed(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "link").symlink_to(tmp_path)
        (tmp_path / "link").symlink_to(tmp_path / "folder")
        assert remove_path(tmp_path / "link")
        assert (tmp_path / "folder").is_dir()
        assert remove_path(tmp_path / "folder")
        assert list(tmp_path.iterdir()) == []

    def test_failed_removal_is_reported(self) -> None:
        assert not remove_path(Path("/proc/self"))


def test_missing_folder_has_no_stale_temporaries(tmp_path: Path) -> None:
    remove_stale_temporaries(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []
