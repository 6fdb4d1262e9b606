"""Files of an environment are checked before it enters the cache."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.environments import MAX_DEPTH, accept_environment
from agentci.execution.requirements import install_sdk


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The files of an environment without packages."""
    folder = tmp_path / "environment"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib64").symlink_to("lib")
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "bin" / "python3").symlink_to("python")
    (folder / "lib" / "module.py").write_text("")
    return folder


def link_to_parent(folder: Path) -> None:
    (folder / "lib" / "up").symlink_to("..")


def link_outside(folder: Path) -> None:
    (folder / "lib" / "link").symlink_to("/etc/passwd")


def link_through_folder(folder: Path) -> None:
    (folder / "link").symlink_to("lib/module.py")


def link_to_interpreter_elsewhere(folder: Path) -> None:
    (folder / "lib" / "python").symlink_to(sys.executable)


def replace_interpreter(folder: Path) -> None:
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/bin/sh")


def add_setuid_file(folder: Path) -> None:
    (folder / "bin" / "tool").write_text("")
    (folder / "bin" / "tool").chmod(0o4755)


def add_setgid_file(folder: Path) -> None:
    (folder / "bin" / "tool").write_text("")
    (folder / "bin" / "tool").chmod(0o2755)


def add_pipe(folder: Path) -> None:
    os.mkfifo(folder / "lib" / "pipe")


def add_hard_link(folder: Path) -> None:
    (folder / "lib" / "again").hardlink_to(folder / "lib" / "module.py")


def add_deep_folders(folder: Path) -> None:
    (folder / "/".join("d" * (MAX_DEPTH + 2))).mkdir(parents=True)


@pytest.mark.parametrize(
    "change",
    [
        link_to_parent, link_outside, link_through_folder, link_to_interpreter_elsewhere,
        replace_interpreter, add_setuid_file, add_setgid_file, add_pipe, add_hard_link,
        add_deep_folders,
    ],
)  # fmt: skip
def test_entry_that_no_wheel_contains_is_rejected(
    environment: Path, change: Callable[[Path], None]
) -> None:
    accept_environment(environment, None)
    change(environment)
    with pytest.raises(EvaluatorError, match="the installed packages have"):
        accept_environment(environment, None)


def test_accepted_files_are_readable_for_all_users(environment: Path) -> None:
    closed = environment / "lib" / "closed"
    closed.mkdir()
    (closed / "tool").write_text("")
    (closed / "tool").chmod(0o700)
    (closed / "data").write_text("")
    (closed / "data").chmod(0o666)
    closed.chmod(0o777)
    accept_environment(environment, None)
    assert closed.stat().st_mode & 0o7777 == 0o755
    assert (closed / "tool").stat().st_mode & 0o7777 == 0o755
    assert (closed / "data").stat().st_mode & 0o7777 == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")
@pytest.mark.parametrize("owner", [0, 1234])
def test_accepted_files_belong_to_owner_of_cache(environment: Path, owner: int) -> None:
    for path in (environment, *environment.rglob("*")):
        os.chown(path, 4321, 4321, follow_symlinks=False)
    os.chown(environment.parent, owner, owner)
    accept_environment(environment, environment.parent if owner else None)
    assert {path.lstat().st_uid for path in (environment, *environment.rglob("*"))} == {owner}


def test_sdk_replaces_files_of_packages(environment: Path) -> None:
    install_sdk(environment, None)
    package = next(environment.glob("lib/*/site-packages/agentci"))
    (package / "sdk.py").unlink()
    (package / "sdk.py").symlink_to("__init__.py")
    install_sdk(environment, None)
    assert not (package / "sdk.py").is_symlink()
    for path in sorted(package.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    package.rmdir()
    package.symlink_to("elsewhere")
    package.with_name("elsewhere").mkdir()
    install_sdk(environment, None)
    assert (package / "sdk.py").is_file()
    assert not package.is_symlink()
    assert not list(package.with_name("elsewhere").iterdir())
