"""An environment is used as it was made, or not at all."""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentci.execution.environments.store import (
    LARGE_BYTES,
    MANIFEST,
    DamagedEnvironmentError,
    find_environment,
    format_manifest,
)

pytestmark = pytest.mark.slow

Damage = Callable[[Path], object]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with an environment, as far as verifying needs one."""
    folder = tmp_path / "1234"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "small.py").write_text("small")
    (folder / "large.so").write_bytes(b"x" * LARGE_BYTES)
    (folder / "link").symlink_to("bin")
    (tmp_path / MANIFEST).write_bytes(format_manifest(folder))
    return tmp_path


def test_one_that_is_as_it_was_made_is_found(home: Path) -> None:
    assert find_environment(home) == home / "1234"


def test_one_without_a_manifest_was_never_completed(home: Path) -> None:
    (home / MANIFEST).unlink()
    assert find_environment(home) is None


def test_one_in_another_place_is_the_same(home: Path, tmp_path: Path) -> None:
    moved = home.rename(tmp_path.with_name(f"{tmp_path.name}-moved"))
    assert find_environment(moved) == moved / "1234"


def change_python(folder: Path) -> None:
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/bin/sh")


def replace_link(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").mkdir()


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (lambda folder: (folder / "small.py").write_text("other"), "small.py"),
        (lambda folder: (folder / "large.so").write_bytes(b"y" * LARGE_BYTES), "large.so"),
        (lambda folder: (folder / "small.py").unlink(), "small.py"),
        (lambda folder: (folder / "sitecustomize.py").write_text(""), "sitecustomize.py"),
        (lambda folder: os.mkfifo(folder / "pipe"), "pipe"),
        (change_python, "bin/python"),
        (replace_link, "link"),
    ],
)
def test_one_that_changed_is_damaged(home: Path, damage: Damage, name: str) -> None:
    damage(home / "1234")
    with pytest.raises(DamagedEnvironmentError, match=f"changed files: {name}"):
        find_environment(home)


def test_one_whose_files_are_gone_is_damaged(home: Path) -> None:
    (home / "1234").rename(home / "5678")
    with pytest.raises(DamagedEnvironmentError, match="No such file"):
        find_environment(home)


def test_one_whose_python_was_removed_from_the_machine_is_damaged(home: Path) -> None:
    python = home / "1234" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python")
    (home / MANIFEST).write_bytes(format_manifest(home / "1234"))
    with pytest.raises(DamagedEnvironmentError, match="its Python is missing: /nowhere/python"):
        find_environment(home)


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        json.dumps({"folder": 3, "files": {}}).encode(),
        json.dumps({"folder": "1234", "files": []}).encode(),
        b"[" * 100_000,
    ],
    ids=lambda manifest: manifest[:20],
)
def test_one_with_a_manifest_that_is_none_is_damaged(home: Path, manifest: bytes) -> None:
    (home / MANIFEST).write_bytes(manifest)
    with pytest.raises(DamagedEnvironmentError, match="is invalid"):
        find_environment(home)


@pytest.mark.parametrize("folder", ["..", "../1234/..", "", "."])
def test_a_manifest_leads_nowhere_else(home: Path, folder: str) -> None:
    (home / MANIFEST).write_text(json.dumps({"folder": folder, "files": {}}))
    with pytest.raises(DamagedEnvironmentError):
        find_environment(home)


def test_a_manifest_that_cannot_be_read_is_damage(home: Path) -> None:
    (home / MANIFEST).unlink()
    (home / MANIFEST).mkdir()
    with pytest.raises(DamagedEnvironmentError, match="cannot be read"):
        find_environment(home)


def test_one_that_cannot_be_read_for_now_is_not_damaged(home: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            find_environment(home)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert find_environment(home)
