"""``--baseline base`` outside of a workflow: git says what the base is, the cache how it did."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.based import record
from tests.helpers.repositories import commit, git, repository
from tests.helpers.support import PATH, Ran, run_agentci


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "agent")
    (root / ".gitignore").write_text("agentci-results/\n.agentci/\n")
    record(root, sunny=6)
    commit(root)
    return root


def run(root: Path, *options: str, path: str = PATH) -> Ran:
    return run_agentci(["run", "--baseline", "base", *options], cwd=root, environ={"PATH": path})


def compared(ran: Ran) -> Any:
    return ran.results["comparison"]


def test_a_branch_is_compared_with_where_it_left_the_main_branch(root: Path) -> None:
    run(root)
    left = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "--quiet", "-b", "topic")
    record(root, sunny=3)
    commit(root)
    git(root, "checkout", "--quiet", "main")
    commit(root, "others go on")
    git(root, "checkout", "--quiet", "topic")
    ran = run(root)
    assert (compared(ran)["commit"], compared(ran)["stale"]) == (left, "")
    assert compared(ran)["baseline"] == f"{left[:12]}, the cache"
    [trend] = compared(ran)["evaluators"]
    assert (trend["before"], trend["after"]) == (1.0, 0.5)


def test_what_is_not_committed_yet_is_compared_with_what_is(root: Path) -> None:
    run(root)
    record(root, sunny=3)
    for _ in range(2):  # the first is not kept
        [trend] = compared(run(root))["evaluators"]
        assert (trend["before"], trend["after"]) == (1.0, 0.5)


def test_the_main_branch_is_compared_with_what_it_was(root: Path) -> None:
    run(root)
    first = git(root, "rev-parse", "HEAD")
    for _ in range(3):
        record(root, sunny=3)
        commit(root)
    ran = run(root)
    assert (compared(ran)["commit"], compared(ran)["stale"]) == (first, "")


def test_that_the_base_was_not_judged_is_told(root: Path) -> None:
    run(root)
    first = git(root, "rev-parse", "HEAD")
    left = commit(root)
    git(root, "checkout", "--quiet", "-b", "topic")
    commit(root)
    assert compared(run(root))["stale"] == (
        f"the baseline is stale: its commit {first[:12]} is 1 commit before the base {left[:12]}, "
        "which has no results (GitHub is searched only in a workflow)"
    )


def test_a_clone_knows_the_main_branch_of_its_origin(root: Path, tmp_path: Path) -> None:
    git(root, "branch", "--move", "trunk")
    git(tmp_path, "clone", "--quiet", "agent", "mine")
    mine = tmp_path / "mine"
    run(mine)
    left = git(mine, "rev-parse", "HEAD")
    git(mine, "checkout", "--quiet", "-b", "topic")
    commit(mine)
    assert compared(run(mine))["commit"] == left


class TestThereIsNoBaseline:
    def test_before_anything_was_judged(self, root: Path) -> None:
        ran = run(root)
        assert (ran.code, "no results of" in compared(ran)["not_comparable"]) == (0, True)

    def test_without_a_repository(self, root: Path) -> None:
        shutil.rmtree(root / ".git")
        assert "the commit of this run is unknown" in compared(run(root))["not_comparable"]

    def test_without_a_main_branch(self, root: Path) -> None:
        git(root, "branch", "--move", "trunk")
        assert (
            "the repository has no branch main or master" in compared(run(root))["not_comparable"]
        )

    def test_without_git(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "python3").symlink_to(shutil.which("python3") or "")
        ran = run(root, path=str(tmp_path / "bin"))
        assert (
            "the base commit is unknown: git could not be started"
            in compared(ran)["not_comparable"]
        )
        [notice] = [
            each["message"] for each in ran.results["problems"] if "not saved" in each["message"]
        ]
        assert "git could not be started" in notice


def test_no_watcher_of_files_that_a_repository_names_is_started(root: Path) -> None:
    (root / "evil").write_text("#!/bin/sh\ntouch ran\n")
    (root / "evil").chmod(0o755)
    git(root, "config", "core.fsmonitor", str(root / "evil"))
    run(root)
    assert not (root / "ran").exists()
