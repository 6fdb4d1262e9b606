"""What a program reads is seen from outside, whatever it is written in."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agentci.runner.response_cache.observer import MAX_FOLDERS, BlindError, Observation, Observer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with files in two folders."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "outer.txt").write_text("outer")
    (tmp_path / "inner" / "file.txt").write_text("inner")
    return tmp_path


@pytest.fixture
def observer(folder: Path) -> Iterator[Observer]:
    observer = Observer(own={str(folder / "own")}, left_out={str(folder / "left out")})
    yield observer
    observer.close()


def _seen(observer: Observer, root: Path, *command: str) -> Observation:
    observer.watch([root])
    observation = observer.begin()
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    observer.end(observation)
    return observation


def _names(observation: Observation, root: Path) -> list[str]:
    return sorted(os.path.relpath(path, root) for path in observation.opened)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("cat", "outer.txt", "inner/file.txt"), ["inner/file.txt", "outer.txt"]),
        (("cat", "inner/../outer.txt"), ["outer.txt"]),
        (("ls",), ["."]),
        (("ls", "inner"), ["inner"]),
        (("find", ".", "-name", "none"), [".", "inner"]),
        (("sh", "-c", "exec cat < outer.txt"), ["outer.txt"]),
        (("python3", "-c", "import os; os.stat('outer.txt')"), []),
        (("true",), []),
    ],
    ids=" ".join,
)
def test_files_that_are_read_and_folders_that_are_listed_are_seen(
    folder: Path, observer: Observer, command: Sequence[str], names: Sequence[str]
) -> None:
    observation = _seen(observer, folder, *command)
    assert _names(observation, folder) == names
    assert not observation.lost


def test_a_program_that_is_run_is_seen(folder: Path, observer: Observer) -> None:
    shutil.copy("/bin/true", folder / "program")
    assert _names(_seen(observer, folder, str(folder / "program")), folder) == ["program"]


def test_what_is_reached_by_a_link_is_seen_where_it_is(folder: Path, observer: Observer) -> None:
    (folder / "link").symlink_to("inner")
    (folder / "chain").symlink_to("link")
    assert _names(_seen(observer, folder, "cat", "chain/file.txt"), folder) == ["inner/file.txt"]
    links = {str(folder / "link"), str(folder / "chain")}
    assert {*observer.links[str(folder / "inner")]} == links


def test_several_programs_are_each_seen_from_start_to_end(folder: Path, observer: Observer) -> None:
    observer.watch([folder])
    first = observer.begin()
    second = _seen(observer, folder, "cat", "outer.txt")
    third = _seen(observer, folder, "cat", "inner/file.txt")
    observer.end(first)
    assert _names(first, folder) == ["inner/file.txt", "outer.txt"]
    assert _names(second, folder) == ["outer.txt"]
    assert _names(third, folder) == ["inner/file.txt"]


def test_folders_are_watched_once(folder: Path, observer: Observer) -> None:
    assert observer.watch([folder])
    assert not observer.watch([folder, folder / "inner"])


def test_what_is_left_out_is_not_seen(folder: Path, observer: Observer) -> None:
    (folder / "left out").mkdir()
    (folder / "left out" / "file").touch()
    assert _names(_seen(observer, folder, "cat", "left out/file"), folder) == []


class TestWhatChanges:
    def test_is_the_file_and_for_more_than_its_content_the_folder(
        self, folder: Path, observer: Observer
    ) -> None:
        _seen(observer, folder, "sh", "-c", "echo > inner/file.txt")
        assert observer.changed == {str(folder / "inner" / "file.txt")}
        _seen(observer, folder, "rm", "outer.txt")
        assert {str(folder), str(folder / "outer.txt")} <= observer.changed

    def test_is_not_what_a_run_itself_makes(self, folder: Path, observer: Observer) -> None:
        assert not _seen(observer, folder, "mkdir", "own").lost
        assert observer.changed == set()

    @pytest.mark.parametrize(
        "command",
        [("mkdir", "new"), ("ln", "-s", "inner", "new"), ("mv", "inner", "new")],
        ids=" ".join,
    )
    def test_in_where_files_can_be_found_leaves_us_blind(
        self, folder: Path, observer: Observer, command: Sequence[str]
    ) -> None:
        assert _seen(observer, folder, *command).lost
        with pytest.raises(BlindError, match=r"such as .*new"):
            observer.watch([folder])

    def test_faster_than_it_can_be_told_leaves_us_blind(
        self, folder: Path, observer: Observer
    ) -> None:
        program = (
            "for _ in range(20_000): open('outer.txt').close(), open('inner/file.txt').close()"
        )
        assert _seen(observer, folder, sys.executable, "-c", program).lost
        with pytest.raises(BlindError, match="more at a time"):
            observer.watch([folder])


def test_more_folders_than_can_be_watched_are_refused(folder: Path) -> None:
    assert MAX_FOLDERS > 10
    observer = Observer(own=(), left_out=(), max_folders=1)
    with pytest.raises(BlindError, match="more than 1 folders"):
        observer.watch([folder])
    observer.close()
