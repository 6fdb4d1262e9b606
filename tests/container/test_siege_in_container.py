"""The attacks again, in the image: as root, as GitHub runs it, and as somebody else."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.container.engine import OWNER
from tests.execution import siege
from tests.execution.test_siege import ENDED, NAMES, OPEN_TO_THE_SAME_USER

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

ROOT_OF_THE_JOB: Sequence[str] = ()
SOMEBODY = ("--user", "{}:{}".format(*OWNER))
AS_GITHUB_RUNS_IT = ("--volume", "/var/run/docker.sock:/var/run/docker.sock")


def _besieged(
    image: str, tree: Path, folder: Path, *options: str, names: Sequence[str], mode: int = 0o777
) -> Any:
    folder.chmod(mode)
    done = subprocess.run(
        [
            *("docker", "run", "--rm", "--entrypoint", "python", *options),
            *("--volume", f"{tree}/tests:/siege/tests:ro", "--volume", f"{folder}:/scene"),
            *("--env", "PYTHONPATH=/siege", "--env", f"{siege.SECRET}=s3cr3t-of-the-job"),
            *("--env", f"{siege.FORKS}=as evaluators are run"),
            *(image, "-m", "tests.execution.siege", "/scene", *names),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "forged" not in done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(ROOT_OF_THE_JOB, id="as root"),
        pytest.param(SOMEBODY, id="as somebody else"),
        pytest.param(AS_GITHUB_RUNS_IT, id="as root with the engine's socket"),
        pytest.param(("--read-only", "--tmpfs", "/tmp"), id="as root on what cannot be written"),
    ],
)
def test_reaches_nothing_and_leaves_nothing(
    image: str, tree: Path, tmp_path: Path, options: Sequence[str]
) -> None:
    said = _besieged(image, tree, tmp_path, *options, names=NAMES)

    assert said["limitations"] == []
    assert said["left"] == []
    for name, found in said["found"].items():
        allowed = OPEN_TO_THE_SAME_USER.get(name, []) if said["user"] != 0 else []
        assert found.get("error", "").startswith(ENDED.get(name, "")), (name, found)
        assert bool(found.get("error")) == (name in ENDED), (name, found)
        assert [each for each in found.get("reached", ()) if each not in allowed] == [], name
        assert (found["living"], found["left"]) == (0, []), (name, found)


@pytest.mark.parametrize("options", [ROOT_OF_THE_JOB, SOMEBODY], ids=["root", "somebody else"])
def test_what_one_check_leaves_the_next_one_does_not_find(
    image: str, tree: Path, tmp_path: Path, options: Sequence[str]
) -> None:
    said = _besieged(image, tree, tmp_path, *options, names=["leaves_a_file", "finds_a_file"])

    assert said["found"]["finds_a_file"]["reached"] == []


def test_a_root_that_may_not_change_users_says_so(image: str, tree: Path, tmp_path: Path) -> None:
    said = _besieged(
        image, tree, tmp_path, "--cap-drop", "ALL", names=["reads_the_environment", "outlives"]
    )

    assert ["run as root" in each for each in said["limitations"]] == [True]
    assert said["found"]["reads_the_environment"]["reached"] == []
    assert said["found"]["outlives"]["living"] == 0


def test_a_workspace_that_only_root_can_read_is_read_by_root_in_the_rest_of_the_jail(
    image: str, tree: Path, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    names = [name for name in NAMES if name not in ENDED and name != "bombs_with_forks"]

    said = _besieged(image, tree, closed, *AS_GITHUB_RUNS_IT, names=names, mode=0o700)

    assert [each.partition(":")[0] for each in said["limitations"]] == [
        "evaluator programs run as root"
    ]
    reached = {name: found["reached"] for name, found in said["found"].items() if found["reached"]}
    assert reached == {"reads_the_runners_files": ["chmod"]}
