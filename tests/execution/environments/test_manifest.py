"""A cached environment is used only if its files match its manifest."""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentci.execution.environments import (
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
    """A folder with a minimal environment and its manifest."""
    folder = tmp_path / "1234"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "small.py").write_text("small")
    (folder / "large.so").write_bytes(b"x" * LARGE_BYTES)
    (folder / "link").symlink_to("bin")
    (tmp_path / MANIFEST).write_bytes(format_manifest(folder))
    return tmp_path


def test_unchanged_environment_is_found(home: Path) -> None:
    assert find_environment(home) == home / "1234"


def test_environment_without_manifest_is_not_found(home: Path) -> None:
    (home / MANIFEST).unlink()
    assert find_environment(home) is None


def test_moved_environment_is_found(home: Path, tmp_path: Path) -> None:
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
def test_changed_environment_is_damaged(home: Path, damage: Damage, name: str) -> None:
    damage(home / "1234")
    with pytest.raises(DamagedEnvironmentError, match=f"changed files: {name}"):
        find_environment(home)


def test_environment_without_files_is_damaged(home: Path) -> None:
    (home / "1234").rename(home / "5678")
    with pytest.raises(DamagedEnvironmentError, match="No such file"):
        find_environment(home)


def test_environment_without_python_is_damaged(home: Path) -> None:
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
def test_environment_with_invalid_manifest_is_damaged(home: Path, manifest: bytes) -> None:
    (home / MANIFEST).write_bytes(manifest)
    with pytest.raises(DamagedEnvironmentError, match="is invalid"):
        find_environment(home)


@pytest.mark.parametrize("folder", ["..", "../1234/..", "", "."])
def test_manifest_with_folder_elsewhere_is_rejected(home: Path, folder: str) -> None:
    (home / MANIFEST).write_text(json.dumps({"folder": folder, "files": {}}))
    with pytest.raises(DamagedEnvironmentError):
        find_environment(home)


def test_environment_with_unreadable_manifest_is_damaged(home: Path) -> None:
    (home / MANIFEST).unlink()
    (home / MANIFEST).mkdir()
    with pytest.raises(DamagedEnvironmentError, match="cannot be read"):
        find_environment(home)


def test_temporary_read_error_is_not_damage(home: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            find_environment(home)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert find_environment(home)
