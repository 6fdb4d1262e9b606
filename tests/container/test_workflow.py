"""The project's own workflow, run by act on this machine: checkout, ``uses: ./``, assertions."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.container.engine import BASE_IMAGE

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

WORKFLOW = ".github/workflows/ci.yml"


def test_self_test_job_of_ci_passes(act: Path, image: str, tree: Path, tmp_path: Path) -> None:
    repository = tmp_path / image
    shutil.copytree(tree, repository)
    _use_base_image(repository / "Dockerfile")
    _commit(repository)
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 1, "base": {"ref": "main"}}}))

    what = ["pull_request", "-e", str(event), "-W", WORKFLOW, "-j", "self-test"]
    where = ["-P", f"ubuntu-latest={BASE_IMAGE}", "--pull=false"]
    done = subprocess.run(
        [act, *what, *where, "--action-offline-mode", "--no-cache-server"],
        cwd=repository,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Job succeeded" in done.stdout
    assert done.stdout.count("Success - Main ./") == 1
    assert done.stdout.count("Failure - Main ./") == 1


def _use_base_image(dockerfile: Path) -> None:
    """``uses: ./`` cannot pass a build argument, and the pinned base needs a registry."""
    lines = dockerfile.read_text().splitlines()
    pinned = next(line for line in lines if line.endswith(" AS pinned"))
    dockerfile.write_text(dockerfile.read_text().replace(pinned, f"FROM {BASE_IMAGE} AS pinned"))


def _commit(repository: Path) -> None:
    identity = ["-c", "user.name=ci", "-c", "user.email=ci@example.invalid"]
    for command in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "--all"],
        [*identity, "commit", "--quiet", "--message", "as it stands"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
