"""The recipes for other CI services, run in the image as these services run jobs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.container.engine import OWNER
from tests.helpers.recipes import commands_of_jenkins, gitlab

pytestmark = [pytest.mark.container, pytest.mark.timeout(300)]


@pytest.fixture
def checkout(tree: Path, tmp_path: Path) -> Path:
    """A checkout with configs in evals/, owned by a user other than root."""
    folder = tmp_path / "checkout"
    shutil.copytree(tree / "examples/agentevals", folder / "evals")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, *OWNER)
    return folder


def test_gitlab_recipe_runs_in_root_shell(image: str, checkout: Path) -> None:
    job = yaml.safe_load(gitlab())["agent-eval"]
    done = subprocess.run(
        [
            *("docker", "run", "--rm", "--interactive", "--volume", f"{checkout}:/builds/o/r"),
            *("--workdir", "/builds/o/r", f"--entrypoint={job['image']['entrypoint'][0]}"),
            *(image, "sh", "-e"),
        ],
        input="\n".join(job["script"]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (checkout / job["artifacts"]["reports"]["junit"]).is_file()


def test_jenkins_recipe_runs_as_workspace_owner(image: str, checkout: Path) -> None:
    at = str(checkout)
    started = subprocess.run(
        [
            *("docker", "run", "--detach", "--rm", "--tty", "--user", "{}:{}".format(*OWNER)),
            *("--workdir", at, "--volume", f"{at}:{at}:rw,z", "--entrypoint=", image, "cat"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    container = started.stdout.strip()
    try:
        for command in commands_of_jenkins():
            done = subprocess.run(
                ["docker", "exec", container, "sh", "-xe", "-c", command],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    finally:
        subprocess.run(["docker", "kill", container], capture_output=True, check=False)
    assert (checkout / "agentci-results/junit.xml").stat().st_uid == OWNER[0]
