"""The commit that a run evaluates: the checked-out one, otherwise the workflow's."""

import json
from pathlib import Path

import pytest

from agentci._util.workspace import Workspace
from agentci.github.events import find_checked_out_commit, make_run_info, read_github_context
from agentci.model.result import RunInfo
from tests.helpers.repositories import commit, repository

WORKFLOW = "c0de" * 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "agent")


class TestEvaluatedCommit:
    def test_commit_is_checked_out_head(self, root: Path) -> None:
        made = commit(root)
        assert self._find_commit(root, GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW) == made

    def test_commit_is_found_from_subdirectory(self, root: Path) -> None:
        (root / "evals").mkdir()
        made = commit(root)
        for cwd in (root, root / "evals"):
            assert (
                self._find_commit(root.parent, cwd, GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW)
                == made
            )

    def test_submodule_directory_uses_superproject_commit(self, root: Path) -> None:
        repository(root / "sub")
        commit(root / "sub")
        made = commit(root)
        assert (
            self._find_commit(root, root / "sub", GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW)
            == made
        )

    def test_workflow_commit_is_used_without_checkout(self, tmp_path: Path) -> None:
        assert self._find_commit(tmp_path, GITHUB_ACTIONS="true", GITHUB_SHA=WORKFLOW) == WORKFLOW

    def test_commit_is_empty_if_unknown(self, tmp_path: Path) -> None:
        assert self._find_commit(tmp_path, GITHUB_SHA=WORKFLOW) == ""
        assert self._find_commit(tmp_path, GITHUB_ACTIONS="true", GITHUB_SHA="main") == ""

    @staticmethod
    def _find_commit(root: Path, cwd: Path | None = None, **environ: str) -> str:
        return find_checked_out_commit(
            Workspace(root=root, cwd=cwd or root), read_github_context(environ)
        )


def test_run_names_pull_request_and_date(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    request = {"number": 7, "title": "Shorter", "updated_at": "2026-03-11T14:32:10Z"}
    event.write_text(json.dumps({"pull_request": request}))
    environ = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_SERVER_URL": "https://git.example",
        "GITHUB_REPOSITORY": "acme/desk",
        "GITHUB_RUN_ID": "12",
        "GITHUB_REF_NAME": "7/merge",
    }
    assert make_run_info(read_github_context(environ)) == RunInfo(
        repository="acme/desk",
        url="https://git.example/acme/desk/actions/runs/12",
        branch="7/merge",
        pull_request=7,
        pull_request_url="https://git.example/acme/desk/pull/7",
        title="Shorter",
        date="2026-03-11T14:32:10Z",
    )
    del environ["GITHUB_SERVER_URL"]
    assert make_run_info(read_github_context(environ)).pull_request is None
    assert make_run_info(read_github_context({**environ, "GITHUB_ACTIONS": ""})) == RunInfo()
