"""``--baseline base`` outside a workflow: git names the base, the cache has its results."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agentci.record.write_spans import mark_lines
from tests.e2e.baseline_workflow import write_eval
from tests.helpers.repositories import commit, git, repository
from tests.helpers.support import PATH, Ran, run_agentci


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "agent")
    (root / ".gitignore").write_text("agentci-results/\n.agentci/\n")
    write_eval(root, sunny=6)
    commit(root)
    return root


def run(root: Path, *options: str, path: str = PATH) -> Ran:
    return run_agentci(["run", "--baseline", "base", *options], cwd=root, environ={"PATH": path})


def compared(ran: Ran) -> Any:
    return ran.results["comparison"]


def test_branch_is_compared_with_merge_base(root: Path) -> None:
    run(root)
    merge_base = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "--quiet", "-b", "topic")
    write_eval(root, sunny=3)
    commit(root)
    git(root, "checkout", "--quiet", "main")
    commit(root, "others go on")
    git(root, "checkout", "--quiet", "topic")
    ran = run(root)
    assert (compared(ran)["commit"], compared(ran)["stale"]) == (merge_base, "")
    assert compared(ran)["baseline"] == f"{merge_base[:12]}, the cache"
    [trend] = compared(ran)["evaluators"]
    assert (trend["before"], trend["after"]) == (1.0, 0.5)


def test_uncommitted_changes_are_compared_with_head(root: Path) -> None:
    run(root)
    write_eval(root, sunny=3)
    for _ in range(2):  # results of uncommitted changes are not saved as a baseline
        [trend] = compared(run(root))["evaluators"]
        assert (trend["before"], trend["after"]) == (1.0, 0.5)


def test_main_branch_is_compared_with_latest_saved_commit(root: Path) -> None:
    run(root)
    first = git(root, "rev-parse", "HEAD")
    for _ in range(3):
        write_eval(root, sunny=3)
        commit(root)
    ran = run(root)
    assert (compared(ran)["commit"], compared(ran)["stale"]) == (first, "")


def test_base_without_results_makes_baseline_stale(root: Path) -> None:
    run(root)
    first = git(root, "rev-parse", "HEAD")
    base = commit(root)
    git(root, "checkout", "--quiet", "-b", "topic")
    commit(root)
    assert compared(run(root))["stale"] == (
        f"the baseline is stale: its commit {first[:12]} is 1 commit before the base {base[:12]}, "
        "which has no results (GitHub is searched only in a workflow)"
    )


def test_results_of_a_failed_recording_are_no_baseline(root: Path) -> None:
    run(root)
    first = git(root, "rev-parse", "HEAD")
    incomplete = {"agentci.case.incomplete": "The recorded run is not complete: no answer"}
    for number in range(6):
        path = root / f"trace{number}.json"
        path.write_text(*mark_lines([path.read_text()], incomplete))
    base = commit(root)
    assert run(root).code == 3
    git(root, "checkout", "--quiet", "-b", "topic")
    write_eval(root, sunny=3)
    commit(root)
    comparison = compared(run(root))
    assert comparison["stale"] == (
        f"the baseline is stale: its commit {first[:12]} is 1 commit before the base {base[:12]}, "
        "which has no results (results.json of the cache has no evaluated check: its recording "
        "failed, or all checks errored; GitHub is searched only in a workflow)"
    )
    assert comparison["commit"] == first


def test_run_whose_recording_failed_is_not_compared(root: Path) -> None:
    incomplete = {"agentci.case.incomplete": "The recorded run is not complete: no answer"}
    path = root / "trace0.json"
    path.write_text(*mark_lines([path.read_text()], incomplete))
    commit(root)
    run(root)
    git(root, "checkout", "--quiet", "-b", "topic")
    write_eval(root, sunny=0)
    commit(root)
    ran = run(root)
    changed = [each.get("answer_changed") for each in ran.results["cases"]]
    assert changed == [None, *[True] * 5]
    assert ["baseline" in each for each in ran.results["cases"]] == [False, *[True] * 5]
    assert ran.results["metrics"]["common"]["cases"] == 5


def test_clone_uses_main_branch_of_origin(root: Path, tmp_path: Path) -> None:
    git(root, "branch", "--move", "trunk")
    git(tmp_path, "clone", "--quiet", "agent", "mine")
    mine = tmp_path / "mine"
    run(mine)
    merge_base = git(mine, "rev-parse", "HEAD")
    git(mine, "checkout", "--quiet", "-b", "topic")
    commit(mine)
    assert compared(run(mine))["commit"] == merge_base


class TestMissingBaseline:
    def test_first_run_has_no_baseline(self, root: Path) -> None:
        ran = run(root)
        assert (ran.code, "no results of" in compared(ran)["no_baseline"]) == (0, True)

    def test_missing_repository_is_reported(self, root: Path) -> None:
        shutil.rmtree(root / ".git")
        assert "the commit of this run is unknown" in compared(run(root))["no_baseline"]

    def test_missing_main_branch_is_reported(self, root: Path) -> None:
        git(root, "branch", "--move", "trunk")
        assert "the repository has no branch main or master" in compared(run(root))["no_baseline"]

    def test_missing_git_is_reported(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "python3").symlink_to(shutil.which("python3") or "")
        ran = run(root, path=str(tmp_path / "bin"))
        assert (
            "the base commit is unknown: git could not be started" in compared(ran)["no_baseline"]
        )
        [message] = [
            each["message"] for each in ran.results["problems"] if "not saved" in each["message"]
        ]
        assert "git could not be started" in message


def test_fsmonitor_of_repository_config_is_not_started(root: Path) -> None:
    (root / "evil").write_text("#!/bin/sh\ntouch ran\n")
    (root / "evil").chmod(0o755)
    git(root, "config", "core.fsmonitor", str(root / "evil"))
    run(root)
    assert not (root / "ran").exists()
