"""The paths that a program may read where links in the workspace lead out of it."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agentci._util.workspace import trust_path
from agentci.execution.sandbox import (
    CERTIFICATE_VARIABLES,
    PATH_VARIABLES,
    find_program,
    make_read_rules,
)


@pytest.fixture
def top() -> Iterator[Path]:
    """A folder with a workspace and, outside it, a folder with a secret."""
    with TemporaryDirectory(dir="/tmp") as folder:
        top = Path(os.path.realpath(folder))
        top.chmod(0o755)
        for name in ("ws", "private", "home"):
            (top / name).mkdir(mode=0o755)
        _write_program(top / "private/tool")
        (top / "private/key").write_text("secret")
        yield top


def _write_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def _list_readable(
    top: Path,
    *programs: str | Path,
    environment: Mapping[str, str] | None = None,
    privileged: bool = False,
) -> set[str]:
    """The readable paths below ``top``, relative to it."""
    rules = make_read_rules(
        tuple(map(str, programs)),
        environment or {},
        (trust_path(top / "ws"),),
        workspace=top / "ws",
        privileged=privileged,
    )
    found = (Path(os.fsdecode(path)) for path, _ in rules)
    return {str(path.relative_to(top)) for path in found if path.is_relative_to(top)}


class TestVariables:
    @pytest.mark.parametrize("name", [*PATH_VARIABLES, *CERTIFICATE_VARIABLES, "PATH"])
    def test_entry_behind_planted_link_is_not_readable(self, top: Path, name: str) -> None:
        (top / "ws/link").symlink_to(top / "private")
        (top / "ws/below").mkdir()
        (top / "ws/below/again").symlink_to("../link")
        for entry in ("link", "link/sub", "below/again", "below/../link", "link/../private"):
            variables = {name: f"{top}/ws/{entry}"}
            assert _list_readable(top, environment=variables) == {"ws"}, entry

    @pytest.mark.parametrize("name", [*PATH_VARIABLES, *CERTIFICATE_VARIABLES, "PATH"])
    def test_entry_outside_is_readable(self, top: Path, name: str) -> None:
        variables = {name: f"{top}/private"}
        assert _list_readable(top, environment=variables) == {"ws", "private"}

    def test_links_outside_of_workspace_are_followed(self, top: Path) -> None:
        (top / "link").symlink_to("private")
        assert _list_readable(top, environment={"PATH": f"{top}/link"}) == {"ws", "private"}

    def test_link_that_leads_through_workspace_is_not_readable(self, top: Path) -> None:
        (top / "ws/link").symlink_to(top / "private")
        (top / "link").symlink_to("ws/link")
        (top / "workspace").symlink_to("ws")
        for entry in ("link", "workspace/link"):
            assert _list_readable(top, environment={"PATH": f"{top}/{entry}"}) == {"ws"}

    def test_folders_beside_search_path_in_workspace_may_not_lead_out(self, top: Path) -> None:
        (top / "ws/bin").mkdir()
        for name in ("lib", "lib64", "libexec", "pyvenv.cfg"):
            (top / "ws" / name).symlink_to(top / "private")
        assert _list_readable(top, environment={"PATH": f"{top}/ws/bin"}) == {"ws"}

    def test_home_in_workspace_may_not_lead_out(self, top: Path) -> None:
        (top / "ws/.pyenv").symlink_to(top / "private")
        variables = {"PATH": f"{top}/ws/.pyenv/shims", "HOME": f"{top}/ws"}
        assert _list_readable(top, environment=variables) == {"ws"}


class TestPrograms:
    @pytest.mark.parametrize("name", ["lib", "lib64", "libexec", "pyvenv.cfg"])
    @pytest.mark.parametrize("program", ["ev.sh", "python3"])
    def test_planted_link_beside_program_is_not_readable(
        self, top: Path, program: str, name: str
    ) -> None:
        (top / "ws" / name).symlink_to(top / "private")
        own = _write_program(top / "ws/bin" / program)
        assert _list_readable(top, own) == {"ws"}

    @pytest.mark.parametrize("folder", ["private", "private/bin"])
    def test_only_the_file_of_a_program_outside_is_readable(self, top: Path, folder: str) -> None:
        _write_program(top / folder / "tool")
        (top / "ws/link").symlink_to(top / folder / "tool")
        (top / "ws/folder").symlink_to(top / folder)
        for named in (f"{folder}/tool", "ws/link", "ws/folder/tool", f"ws/../{folder}/tool"):
            assert _list_readable(top, top / named) == {"ws", f"{folder}/tool"}, named

    def test_interpreter_outside_is_readable_with_its_packages(self, top: Path) -> None:
        _write_program(top / "python/bin/python3.12")
        (top / "python/bin/python3").symlink_to("python3.12")
        (top / "ws/.venv/bin").mkdir(parents=True)
        (top / "ws/.venv/bin/python").symlink_to(top / "python/bin/python3")
        expected = {"ws", *(f"python/{each}" for each in ("bin", "lib", "lib64", "libexec"))}
        for named in ("python/bin/python3", "ws/.venv/bin/python"):
            assert _list_readable(top, top / named) == expected | {"python/pyvenv.cfg"}

    def test_environment_outside_is_readable_with_its_base(self, top: Path) -> None:
        _write_program(top / "home/.pyenv/versions/3.12/bin/python3.12")
        (top / "venv/bin").mkdir(parents=True)
        (top / "venv/bin/python").symlink_to(top / "home/.pyenv/versions/3.12/bin/python3.12")
        found = _list_readable(
            top, top / "venv/bin/python", environment={"HOME": str(top / "home")}
        )
        assert {"venv/bin", "venv/lib", "venv/pyvenv.cfg", "home/.pyenv"} <= found

    def test_interpreter_must_be_in_bin_folder(self, top: Path) -> None:
        own = _write_program(top / "private/python3")
        assert _list_readable(top, own) == {"ws", "private/python3"}

    def test_only_executable_files_are_programs(self, top: Path) -> None:
        assert find_program(f"{top}/private/tool") == f"{top}/private/tool"
        for named in (f"{top}/private/key", f"{top}/private", "tool", ""):
            assert find_program(named) == ""

    def test_folder_behind_planted_link_is_not_readable_for_our_python(
        self, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (top / "ws/src").symlink_to(top / "private")
        monkeypatch.setattr(sys, "path", [*sys.path, f"{top}/ws/src"])
        assert _list_readable(top, sys.executable) == {"ws"}


class TestPrivilegedProgram:
    """A program that could read what is closed to other users if a rule allowed it."""

    def test_closed_folders_are_not_readable(self, top: Path) -> None:
        (top / "private").chmod(0o700)
        for name in ("PATH", "PYTHONPATH", "SSL_CERT_FILE"):
            variables = {name: f"{top}/private"}
            assert _list_readable(top, environment=variables, privileged=True) == {"ws"}
        assert _list_readable(top, top / "private/tool", privileged=True) == {"ws"}

    def test_folder_with_closed_file_is_not_readable(self, top: Path) -> None:
        variables = {"PYTHONPATH": f"{top}/private"}
        (top / "private/sub").mkdir()
        (top / "private/sub/key").write_text("secret")
        (top / "private/sub/key").chmod(0o600)
        assert _list_readable(top, environment=variables, privileged=True) == {"ws"}

    def test_open_folder_is_readable(self, top: Path) -> None:
        (top / "private/broken").symlink_to("nowhere")
        variables = {"PATH": f"{top}/private", "SSL_CERT_FILE": f"{top}/private/key"}
        found = _list_readable(top, environment=variables, privileged=True)
        assert found == {"ws", "private"}

    def test_interpreters_of_search_path_and_version_managers_are_readable(self, top: Path) -> None:
        (top / "home").chmod(0o700)
        node = _write_program(top / "home/tools/bin/node")
        _write_program(top / "home/.pyenv/shims/python3")
        variables = {
            "HOME": f"{top}/home",
            "PATH": f"{node.parent}:{top}/home/.pyenv/shims:{top}/home/.local/bin",
        }
        (top / "home/.local/bin").mkdir(parents=True)
        found = _list_readable(top, node, environment=variables, privileged=True)
        assert {"home/tools/bin", "home/tools/lib", "home/.pyenv"} <= found
        assert not {"home/.local/bin", "home/.local/lib"} & found

    @pytest.mark.parametrize("link", [".pyenv", "h"])
    def test_version_manager_behind_planted_link_is_not_readable(
        self, top: Path, link: str
    ) -> None:
        own = _write_program(top / "private/.pyenv/bin/node")
        (top / "private").chmod(0o700)
        target, home = {
            ".pyenv": (top / "private/.pyenv", top / "ws"),
            "h": (top / "private", top / "ws/h"),
        }[link]
        (top / "ws" / link).symlink_to(target)
        found = _list_readable(top, own, environment={"HOME": str(home)}, privileged=True)
        assert found == {"ws"}

    def test_closed_interpreter_that_a_pull_request_names_is_not_readable(self, top: Path) -> None:
        (top / "home").chmod(0o700)
        own = _write_program(top / "home/tools/bin/node")
        (top / "ws/bin").mkdir()
        (top / "ws/bin/node").symlink_to(own)
        variables = {"PATH": f"{top}/ws/bin"}
        for named in (own, top / "ws/bin/node"):
            found = _list_readable(top, named, environment=variables, privileged=True)
            assert found == {"ws"}
