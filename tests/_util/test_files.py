"""Reports land whole, where they belong, in the hands of the workspace's owner."""

import os
from pathlib import Path

import pytest

from agentci._util.files import append_text, prepare_output_folder, write_output_files
from agentci._util.workspace import find_workspace
from agentci.errors import InputError

NOBODY = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_files_are_written_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_output_files(tmp_path, {"a.xml": "é\n", "b.json": "{}"}, find_workspace(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.xml", "b.json"]
    assert (tmp_path / "a.xml").read_bytes() == "é\n".encode()
    assert (tmp_path / "a.xml").stat().st_mode & 0o777 == 0o644


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_output_files(tmp_path, {"a": "new \ud800"}, find_workspace(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_link_in_the_place_of_a_report_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.json").symlink_to(tmp_path / "precious")
    write_output_files(tmp_path / "out", {"results.json": "{}"}, find_workspace(tmp_path))
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "out" / "results.json").read_text() == "{}"


@as_root
def test_what_root_writes_belongs_to_the_owner_of_the_workspace(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    folder = prepare_output_folder("a/b", find_workspace(tmp_path))
    write_output_files(folder, {"f": ""}, find_workspace(tmp_path))
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "f"]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(NOBODY, NOBODY)}


@pytest.mark.parametrize("given", ["file", "file/below", "link", "../outside"])
def test_a_folder_that_cannot_be_used_is_told_before_anything_is_judged(
    tmp_path: Path, given: str
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "file").touch()
    (workspace / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match=f"--output-dir {given} "):
        prepare_output_folder(given, find_workspace(workspace))


def test_an_absolute_folder_may_lie_anywhere(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    assert (
        prepare_output_folder(f"{tmp_path}/out", find_workspace(tmp_path / "w")) == tmp_path / "out"
    )


def test_outputs_are_added_to_what_the_file_holds(tmp_path: Path) -> None:
    append_text(tmp_path / "f", "a\n")
    append_text(tmp_path / "f", "b\n")
    assert (tmp_path / "f").read_text() == "a\nb\n"
