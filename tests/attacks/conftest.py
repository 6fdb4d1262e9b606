"""Jobs for attacks, in each mode that this machine can run."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agentci.execution.child.apply_sandbox import find_landlock_version
from agentci.execution.sandbox import SIGNALS_SINCE
from tests.attacks.job import Job, Mode
from tests.helpers.support import ROOT

SYSTEM_PYTHON = Path("/usr/bin/python3")

MakeJob: TypeAlias = Callable[[], Job]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/attacks/"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def python() -> Iterator[Path | None]:
    """A Python of our version with our packages that other users can read; None without any."""
    if os.geteuid() != 0 or _is_open(Path(sys.executable)):
        yield Path(sys.executable)
    elif not _is_open(SYSTEM_PYTHON) or _find_version(SYSTEM_PYTHON) != list(sys.version_info[:2]):
        yield None
    else:
        folder = Path(tempfile.mkdtemp(prefix="python-", dir="/tmp"))
        folder.chmod(0o755)
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").symlink_to(SYSTEM_PYTHON)
        (folder / "bin" / "python").symlink_to("python3")
        (folder / "lib").symlink_to(Path(sys.prefix, "lib"))
        (folder / "pyvenv.cfg").write_text(f"home = {SYSTEM_PYTHON.parent}\n")
        yield folder / "bin" / "python"
        shutil.rmtree(folder)


@pytest.fixture
def mode(request: pytest.FixtureRequest, python: Path | None) -> Mode:
    """The mode of an attack; skips it if this machine cannot run the mode."""
    mode: Mode = request.param
    reason = find_obstacle(mode, python)
    if reason:
        pytest.skip(f"mode {mode}: {reason}")
    return mode


@pytest.fixture
def make_job(mode: Mode, python: Path) -> Iterator[MakeJob]:
    """Makes jobs in the mode of the attack."""
    jobs: list[Job] = []

    def make() -> Job:
        jobs.append(Job(mode, python))
        return jobs[-1]

    yield make
    for job in jobs:
        job.remove()


@pytest.fixture
def job(make_job: MakeJob) -> Job:
    return make_job()


def find_obstacle(mode: Mode, python: Path | None) -> str | None:
    """Why this machine cannot run a mode; None if it can."""
    needed = ("prlimit",) if os.geteuid() != 0 else ("prlimit", "setpriv", "unshare")
    obstacles = {
        "this kernel's Landlock cannot restrict signals (Linux 6.12)": (
            find_landlock_version() < SIGNALS_SINCE
        ),
        "it needs root": os.geteuid() != 0 and mode != "user",
        f"it needs {', '.join(needed)}": not all(map(shutil.which, needed)),
        "other users cannot read a Python of this version": python is None,
        "other users cannot read agentci's code": (
            os.geteuid() == 0 and not _is_open(ROOT / "entrypoint.py")
        ),
    }
    return next((reason for reason, applies in obstacles.items() if applies), None)


def _is_open(path: Path) -> bool:
    places = {*path.parents, *path.resolve().parents, path.resolve()}
    return all(place.exists() and place.stat().st_mode & stat.S_IROTH for place in places)


def _find_version(python: Path) -> Any:
    code = "import sys; print(list(sys.version_info[:2]))"
    return json.loads(subprocess.check_output([python, "-c", code]))
