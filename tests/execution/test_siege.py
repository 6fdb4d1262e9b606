"""Attacks on agentci from within a jail: each is refused, whoever agentci runs as."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.execution import siege
from tests.helpers.packages import copy_msgspec
from tests.helpers.support import ROOT

pytestmark = pytest.mark.slow

SOMEBODY = 1234
MODULE = "tests.execution.siege"
NAMES = sorted(
    path.stem for path in siege.ATTACKS.glob("*.py") if path.stem not in {"attack", "sleeps"}
)
# Of one user with agentci: Landlock knows neither the permissions of files nor sockets in folders.
OPEN_TO_THE_SAME_USER = {
    "connects_to_sockets_of_this_machine": ["the engine's socket"],
    "reads_the_runners_files": ["chmod"],
}
ENDED = {
    "never_stops_forking": "timed out after 1.5 s",
    "never_stops_forking_into_sessions": "timed out after 1.5 s",
    "bombs_with_files": "wrote more than 128 MiB of files and was killed",
}

Besiege: TypeAlias = Callable[..., Any]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user can enter and write to, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="siege-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(
    params=[
        ("as ourselves", ""),
        ("as ourselves", "forked"),
        ("as ourselves", siege.OF_OWN_PACKAGES),
        ("as somebody else", "forked"),
        ("as somebody else", siege.OF_OWN_PACKAGES),
    ],
    ids=" ".join,
)
def besiege(request: pytest.FixtureRequest, folder: Path) -> Besiege:
    """Runs attacks in a process of its own; what holds is told by what they have reached."""
    whose, beginning = request.param
    besieged = partial(_besieged, folder=folder, beginning=beginning)
    if whose == "as ourselves":
        return lambda *names: besieged(names, python=sys.executable, user=None)
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    python = next((each for each in (sys.executable, "/usr/bin/python3") if _is_open(each)), None)
    if python is None or not _is_open(str(ROOT / "agentci" / "errors.py")):
        pytest.skip("somebody else could not read our code")
    if python != sys.executable and _version(python) != _version(sys.executable):
        pytest.skip("somebody else has no Python of our version")
    return lambda *names: besieged(names, python=python, user=SOMEBODY)


def _besieged(
    names: tuple[str, ...],
    *,
    folder: Path,
    beginning: str,
    python: str,
    user: int | None,
) -> Any:
    variables = {
        siege.SECRET: "s3cr3t-of-the-job",
        **({siege.FORKS: beginning} if beginning else {}),
    }
    path = str(ROOT)
    if python != sys.executable:
        path += os.pathsep + copy_msgspec(folder / "of-ours")
    done = subprocess.run(
        [python, "-m", MODULE, str(folder), *names],
        cwd="/",
        env={"PYTHONPATH": path, "PATH": os.defpath, **variables},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "forged" not in done.stdout + done.stderr
    said = json.loads(done.stdout)
    if said["limitations"]:
        pytest.skip(f"this machine cannot: {said['limitations']}")
    assert said["left"] == []
    return said


def _version(python: str) -> str:
    asked = "import sys; print(sys.version_info[:2])"
    return subprocess.check_output([python, "-c", asked], text=True)


def _is_open(path: str) -> bool:
    places = (Path(path).resolve(), *Path(path).resolve().parents)
    return all(place.stat().st_mode & stat.S_IROTH for place in places if place.exists())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ENDED])
def test_reaches_nothing_and_leaves_nothing(name: str, besiege: Besiege) -> None:
    said = besiege(name)
    found = said["found"][name]
    allowed = OPEN_TO_THE_SAME_USER.get(name, []) if said["user"] != 0 else []
    assert found.get("error") is None
    assert [each for each in found["reached"] if each not in allowed] == []
    assert (found["living"], found["left"]) == (0, [])


@pytest.mark.parametrize("name", sorted(ENDED))
def test_is_ended_with_all_that_it_started(name: str, besiege: Besiege) -> None:
    found = besiege(name)["found"][name]
    assert found["error"].startswith(ENDED[name])
    assert (found["living"], found["left"]) == (0, [])


def test_what_one_check_leaves_the_next_one_does_not_find(besiege: Besiege) -> None:
    found = besiege("leaves_a_file", "finds_a_file", "finds_a_file")["found"]
    assert found["leaves_a_file"]["reached"] == []
    assert found["finds_a_file"]["reached"] == []


def test_a_program_that_is_attacked_from_beside_is_still_served(besiege: Besiege) -> None:
    found = besiege("signals_others", "never_stops_forking", "outlives")["found"]
    assert found["outlives"]["code"] == 0
