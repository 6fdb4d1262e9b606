"""Attacks on agentci from inside the sandbox fail, for each user that agentci runs as."""

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

from tests.execution import attack_runner
from tests.helpers.packages import copy_msgspec
from tests.helpers.support import ROOT

pytestmark = pytest.mark.slow

OTHER_USER = 1234
MODULE = "tests.execution.attack_runner"
NAMES = sorted(
    path.stem
    for path in attack_runner.ATTACKS.glob("*.py")
    if path.stem not in {"attack", "sleeps"}
)
# Possible as the same user: Landlock controls neither file permissions nor sockets in folders.
OPEN_TO_THE_SAME_USER = {
    "connects_to_sockets_of_this_machine": ["the engine's socket"],
    "reads_the_runners_files": ["chmod"],
}
ENDED = {
    "never_stops_forking": "timed out after 1.5 s",
    "never_stops_forking_into_sessions": "timed out after 1.5 s",
    "bombs_with_files": "wrote more than 128 MiB of files and was killed",
}

RunAttacks: TypeAlias = Callable[..., Any]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that all users can enter and write to, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="attack-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(
    params=[
        ("as ourselves", ""),
        ("as ourselves", "forked"),
        ("as ourselves", attack_runner.WITH_UNTRUSTED_PACKAGES),
        ("as another user", "forked"),
        ("as another user", attack_runner.WITH_UNTRUSTED_PACKAGES),
    ],
    ids=" ".join,
)
def run_attacks(request: pytest.FixtureRequest, folder: Path) -> RunAttacks:
    """Runs attacks in a separate process; the results list what they reached."""
    whose, beginning = request.param
    run = partial(_run_attacks, folder=folder, beginning=beginning)
    if whose == "as ourselves":
        return lambda *names: run(names, python=sys.executable, user=None)
    if os.geteuid() != 0:
        pytest.skip("only root can run as another user")
    python = next((each for each in (sys.executable, "/usr/bin/python3") if _is_open(each)), None)
    if python is None or not _is_open(str(ROOT / "agentci" / "errors.py")):
        pytest.skip("another user cannot read our code")
    if python != sys.executable and _version(python) != _version(sys.executable):
        pytest.skip("no Python of our version that another user can read")
    return lambda *names: run(names, python=python, user=OTHER_USER)


def _run_attacks(
    names: tuple[str, ...],
    *,
    folder: Path,
    beginning: str,
    python: str,
    user: int | None,
) -> Any:
    variables = {
        attack_runner.SECRET: "s3cr3t-of-the-job",
        **({attack_runner.FORKS: beginning} if beginning else {}),
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
    outcome = json.loads(done.stdout)
    if outcome["limitations"]:
        pytest.skip(f"limitations of this machine: {outcome['limitations']}")
    assert outcome["left"] == []
    return outcome


def _version(python: str) -> str:
    asked = "import sys; print(sys.version_info[:2])"
    return subprocess.check_output([python, "-c", asked], text=True)


def _is_open(path: str) -> bool:
    places = (Path(path).resolve(), *Path(path).resolve().parents)
    return all(place.stat().st_mode & stat.S_IROTH for place in places if place.exists())


def test_attacks_reach_nothing_and_leave_nothing(run_attacks: RunAttacks) -> None:
    # The last is a program that ends by itself: it still runs after all others.
    outcome = run_attacks(*sorted(NAMES, key="outlives".__eq__))
    wrong = {}
    for name, found in outcome["found"].items():
        allowed = OPEN_TO_THE_SAME_USER.get(name, []) if outcome["user"] != 0 else []
        if name in ENDED:
            ended = found.get("error", "").startswith(ENDED[name])
        else:
            ended = found.get("error") is None and not {*found["reached"]} - {*allowed}
        if not ended or (found["living"], found["left"]) != (0, []):
            wrong[name] = found
    assert wrong == {}
    assert outcome["found"].keys() == {*NAMES}
    assert outcome["found"]["outlives"]["code"] == 0


def test_file_of_one_check_is_invisible_to_next(run_attacks: RunAttacks) -> None:
    found = run_attacks("leaves_a_file", "finds_a_file", "finds_a_file")["found"]
    assert found["leaves_a_file"]["reached"] == []
    assert found["finds_a_file"]["reached"] == []
