"""Which commit a run is to be compared with, by what started it."""

import pytest

from agentci.github.events import BaseCommit, WorkflowEvent, find_base_commit, parse_event
from agentci.model.json import JsonObject

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
def test_of_a_pull_request_it_is_what_it_shares_with_its_base_branch(name: str) -> None:
    base = find_base_commit(parse_event(name, HEAD, PULL_REQUEST), "7/merge")
    assert base == BaseCommit(commit=BASE, branch="main", merge_base_with="main")


def test_of_a_merge_queue_it_is_what_stands_before_in_it() -> None:
    base = find_base_commit(parse_event("merge_group", HEAD, GROUP), "gh-readonly-queue/main/pr-7")
    assert base == BaseCommit(commit=BASE, branch="main")


def test_of_a_push_it_is_what_the_branch_was_at() -> None:
    assert find_base_commit(parse_event("push", HEAD, PUSH), "topic") == BaseCommit(
        commit=BASE, branch="topic"
    )


@pytest.mark.parametrize("ref", ["refs/heads/topic", "refs/tags/v1"])
def test_of_a_new_branch_and_of_a_tag_it_is_what_they_share_with_the_default_branch(
    ref: str,
) -> None:
    base = find_base_commit(parse_event("push", HEAD, {**NEW, "ref": ref}), "topic")
    assert base == BaseCommit(commit="", branch="main", merge_base_with="main")


def test_of_a_tag_that_was_moved_it_is_what_it_was_at() -> None:
    base = find_base_commit(parse_event("push", HEAD, {**PUSH, "ref": "refs/tags/v1"}), "v1")
    assert base == BaseCommit(commit=BASE, branch="main")


@pytest.mark.parametrize("name", ["schedule", "workflow_dispatch", "repository_dispatch"])
def test_without_a_change_any_earlier_run_of_the_branch_will_do(name: str) -> None:
    base = find_base_commit(parse_event(name, HEAD, {"ref": "refs/heads/main"}), "main")
    assert base == BaseCommit(commit="", branch="main", is_any_earlier=True)


@pytest.mark.parametrize("name", ["pull_request", "push"])
def test_an_event_that_cannot_be_read_has_none(name: str) -> None:
    assert find_base_commit(parse_event(name, HEAD, None), "x") == BaseCommit(commit="", branch="")


def test_nothing_is_known_of_nothing() -> None:
    assert find_base_commit(WorkflowEvent(), "main").is_any_earlier
