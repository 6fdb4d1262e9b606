"""The base commit of a run, depending on the event that started it."""

import pytest

from agentci.github.events import BaseCommit, WorkflowEvent, find_base_commit, parse_event
from agentci.model.values import JsonObject

BASE, HEAD = "ba5e" * 10, "c0de" * 10
PULL_REQUEST: JsonObject = {
    "pull_request": {
        "number": 7,
        "base": {"sha": BASE, "ref": "main"},
        "head": {"sha": HEAD, "ref": "topic"},
    }
}
GROUP: JsonObject = {
    "merge_group": {
        "base_sha": BASE,
        "head_sha": HEAD,
        "base_ref": "refs/heads/main",
        "head_ref": "refs/heads/gh-readonly-queue/main/pr-7",
    }
}
REPOSITORY: JsonObject = {"default_branch": "main"}
PUSH: JsonObject = {
    "ref": "refs/heads/topic",
    "before": BASE,
    "after": HEAD,
    "repository": REPOSITORY,
}
NEW: JsonObject = {**PUSH, "before": "0" * 40}


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target", "pull_request_review"])
def test_pull_request_base_is_merge_base(name: str) -> None:
    base = find_base_commit(parse_event(name, HEAD, PULL_REQUEST), "7/merge")
    assert base == BaseCommit(commit=BASE, branch="main", merge_base_with="main")


def test_merge_group_base_is_preceding_commit() -> None:
    base = find_base_commit(parse_event("merge_group", HEAD, GROUP), "gh-readonly-queue/main/pr-7")
    assert base == BaseCommit(commit=BASE, branch="main")


def test_push_base_is_previous_branch_head() -> None:
    assert find_base_commit(parse_event("push", HEAD, PUSH), "topic") == BaseCommit(
        commit=BASE, branch="topic"
    )


@pytest.mark.parametrize("ref", ["refs/heads/topic", "refs/tags/v1"])
def test_new_ref_base_is_merge_base_with_default_branch(
    ref: str,
) -> None:
    base = find_base_commit(parse_event("push", HEAD, {**NEW, "ref": ref}), "topic")
    assert base == BaseCommit(commit="", branch="main", merge_base_with="main")


def test_moved_tag_base_is_its_previous_commit() -> None:
    base = find_base_commit(parse_event("push", HEAD, {**PUSH, "ref": "refs/tags/v1"}), "v1")
    assert base == BaseCommit(commit=BASE, branch="main")


@pytest.mark.parametrize("name", ["schedule", "workflow_dispatch", "repository_dispatch"])
def test_event_without_change_accepts_any_earlier_run(name: str) -> None:
    base = find_base_commit(parse_event(name, HEAD, {"ref": "refs/heads/main"}), "main")
    assert base == BaseCommit(commit="", branch="main", is_any_earlier=True)


@pytest.mark.parametrize("name", ["pull_request", "push"])
def test_unreadable_event_has_no_base_commit(name: str) -> None:
    assert find_base_commit(parse_event(name, HEAD, None), "x") == BaseCommit(commit="", branch="")


def test_empty_event_accepts_any_earlier_run() -> None:
    assert find_base_commit(WorkflowEvent(), "main").is_any_earlier
