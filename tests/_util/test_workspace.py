"""Paths in messages, the workspace boundary, and reading of files."""

import os
from pathlib import Path

import pytest

from agentci._util.workspace import Workspace, find_workspace, read_file
from agentci.errors import InputError
from agentci.model.problem import Place


class TestWorkspace:
    def test_root_is_the_enclosing_repository(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / "a" / "b").mkdir(parents=True)
        assert find_workspace(tmp_path / "a" / "b").root == tmp_path

    def test_root_is_working_directory_without_repository(self, tmp_path: Path) -> None:
        assert find_workspace(tmp_path).root == tmp_path

    def test_given_root_is_used(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        assert find_workspace(tmp_path / "sub", root=tmp_path).root == tmp_path

    def test_display_paths_are_relative_to_root(self, tmp_path: Path) -> None:
        workspace = Workspace(root=tmp_path, cwd=tmp_path / "sub")
        assert workspace.display_path(tmp_path / "x.json") == "x.json"
        assert workspace.display_path(Path("y.json")) == "sub/y.json"
        assert workspace.display_path(Path("../z.json")) == "z.json"
        assert workspace.display_path(Path("/elsewhere/t.json")) == "/elsewhere/t.json"

    def test_symlink_to_outside_is_not_contained(self, tmp_path: Path) -> None:
        inside = tmp_path / "inside"
        inside.mkdir()
        (tmp_path / "secret").write_text("s")
        (inside / "link").symlink_to(tmp_path / "secret")
        workspace = find_workspace(inside)
        assert not workspace.contains(inside / "link")
        assert not workspace.contains(inside / ".." / "secret")
        assert workspace.contains(inside / "not-there-yet")

    def test_symlink_loop_does_not_fail(self, tmp_path: Path) -> None:
        (tmp_path / "loop").symlink_to("loop")
        workspace = find_workspace(tmp_path, root=tmp_path / "loop")
        assert workspace.root == tmp_path
        assert workspace.contains(tmp_path / "loop")


class TestReadFile:
    def test_content_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"\x00x")
        assert read_file(tmp_path / "f", name="f", limit_bytes=2) == b"\x00x"

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("missing", "missing does not exist"),
            ("folder", "folder is a folder, not a file"),
            ("large", "large is larger than 1 MiB (split it into several files)"),
            ("pipe", "pipe is not a regular file"),
            ("x" * 300, "File name too long"),
        ],
    )
    def test_unreadable_file_is_reported(self, tmp_path: Path, name: str, message: str) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "large").write_bytes(b"x" * (1024**2 + 1))
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(InputError) as caught:
            read_file(tmp_path / name, name=name, limit_bytes=1024**2)
        assert message in str(caught.value)

    def test_error_has_place_of_reference(self, tmp_path: Path) -> None:
        place = Place(file="eval_config.yaml", line=4)
        with pytest.raises(InputError) as caught:
            read_file(tmp_path / "g.json", name="g.json", limit_bytes=1, place=place)
        assert caught.value.problems[0].place == place
