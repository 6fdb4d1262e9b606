"""What runs a program is known by what can change the program's answers."""

import sys
from pathlib import Path

import pytest

from agentci.model.json import Json
from agentci.runner.response_cache.program_key import Interpreters, list_package_folders
from tests.helpers.support import PATH


def _identity(*command: str, path: str = PATH) -> list[Json]:
    """As a run of its own sees it, of a command whose last word is the program."""
    return Interpreters(path).describe(command, (Path(command[-1]),))


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python of its own, with one package."""
    program = tmp_path / "venv" / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    _install(tmp_path, "demo-1.0", "demo.py,sha256=one,1\n../../../bin/demo,sha256=a,1\n")
    return str(program)


def _install(folder: Path, name: str, record: str) -> None:
    info = folder / "venv" / "lib" / "python3.11" / "site-packages" / f"{name}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "RECORD").write_text(record)


class TestThePackagesOfAPython:
    def test_are_another_once_there_is_one_more(self, tmp_path: Path, python: str) -> None:
        before = _identity(python, "x.py")
        assert _identity(python, "x.py") == before
        _install(tmp_path, "more-1.0", "")
        assert _identity(python, "x.py") != before

    def test_are_others_once_one_has_another_content(self, tmp_path: Path, python: str) -> None:
        """The version may be the same: as of what is installed from a checkout."""
        before = _identity(python, "x.py")
        _install(tmp_path, "demo-1.0", "demo.py,sha256=two,1\n")
        assert _identity(python, "x.py") != before

    def test_are_the_same_in_another_place(self, tmp_path: Path, python: str) -> None:
        """Where their programs name that place in their first lines."""
        before = _identity(python, "x.py")
        _install(tmp_path, "demo-1.0", "demo.py,sha256=one,1\n../../../bin/demo,sha256=b,1\n")
        assert _identity(python, "x.py") == before

    def test_are_others_where_modules_are_found_by_another_path(
        self, tmp_path: Path, python: str
    ) -> None:
        [folder] = (tmp_path / "venv").glob("lib/*/*")
        (folder / "more.pth").write_text("/somewhere")
        before = _identity(python, "x.py")
        (folder / "more.pth").write_text("/elsewhere")
        assert _identity(python, "x.py") != before

    def test_are_known_by_their_time_where_no_list_says_more(
        self, tmp_path: Path, python: str
    ) -> None:
        [folder] = (tmp_path / "venv").glob("lib/*/*")
        (folder / "old.egg-info").write_text("Version: 1")
        before = _identity(python, "x.py")
        (folder / "old.egg-info").unlink()
        (folder / "old.egg-info").write_text("Version: 1")
        assert _identity(python, "x.py") != before

    def test_of_ours_lie_where_it_looks(self) -> None:
        ours = list_package_folders(sys.executable)
        assert any(Path(pytest.__file__).is_relative_to(folder) for folder in ours)


class TestAProgramOfTheSystem:
    def test_is_another_once_its_file_is(self, tmp_path: Path) -> None:
        tool = tmp_path / "tool"
        tool.write_text("one")
        before = _identity(str(tool), "x.js")
        assert _identity(str(tool), "x.js") == before
        tool.unlink()
        tool.write_text("two")
        assert _identity(str(tool), "x.js") != before

    def test_is_found_by_its_name(self, tmp_path: Path) -> None:
        assert _identity("sh", "x") == _identity("/bin/sh", "x")
        assert _identity("sh", "x", path=str(tmp_path)) == ["sh"]


class TestTheFirstLine:
    def test_names_what_runs_a_program_that_is_its_own_command(self, tmp_path: Path) -> None:
        program = tmp_path / "program"
        program.write_text("#!/bin/sh -e\nexit\n")
        assert _identity(str(program)) == _identity("/bin/sh", "x")

    def test_names_what_env_finds(self, tmp_path: Path) -> None:
        program, tool = tmp_path / "program", tmp_path / "tool"
        program.write_text("#!/usr/bin/env -S A=1 tool --fast\n")
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        before = _identity(str(program), path=str(tmp_path))
        tool.write_text("#!/bin/sh\nexit\n")
        assert _identity(str(program), path=str(tmp_path)) != before

    def test_of_a_binary_names_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "binary").write_bytes(b"\x7fELF")
        assert _identity(str(tmp_path / "binary")) == []
