"""The image with remote evaluators: its cache and the packages that it installs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.container.engine import OWNER, RunImage
from tests.execution.environments.package_index import SDK, PackageIndex

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

PROGRAM = """\
import sys
import agentci.sdk, demo_greeting
sys.stdin.read()
print('{"score": %s}' % demo_greeting.VERSION)
"""
CONFIG = """\
traces: agentevals/recordings/*
evaluators:
  - {name: fixed, type: remote, source: local, ref: fixed}
"""


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    index = PackageIndex()
    index.add(SDK, "0.2.0")
    index.add("demo-greeting", "1.0")
    yield index
    index.close()


@pytest.fixture
def vendored(workspace: Path) -> Path:
    """A workspace with one evaluator, which is listed in the index of the workspace."""
    folder = workspace / "evaluators" / "fixed"
    folder.mkdir(parents=True)
    (folder / "fixed.py").write_text("print('{\"score\": 1}')\n")
    (workspace / "index.yaml").write_text(
        "evaluators: [{name: fixed, path: evaluators/fixed/fixed.py, language: python}]\n"
    )
    (workspace / "eval_config.yaml").write_text(CONFIG)
    return workspace


def test_cache_belongs_to_workspace_owner(run_image: RunImage, vendored: Path, cache: Path) -> None:
    arguments = ["run", "eval_config.yaml", "--cache-dir", "/cache/agentci"]
    done = run_image(vendored, *arguments, options=["--volume", f"{cache}:/cache"])

    assert done.returncode == 0, done.stdout + done.stderr
    kept = [cache / "agentci", *cache.rglob("*")]
    assert any(path.name == "fixed.py" for path in kept)
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in kept} == {OWNER}


def test_run_with_filled_cache_needs_no_network(
    run_image: RunImage, vendored: Path, cache: Path
) -> None:
    mount = ["--volume", f"{cache}:/cache"]
    for options in ([], ["--network", "none", "--read-only", "--tmpfs", "/tmp"]):
        arguments = ["run", "eval_config.yaml", "--cache-dir", "/cache", "--offline", "--locked"]
        done = run_image(vendored, *arguments, options=[*mount, *options])
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("user", ["0:0", "{}:{}".format(*OWNER)], ids=["root", "another user"])
def test_evaluator_packages_are_installed_and_cached(
    run_image: RunImage, vendored: Path, cache: Path, index: PackageIndex, user: str
) -> None:
    mount = ["--volume", f"{cache}:/cache"]
    folder = vendored / "evaluators" / "fixed"
    (folder / "fixed.py").write_text(PROGRAM)
    (folder / "requirements.txt").write_text("demo-greeting\n")
    online = ["--network", "host", "--env", f"PIP_INDEX_URL={index.url}"]
    arguments = ["run", "eval_config.yaml", "--cache-dir", "/cache"]

    done = run_image(vendored, *arguments, options=["--user", user, *mount, *online])

    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((vendored / "agentci-results/results.json").read_text())
    assert {result["score"] for result in report["results"]} == {1.0}

    offline = ["--user", user, *mount, "--network", "none"]
    again = run_image(vendored, *arguments, "--offline", options=offline)

    assert again.returncode == 0, again.stdout + again.stderr
