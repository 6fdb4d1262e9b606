"""The digest of a file or folder changes whenever its content does."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentci.runner.response_cache import cache
from agentci.runner.response_cache.cache import ContentDigests


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "file").write_text("one")
    (folder / "sub" / "deep").write_text("one")
    (folder / "link").symlink_to("file")
    return folder


def _digest(path: Path, *excluded: Path) -> str:
    return _digests(path, *excluded).compute(path)


def _digests(path: Path, *excluded: Path) -> ContentDigests:
    """Of the workspace that the folder is in."""
    return ContentDigests(path.parent, {str(each) for each in excluded})


def _relink(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("sub/deep")


def _replace_keeping_times(folder: Path) -> None:
    status = (folder / "file").stat()
    (folder / "file").write_text("two")
    os.utime(folder / "file", ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "sub" / "deep").write_text("two"),
        lambda folder: (folder / "sub" / "new").touch(),
        lambda folder: (folder / "file").rename(folder / "other"),
        lambda folder: (folder / "file").chmod(0o755),
        lambda folder: (folder / "file").unlink(),
        _relink,
        _replace_keeping_times,
    ],
    ids=["content", "new file", "name", "mode", "removed", "link", "same size and time"],
)
def test_change_in_folder_changes_its_digest(
    folder: Path, change: Callable[[Path], object]
) -> None:
    before = _digest(folder)
    assert _digest(folder) == before
    change(folder)
    assert _digest(folder) != before


def test_linked_folder_is_read(folder: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "module").write_text("one")
    (folder / "shared").symlink_to(shared)
    (shared / "loop").symlink_to(folder)
    before = _digest(folder)
    (shared / "module").write_text("two")
    assert _digest(folder) != before


def test_link_to_another_folder_inside_changes_the_digest(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "file").write_text(name)
    (folder / "z").symlink_to("a")
    before = _digest(folder)
    (folder / "z").unlink()
    (folder / "z").symlink_to("b")
    assert _digest(folder) != before


def test_ignored_and_excluded_files_do_not_count(folder: Path) -> None:
    before = _digest(folder)
    for name in ("__pycache__", ".git", "cache"):
        (folder / name).mkdir()
        (folder / name / "file").touch()
    (folder / "results.json").touch()
    os.mkfifo(folder / "pipe")
    assert _digest(folder, folder / "cache", folder / "results.json") == before


def test_digest_is_computed_once(folder: Path) -> None:
    digests = _digests(folder)
    before = digests.compute(folder)
    assert digests.find_changed() == set()
    (folder / "file").write_text("two")
    assert digests.compute(folder) == before
    assert digests.find_changed() == {folder}


def test_removed_folder_has_changed(folder: Path) -> None:
    digests = _digests(folder)
    digests.compute(folder / "file")
    (folder / "file").unlink()
    assert digests.find_changed() == {folder / "file"}


@pytest.mark.parametrize(("limit", "value"), [("MAX_FILES", 2), ("MAX_BYTES", 5)])
def test_large_folder_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(cache, limit, value)
    with pytest.raises(OSError, match="has more than"):
        _digest(folder)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        _digest(tmp_path / "nothing")


def test_pipe_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is not a regular file"):
        _digest(tmp_path / "pipe")


@pytest.mark.parametrize("target", ["{outside}", "{outside}/file", "/proc/self/pagemap", "missing"])
@pytest.mark.parametrize("name", ["link", "inner"])
def test_link_out_of_workspace_is_an_error(folder: Path, target: str, name: str) -> None:
    """Nothing beyond it is read: it may be secret, or without an end."""
    outside = folder.parent.parent / f"{folder.parent.name}-outside"
    (outside / "below").mkdir(parents=True)
    (outside / "file").touch()
    (folder.parent / "inner").mkdir()
    (folder / "inner").symlink_to("../inner")
    link = folder / name / "out" if name == "inner" else folder / "out"
    link.symlink_to(target.format(outside=outside) if target != "missing" else outside / "missing")
    with pytest.raises(OSError, match="is a link out of the workspace"):
        _digest(folder)
    with pytest.raises(OSError, match="is a link out of the workspace"):
        _digests(folder).compute(link)


def test_limit_is_of_bytes_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of some files of the system is given as zero."""
    monkeypatch.setattr(cache, "MAX_BYTES", 5)
    with pytest.raises(OSError, match="has more than"):
        ContentDigests(tmp_path).compute(Path("/proc/self/status"))
