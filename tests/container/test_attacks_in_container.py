"""The attacks in the image: as root, as GitHub runs it, and as another user."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.container.engine import OWNER
from tests.execution import attack_runner
from tests.execution.test_attacks import ENDED, NAMES, OPEN_TO_THE_SAME_USER

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

ROOT_OF_THE_JOB: Sequence[str] = ()
OTHER_USER = ("--user", "{}:{}".format(*OWNER))
AS_GITHUB_RUNS_IT = ("--volume", "/var/run/docker.sock:/var/run/docker.sock")


def _run_attacks(
    image: str, tree: Path, folder: Path, *options: str, names: Sequence[str], mode: int = 0o777
) -> Any:
    folder.chmod(mode)
    done = subprocess.run(
        [
            *("docker", "run", "--rm", "--entrypoint", "python", *options),
            *("--volume", f"{tree}/tests:/attacks/tests:ro", "--volume", f"{folder}:/scene"),
            *("--env", "PYTHONPATH=/attacks", "--env", f"{attack_runner.SECRET}=s3cr3t-of-the-job"),
            *("--env", f"{attack_runner.FORKS}=as evaluators are run"),
            *(image, "-m", "tests.execution.attack_runner", "/scene", *names),
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
        pytest.param(OTHER_USER, id="as another user"),
        pytest.param(AS_GITHUB_RUNS_IT, id="as root with the engine's socket"),
        pytest.param(("--read-only", "--tmpfs", "/tmp"), id="as root on a read-only file system"),
    ],
)
def test_attacks_reach_nothing_and_leave_nothing(
    image: str, tree: Path, tmp_path: Path, options: Sequence[str]
) -> None:
    outcome = _run_attacks(image, tree, tmp_path, *options, names=NAMES)

    assert outcome["limitations"] == []
    assert outcome["left"] == []
    for name, found in outcome["found"].items():
        allowed = OPEN_TO_THE_SAME_USER.get(name, []) if outcome["user"] != 0 else []
        assert found.get("error", "").startswith(ENDED.get(name, "")), (name, found)
        assert bool(found.get("error")) == (name in ENDED), (name, found)
        assert [each for each in found.get("reached", ()) if each not in allowed] == [], name
        assert (found["living"], found["left"]) == (0, []), (name, found)


@pytest.mark.parametrize("options", [ROOT_OF_THE_JOB, OTHER_USER], ids=["root", "another user"])
def test_file_of_one_check_is_invisible_to_next(
    image: str, tree: Path, tmp_path: Path, options: Sequence[str]
) -> None:
    outcome = _run_attacks(image, tree, tmp_path, *options, names=["leaves_a_file", "finds_a_file"])

    assert outcome["found"]["finds_a_file"]["reached"] == []


def test_root_without_capabilities_is_a_limitation(image: str, tree: Path, tmp_path: Path) -> None:
    outcome = _run_attacks(
        image, tree, tmp_path, "--cap-drop", "ALL", names=["reads_the_environment", "outlives"]
    )

    assert ["run as root" in each for each in outcome["limitations"]] == [True]
    assert outcome["found"]["reads_the_environment"]["reached"] == []
    assert outcome["found"]["outlives"]["living"] == 0


def test_root_stays_sandboxed_for_private_workspace(image: str, tree: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    names = [name for name in NAMES if name not in ENDED and name != "bombs_with_forks"]

    outcome = _run_attacks(image, tree, closed, *AS_GITHUB_RUNS_IT, names=names, mode=0o700)

    assert [each.partition(":")[0] for each in outcome["limitations"]] == [
        "evaluator programs run as root"
    ]
    reached = {
        name: found["reached"] for name, found in outcome["found"].items() if found["reached"]
    }
    assert reached == {"reads_the_runners_files": ["chmod"]}
