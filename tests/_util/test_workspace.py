"""Paths in messages, the workspace boundary, and reading of files."""

import os
from pathlib import Path

import pytest

from agentci._util.workspace import Workspace, find_link_out, find_workspace, read_file, trust_path
from agentci.errors import InputError
from agentci.model.values import Place


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

    def test_given_path_may_be_outside_but_not_by_link_in_workspace(self, tmp_path: Path) -> None:
        (tmp_path / "w" / "sub").mkdir(parents=True)
        (tmp_path / "outside").mkdir()
        (tmp_path / "w" / "link").symlink_to("../outside")
        (tmp_path / "w" / "sub" / "again").symlink_to("../link")
        (tmp_path / "other").symlink_to("outside")
        (tmp_path / "back").symlink_to("w/link")
        workspace = Workspace(root=tmp_path / "w", cwd=tmp_path / "w")
        outside = trust_path(tmp_path / "outside")
        for named in ("../outside", "sub/../../outside", "../other", str(tmp_path / "other")):
            assert workspace.find_given(Path(named)) == outside
        for named in ("link", "sub/again", "sub/../link/x", "../w/link", "../back", "link/../x"):
            assert workspace.find_given(Path(named)) is None

    def test_link_that_leads_out_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "w").mkdir()
        (tmp_path / "w" / "a").symlink_to("b")
        (tmp_path / "w" / "b").symlink_to("/etc")
        workspace = Workspace(root=tmp_path / "w", cwd=tmp_path / "w")
        place = Place(file="c.yaml", line=3)
        with pytest.raises(InputError) as config:
            workspace.resolve(Path("a/passwd"), named="a/*", place=place)
        assert str(config.value) == (
            "c.yaml:3: a/* is outside the workspace: b is a link to /etc"
            " (replace the link by what it leads to)"
        )
        with pytest.raises(InputError, match=r"remove the link, or name /etc/passwd instead"):
            workspace.resolve_given(Path("a/passwd"))
        with pytest.raises(InputError, match=r"a config can only name files in the workspace"):
            workspace.resolve(Path("../x"))

    def test_endless_links_are_followed_to_a_limit(self, tmp_path: Path) -> None:
        (tmp_path / "w").mkdir()
        (tmp_path / "w" / "loop").symlink_to("../loop")
        (tmp_path / "loop").symlink_to("w/loop")
        assert find_link_out(tmp_path / "w/loop", tmp_path / "loop", tmp_path / "w")

    def test_path_with_nul_is_not_a_link(self, tmp_path: Path) -> None:
        workspace = Workspace(root=tmp_path, cwd=tmp_path)
        assert workspace.find(Path("a\0b")) == workspace.find_given(Path("a\0b"))
        assert workspace.find_given(Path("../a\0b")) is not None


class TestReadFile:
    @pytest.mark.parametrize("swapped", ["f", "sub"])
    def test_link_put_in_place_of_resolved_path_is_refused(
        self, tmp_path: Path, swapped: str
    ) -> None:
        (tmp_path / "private").mkdir()
        (tmp_path / "private" / "f").write_text("secret")
        (tmp_path / "w" / "sub").mkdir(parents=True)
        (tmp_path / "w" / "sub" / "f").write_text("mine")
        path = find_workspace(tmp_path / "w").resolve(Path("sub/f"))
        if swapped == "f":
            path.path.unlink()
            path.path.symlink_to(tmp_path / "private" / "f")
        else:
            path.path.parent.rename(tmp_path / "w" / "old")
            path.path.parent.symlink_to(tmp_path / "private")
        with pytest.raises(InputError, match="cannot be read"):
            read_file(path, name="sub/f", limit_bytes=100)

    def test_content_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"\x00x")
        assert read_file(trust_path(tmp_path / "f"), name="f", limit_bytes=2) == b"\x00x"

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("missing", "missing does not exist"),
            ("folder", "folder is a folder (name the file)"),
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
            read_file(trust_path(tmp_path / name), name=name, limit_bytes=1024**2)
        assert message in str(caught.value)

    def test_limit_holds_for_a_file_of_unknown_size(self) -> None:
        path = trust_path(Path("/proc/self/status"))
        assert path.path.stat().st_size == 0
        with pytest.raises(InputError, match="status is larger than 0 MiB"):
            read_file(path, name="status", limit_bytes=10)

    def test_error_has_place_of_reference(self, tmp_path: Path) -> None:
        place = Place(file="eval_config.yaml", line=4)
        with pytest.raises(InputError) as caught:
            read_file(trust_path(tmp_path / "g.json"), name="g.json", limit_bytes=1, place=place)
        assert caught.value.problems[0].place == place
