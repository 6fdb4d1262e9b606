"""What started a workflow is read from GitHub's own events, and from whatever else stands there."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentci.github.context import read_github_context
from agentci.github.events import MAX_EVENT_BYTES, WorkflowEvent, parse_event, read_event
from agentci.model.json import Json
from tests.helpers.webhooks import examples, needs_examples

RUNS_ON = "a" * 40
HEAD = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
BASE = "f95f852bd8fca8fcc58a9a2d6c842781e32a215e"
ZEROS = "0" * 40


def request(**changes: Any) -> dict[str, Any]:
    """A pull request of a repository's own, as little of it as is read."""
    repo = {"full_name": "org/agent"}
    given = {
        "number": 7,
        "head": {"sha": HEAD, "repo": repo},
        "base": {"sha": BASE, "ref": "main", "repo": repo},
    }
    return {"pull_request": given | changes}


@needs_examples
class TestEventsOfGitHub:
    @pytest.mark.parametrize(
        "name", ["pull_request", "pull_request_review", "pull_request_review_comment"]
    )
    def test_a_pull_request_is_about_its_own_last_commit_and_not_the_merge_of_it(
        self, name: str
    ) -> None:
        for payload in examples(name):
            assert parse_event(name, RUNS_ON, payload) == WorkflowEvent(
                name=name, pull_request=2, head_sha=HEAD, base_sha=BASE, base_branch="master"
            )

    def test_a_merge_group_is_put_on_what_comes_before_it_in_the_queue(self) -> None:
        for payload in examples("merge_group"):
            assert parse_event("merge_group", RUNS_ON, payload) == WorkflowEvent(
                name="merge_group",
                head_sha="2ffea6db159f6b6c47a24e778fb9ef40cf6b1c7d",
                base_sha="380387fbc80638b734a49e1be1c4dfec1c01b33c",
                base_branch="main",
            )

    def test_a_push_that_makes_a_branch_or_moves_a_tag_has_no_base(self) -> None:
        pushed = [parse_event("push", RUNS_ON, payload) for payload in examples("push")]
        made = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
        assert (
            WorkflowEvent(name="push", head_sha=made, base_branch="master", default_branch="master")
            in pushed
        )
        assert WorkflowEvent(name="push", head_sha=made, default_branch="master") in pushed

    def test_a_workflow_started_by_hand_is_about_the_commit_it_runs_on(self) -> None:
        for payload in examples("workflow_dispatch"):
            event = parse_event("workflow_dispatch", RUNS_ON, payload)
            assert event == WorkflowEvent(name="workflow_dispatch", head_sha=RUNS_ON)


def test_a_push_is_put_on_what_it_found() -> None:
    payload = {"ref": "refs/heads/feature/x", "before": BASE, "after": HEAD}
    assert parse_event("push", RUNS_ON, payload) == WorkflowEvent(
        name="push", head_sha=HEAD, base_sha=BASE, base_branch="feature/x"
    )


def test_a_schedule_is_about_the_commit_it_runs_on() -> None:
    event = parse_event("schedule", RUNS_ON, {"schedule": "0 4 * * *"})
    assert event == WorkflowEvent(name="schedule", head_sha=RUNS_ON)


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target"])
@pytest.mark.parametrize(
    ("repo", "is_fork"),
    [({"full_name": "me/agent"}, True), (None, True), ({"full_name": "org/agent"}, False)],
)
def test_a_pull_request_out_of_another_repository_is_from_a_fork(
    name: str, repo: Json, *, is_fork: bool
) -> None:
    payload = request(head={"sha": HEAD, "repo": repo})
    assert parse_event(name, RUNS_ON, payload).from_fork is is_fork


@pytest.mark.parametrize("sha", [ZEROS, HEAD[1:], f"{HEAD}\n", "../../user", HEAD.upper(), 7, None])
def test_what_is_no_commit_is_not_taken_for_one(sha: Json) -> None:
    assert parse_event("push", RUNS_ON, {"before": sha, "after": sha}) == WorkflowEvent(
        name="push", head_sha=RUNS_ON
    )
    assert (
        parse_event("merge_group", RUNS_ON, {"merge_group": {"head_sha": sha}}).head_sha == RUNS_ON
    )
    assert parse_event("pull_request", RUNS_ON, request(head={"sha": sha})).head_sha == ""


@pytest.mark.parametrize("sha", ["b" * 64, HEAD])
def test_a_commit_may_be_of_either_hash(sha: str) -> None:
    assert parse_event("schedule", sha, {}).head_sha == sha


@pytest.mark.parametrize("number", [0, -1, True, "7", 7.0, None])
def test_what_is_no_number_of_a_pull_request_is_not_taken_for_one(number: Json) -> None:
    assert parse_event("pull_request", RUNS_ON, request(number=number)).pull_request is None


@pytest.mark.parametrize("payload", [None, [], "", 7, {}, {"pull_request": []}])
def test_a_pull_request_that_nothing_is_told_of_is_about_no_commit(payload: Json) -> None:
    assert parse_event("pull_request", RUNS_ON, payload) == WorkflowEvent(name="pull_request")


@pytest.mark.parametrize("inner", [None, [], "x", 7, {}])
def test_parts_may_be_of_any_shape(inner: Json) -> None:
    hollow = {"head": inner, "base": inner}
    assert parse_event("pull_request", "", {"pull_request": hollow}) == WorkflowEvent(
        name="pull_request"
    )
    assert parse_event("push", "", {"ref": inner, "before": inner}) == WorkflowEvent(name="push")


class TestTheFile:
    def environ(self, file: Path) -> dict[str, str]:
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": str(file),
            "GITHUB_SHA": RUNS_ON,
        }

    def test_is_read(self, tmp_path: Path) -> None:
        file = tmp_path / "event.json"
        file.write_text(json.dumps({"before": BASE}))
        assert read_event(read_github_context(self.environ(file))).base_sha == BASE

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b" " * (MAX_EVENT_BYTES + 1)],
        ids=["empty", "cut off", "not UTF-8", "deep", "a long number", "large"],
    )
    def test_that_is_malformed_tells_nothing(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "event.json"
        file.write_bytes(content)
        assert read_event(read_github_context(self.environ(file))) == WorkflowEvent(
            name="push", head_sha=RUNS_ON
        )

    @pytest.mark.parametrize("name", ["missing", ".", "a\0b"])
    def test_that_is_none_tells_nothing(self, tmp_path: Path, name: str) -> None:
        event = read_event(read_github_context(self.environ(tmp_path / name)))
        assert event == WorkflowEvent(name="push", head_sha=RUNS_ON)

    def test_is_not_looked_for_outside_of_a_workflow(self) -> None:
        assert read_event(read_github_context({})) == WorkflowEvent()
