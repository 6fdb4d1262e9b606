"""The interpreter in the cache key changes with everything that can change a response."""

import sys
from pathlib import Path

import pytest

from agentci.model.values import Json
from agentci.runner.response_cache.program_key import Interpreters, list_package_folders
from tests.helpers.support import PATH


def _identity(*command: str, path: str = PATH) -> list[Json]:
    """The description in a new run, of a command whose last word is the program."""
    return Interpreters(path).describe(command, (Path(command[-1]),))


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A separate Python with one package."""
    program = tmp_path / "venv" / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    _install(tmp_path, "demo-1.0", "demo.py,sha256=one,1\n../../../bin/demo,sha256=a,1\n")
    return str(program)


def _install(folder: Path, name: str, record: str) -> None:
    info = folder / "venv" / "lib" / "python3.11" / "site-packages" / f"{name}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "RECORD").write_text(record)


class TestPythonPackages:
    def test_added_package_changes_key(self, tmp_path: Path, python: str) -> None:
        before = _identity(python, "x.py")
        assert _identity(python, "x.py") == before
        _install(tmp_path, "more-1.0", "")
        assert _identity(python, "x.py") != before

    def test_changed_package_content_changes_key(self, tmp_path: Path, python: str) -> None:
        """The version may stay the same, as with a package installed from a checkout."""
        before = _identity(python, "x.py")
        _install(tmp_path, "demo-1.0", "demo.py,sha256=two,1\n")
        assert _identity(python, "x.py") != before

    def test_key_does_not_depend_on_venv_location(self, tmp_path: Path, python: str) -> None:
        """Installed scripts name the location in their shebang."""
        before = _identity(python, "x.py")
        _install(tmp_path, "demo-1.0", "demo.py,sha256=one,1\n../../../bin/demo,sha256=b,1\n")
        assert _identity(python, "x.py") == before

    def test_changed_pth_file_changes_key(self, tmp_path: Path, python: str) -> None:
        [folder] = (tmp_path / "venv").glob("lib/*/*")
        (folder / "more.pth").write_text("/somewhere")
        before = _identity(python, "x.py")
        (folder / "more.pth").write_text("/elsewhere")
        assert _identity(python, "x.py") != before

    def test_reinstalled_egg_info_changes_key(self, tmp_path: Path, python: str) -> None:
        [folder] = (tmp_path / "venv").glob("lib/*/*")
        (folder / "old.egg-info").write_text("Version: 1")
        before = _identity(python, "x.py")
        (folder / "old.egg-info").unlink()
        (folder / "old.egg-info").write_text("Version: 1")
        assert _identity(python, "x.py") != before

    def test_package_folders_include_site_packages(self) -> None:
        folders = list_package_folders(sys.executable)
        assert any(Path(pytest.__file__).is_relative_to(folder) for folder in folders)


class TestSystemProgram:
    def test_changed_program_file_changes_key(self, tmp_path: Path) -> None:
        tool = tmp_path / "tool"
        tool.write_text("one")
        before = _identity(str(tool), "x.js")
        assert _identity(str(tool), "x.js") == before
        tool.unlink()
        tool.write_text("two")
        assert _identity(str(tool), "x.js") != before

    def test_program_is_found_on_path(self, tmp_path: Path) -> None:
        assert _identity("sh", "x") == _identity("/bin/sh", "x")
        assert _identity("sh", "x", path=str(tmp_path)) == ["sh"]


class TestShebang:
    def test_shebang_interpreter_is_part_of_key(self, tmp_path: Path) -> None:
        program = tmp_path / "program"
        program.write_text("#!/bin/sh -e\nexit\n")
        assert _identity(str(program)) == _identity("/bin/sh", "x")

    def test_env_shebang_resolves_its_program(self, tmp_path: Path) -> None:
        program, tool = tmp_path / "program", tmp_path / "tool"
        program.write_text("#!/usr/bin/env -S A=1 tool --fast\n")
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        before = _identity(str(program), path=str(tmp_path))
        tool.write_text("#!/bin/sh\nexit\n")
        assert _identity(str(program), path=str(tmp_path)) != before

    def test_binary_has_no_interpreter(self, tmp_path: Path) -> None:
        (tmp_path / "binary").write_bytes(b"\x7fELF")
        assert _identity(str(tmp_path / "binary")) == []
