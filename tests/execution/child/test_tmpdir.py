"""Private temporary folders: created for one user and removed with any content."""

import os
from pathlib import Path

import pytest

from agentci.execution.child import tmpdir


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "private"
    tmpdir.make_tmpdir(bytes(path), None)
    return path


def test_tmpdir_is_accessible_only_to_its_user(path: Path) -> None:
    for folder in (path, path / "home", path / "tmp"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_existing_folder_is_not_used(path: Path) -> None:
    with pytest.raises(FileExistsError):
        tmpdir.make_tmpdir(bytes(path), None)


class TestRemoval:
    def test_removal_does_not_follow_links(self, path: Path) -> None:
        outside = path.parent / "outside"
        (outside / "below").mkdir(parents=True)
        (path / "tmp" / "a" / "b").mkdir(parents=True)
        (path / "tmp" / "a" / "file").touch()
        (path / "tmp" / "link").symlink_to(outside)
        (path / "1").mkdir()
        (path / "1" / "file").touch()
        assert tmpdir.remove_tmpdir(bytes(path))
        assert not path.exists()
        assert (outside / "below").is_dir()

    def test_folders_without_permissions_are_removed(self, path: Path) -> None:
        (path / "home" / "closed" / "below").mkdir(parents=True)
        for folder in ("home/closed/below", "home/closed", "home", ""):
            (path / folder).chmod(0)
        assert tmpdir.remove_tmpdir(bytes(path))
        assert not path.exists()

    def test_deeply_nested_folders_are_removed(self, path: Path) -> None:
        before = Path.cwd()
        os.chdir(path / "tmp")
        try:
            for _ in range(1500):
                os.mkdir("d")  # noqa: PTH102 (the path is too long for a path)
                os.chdir("d")
        finally:
            os.chdir(before)
        assert tmpdir.remove_tmpdir(bytes(path))
        assert not path.exists()

    def test_missing_path_or_link_is_not_removed(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path)
        assert not tmpdir.remove_tmpdir(bytes(tmp_path / "nothing"))
        assert not tmpdir.remove_tmpdir(bytes(tmp_path / "link"))

    def test_removal_stops_at_time_limit(self, path: Path) -> None:
        assert not tmpdir.remove_tmpdir(bytes(path), seconds=-1)
        assert path.exists()


def test_size_is_allocated_disk_space(path: Path) -> None:
    (path / "tmp" / "file").write_bytes(b"x" * 1_000_000)
    with (path / "home" / "sparse").open("wb") as file:
        file.truncate(10**9)
    assert 1_000_000 <= tmpdir.measure_size(bytes(path), 10**9) < 2_000_000
    assert tmpdir.measure_size(bytes(path.parent / "nothing"), 1) == 0


def test_size_includes_empty_files(path: Path) -> None:
    empty = path / "tmp" / "empty"
    empty.mkdir(parents=True)
    for number in range(500):
        (empty / str(number)).touch()
    assert tmpdir.measure_size(bytes(path), 10**9) >= 500 * tmpdir.MIN_FILE_BYTES
