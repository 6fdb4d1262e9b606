"""Reports are written atomically, inside the output folder, as the owner of the workspace."""

import io
import os
from pathlib import Path

import pytest

from agentci._util.files import (
    append_text,
    prepare_output_folder,
    redact_stream,
    write_output_files,
)
from agentci._util.text.secrets import Redactor
from agentci._util.workspace import find_workspace, trust_path
from agentci.errors import InputError

NOBODY = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_only_given_files_are_written(tmp_path: Path) -> None:
    write_output_files(
        trust_path(tmp_path), {"a.xml": "é\n", "b.json": "{}"}, find_workspace(tmp_path)
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.xml", "b.json"]
    assert (tmp_path / "a.xml").read_bytes() == "é\n".encode()
    assert (tmp_path / "a.xml").stat().st_mode & 0o777 == 0o644


def test_failed_write_keeps_old_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_output_files(trust_path(tmp_path), {"a": "new \ud800"}, find_workspace(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_symlink_at_report_path_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.json").symlink_to(tmp_path / "precious")
    write_output_files(
        trust_path(tmp_path / "out"), {"results.json": "{}"}, find_workspace(tmp_path)
    )
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "out" / "results.json").read_text() == "{}"


@as_root
def test_files_written_by_root_belong_to_workspace_owner(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    folder = prepare_output_folder("a/b", find_workspace(tmp_path))
    write_output_files(folder, {"f": ""}, find_workspace(tmp_path))
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "f"]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(NOBODY, NOBODY)}


@pytest.mark.parametrize("given", ["file", "file/below", "link", "../outside"])
def test_unusable_output_folder_is_rejected(tmp_path: Path, given: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "file").touch()
    (workspace / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match=f"--output-dir {given} "):
        prepare_output_folder(given, find_workspace(workspace))


def test_absolute_output_folder_may_be_outside_workspace(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    assert (
        prepare_output_folder(f"{tmp_path}/out", find_workspace(tmp_path / "w")).path
        == tmp_path / "out"
    )


def test_text_is_appended(tmp_path: Path) -> None:
    append_text(tmp_path / "f", "a\n")
    append_text(tmp_path / "f", "b\n")
    assert (tmp_path / "f").read_text() == "a\nb\n"


def test_stream_hides_secrets_that_are_added_later() -> None:
    out, secrets = io.StringIO(), Redactor(["s3cret-1"])
    stream = redact_stream(out, secrets)
    assert stream.write("s3cret-1 s3cret-2\n") == len("*** s3cret-2\n")
    secrets.add("s3cret-2")
    print("s3cret-1 s3cret-2", file=stream, flush=True)
    assert out.getvalue() == "*** s3cret-2\n*** ***\n"
    assert not stream.isatty()


def test_stream_of_secrets_has_the_descriptor_of_the_file(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        assert redact_stream(file, Redactor()).fileno() == file.fileno()
