"""Workflow events, read from GitHub's own examples and from malformed payloads."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentci.github.events import (
    MAX_EVENT_BYTES,
    WorkflowEvent,
    parse_event,
    read_event,
    read_github_context,
)
from agentci.model.values import Json, replace
from tests.helpers.webhooks import examples, needs_examples

RUNS_ON = "a" * 40
HEAD = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
BASE = "f95f852bd8fca8fcc58a9a2d6c842781e32a215e"
ZEROS = "0" * 40


def request(**changes: Any) -> dict[str, Any]:
    """A pull request from the same repository, reduced to what agentci reads."""
    repo = {"full_name": "org/agent"}
    given = {
        "number": 7,
        "head": {"sha": HEAD, "repo": repo},
        "base": {"sha": BASE, "ref": "main", "repo": repo},
    }
    return {"pull_request": given | changes}


@needs_examples
class TestGitHubExamplePayloads:
    @pytest.mark.parametrize(
        "name", ["pull_request", "pull_request_review", "pull_request_review_comment"]
    )
    def test_pull_request_head_is_its_own_last_commit(self, name: str) -> None:
        for payload in examples(name):
            assert parse_event(name, RUNS_ON, payload) == WorkflowEvent(
                name=name,
                pull_request=2,
                head_sha=HEAD,
                base_sha=BASE,
                base_branch="master",
                title="Update the README with new information.",
                date=payload["pull_request"]["updated_at"],
            )

    def test_merge_group_base_is_preceding_commit(self) -> None:
        for payload in examples("merge_group"):
            assert parse_event("merge_group", RUNS_ON, payload) == WorkflowEvent(
                name="merge_group",
                head_sha="2ffea6db159f6b6c47a24e778fb9ef40cf6b1c7d",
                base_sha="380387fbc80638b734a49e1be1c4dfec1c01b33c",
                base_branch="main",
                date=payload["merge_group"]["head_commit"]["timestamp"],
            )

    def test_push_without_previous_commit_has_no_base_commit(self) -> None:
        pushed = [
            replace(parse_event("push", RUNS_ON, payload), date="") for payload in examples("push")
        ]
        made = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
        assert (
            WorkflowEvent(name="push", head_sha=made, base_branch="master", default_branch="master")
            in pushed
        )
        assert WorkflowEvent(name="push", head_sha=made, default_branch="master") in pushed

    def test_workflow_dispatch_uses_workflow_commit(self) -> None:
        for payload in examples("workflow_dispatch"):
            event = parse_event("workflow_dispatch", RUNS_ON, payload)
            assert event == WorkflowEvent(name="workflow_dispatch", head_sha=RUNS_ON)


@pytest.mark.parametrize(
    ("timestamp", "date"),
    [("2026-03-11T15:32:10+01:00", "2026-03-11T15:32:10+01:00"), ("today", ""), (7, "")],
)
def test_push_base_is_previous_head(timestamp: object, date: str) -> None:
    payload: dict[str, Any] = {"ref": "refs/heads/feature/x", "before": BASE, "after": HEAD}
    payload["head_commit"] = {"timestamp": timestamp}
    assert parse_event("push", RUNS_ON, payload) == WorkflowEvent(
        name="push", head_sha=HEAD, base_sha=BASE, base_branch="feature/x", date=date
    )


def test_schedule_uses_workflow_commit() -> None:
    event = parse_event("schedule", RUNS_ON, {"schedule": "0 4 * * *"})
    assert event == WorkflowEvent(name="schedule", head_sha=RUNS_ON)


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target"])
@pytest.mark.parametrize(
    ("repo", "is_fork"),
    [({"full_name": "me/agent"}, True), (None, True), ({"full_name": "org/agent"}, False)],
)
def test_pull_request_from_other_repository_is_a_fork(
    name: str, repo: Json, *, is_fork: bool
) -> None:
    payload = request(head={"sha": HEAD, "repo": repo})
    assert parse_event(name, RUNS_ON, payload).from_fork is is_fork


@pytest.mark.parametrize("sha", [ZEROS, HEAD[1:], f"{HEAD}\n", "../../user", HEAD.upper(), 7, None])
def test_invalid_commit_sha_is_ignored(sha: Json) -> None:
    assert parse_event("push", RUNS_ON, {"before": sha, "after": sha}) == WorkflowEvent(
        name="push", head_sha=RUNS_ON
    )
    assert (
        parse_event("merge_group", RUNS_ON, {"merge_group": {"head_sha": sha}}).head_sha == RUNS_ON
    )
    assert parse_event("pull_request", RUNS_ON, request(head={"sha": sha})).head_sha == ""


@pytest.mark.parametrize("sha", ["b" * 64, HEAD])
def test_sha1_and_sha256_commits_are_read(sha: str) -> None:
    assert parse_event("schedule", sha, {}).head_sha == sha


@pytest.mark.parametrize("number", [0, -1, True, "7", 7.0, None])
def test_invalid_pull_request_number_is_ignored(number: Json) -> None:
    assert parse_event("pull_request", RUNS_ON, request(number=number)).pull_request is None


@pytest.mark.parametrize("payload", [None, [], "", 7, {}, {"pull_request": []}])
def test_malformed_payload_has_no_commit(payload: Json) -> None:
    assert parse_event("pull_request", RUNS_ON, payload) == WorkflowEvent(name="pull_request")


@pytest.mark.parametrize("inner", [None, [], "x", 7, {}])
def test_malformed_members_are_ignored(inner: Json) -> None:
    hollow = {"head": inner, "base": inner}
    assert parse_event("pull_request", "", {"pull_request": hollow}) == WorkflowEvent(
        name="pull_request"
    )
    assert parse_event("push", "", {"ref": inner, "before": inner}) == WorkflowEvent(name="push")


class TestEventFile:
    def environ(self, file: Path) -> dict[str, str]:
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": str(file),
            "GITHUB_SHA": RUNS_ON,
        }

    def test_event_file_is_read(self, tmp_path: Path) -> None:
        file = tmp_path / "event.json"
        file.write_text(json.dumps({"before": BASE}))
        assert read_event(read_github_context(self.environ(file))).base_sha == BASE

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b" " * (MAX_EVENT_BYTES + 1)],
        ids=["empty", "truncated", "not UTF-8", "deeply nested", "long number", "too large"],
    )
    def test_malformed_event_file_is_ignored(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "event.json"
        file.write_bytes(content)
        assert read_event(read_github_context(self.environ(file))) == WorkflowEvent(
            name="push", head_sha=RUNS_ON
        )

    @pytest.mark.parametrize("name", ["missing", ".", "a\0b"])
    def test_unreadable_event_path_is_ignored(self, tmp_path: Path, name: str) -> None:
        event = read_event(read_github_context(self.environ(tmp_path / name)))
        assert event == WorkflowEvent(name="push", head_sha=RUNS_ON)

    def test_no_event_is_read_outside_a_workflow(self) -> None:
        assert read_event(read_github_context({})) == WorkflowEvent()
