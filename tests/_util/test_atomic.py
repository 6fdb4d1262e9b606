"""Files appear whole under their names, and go as a whole."""

from pathlib import Path

import pytest

from agentci._util.files import remove_path, remove_stale_temporaries, write_file_atomically


class TestPlaceFile:
    def test_replaces_a_link_and_not_what_it_leads_to(self, tmp_path: Path) -> None:
        (tmp_path / "precious").write_text("mine")
        (tmp_path / "f").symlink_to(tmp_path / "precious")
        write_file_atomically(tmp_path / "f", b"new", owner=None)
        assert (tmp_path / "f").read_bytes() == b"new"
        assert (tmp_path / "precious").read_text() == "mine"

    def test_leaves_nothing_where_it_fails(self, tmp_path: Path) -> None:
        (tmp_path / "f" / "x").mkdir(parents=True)
        with pytest.raises(IsADirectoryError):
            write_file_atomically(tmp_path / "f", b"new", owner=None)
        assert [path.name for path in tmp_path.iterdir()] == ["f"]


class TestRemove:
    def test_says_that_what_is_not_there_is_gone(self, tmp_path: Path) -> None:
        assert remove_path(tmp_path / "nothing")

    def test_follows_no_link(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "link").symlink_to(tmp_path)
        (tmp_path / "link").symlink_to(tmp_path / "folder")
        assert remove_path(tmp_path / "link")
        assert (tmp_path / "folder").is_dir()
        assert remove_path(tmp_path / "folder")
        assert list(tmp_path.iterdir()) == []

    def test_says_what_it_may_not_remove(self) -> None:
        assert not remove_path(Path("/proc/self"))


def test_sweeping_what_is_not_there_does_nothing(tmp_path: Path) -> None:
    remove_stale_temporaries(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []
