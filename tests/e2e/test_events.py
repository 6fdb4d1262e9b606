"""The action with every kind of event that can start a workflow."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.judged import JUDGE, at, write
from tests.e2e.steps import run_step
from tests.helpers.runner import commands_in
from tests.helpers.webhooks import examples, needs_examples

CONTAINS: Final = {"name": "has", "type": "contains", "value": "Paris"}
KEY_MISSING: Final = "the environment variable KEY with the judge's key is not set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event that starts a workflow.

    Attributes:
        example: the index of the payload among Octokit's examples.
        of_fork: whether the head of the pull request is in another repository.
        has_secrets: whether steps receive the secrets of the repository.
    """

    name: str
    ref: str
    example: int = 0
    of_fork: bool = False
    has_secrets: bool = True

    def payload(self) -> Any:
        if self.name == "schedule":  # it has no webhook
            return {"schedule": "0 4 * * *"}
        # The payload of pull_request_target is that of pull_request.
        payload = examples(self.name.removesuffix("_target"))[self.example]
        if self.of_fork:
            payload = json.loads(json.dumps(payload))
            payload["pull_request"]["head"]["repo"]["full_name"] = "stranger/Hello-World"
        return payload


MERGE_QUEUE: Final = "gh-readonly-queue/main/pr-104-929f8209d40f77f4abc622a499c93a83babdbe64"
EVENTS: Final = {
    "pull request": Event(name="pull_request", ref="refs/pull/2/merge"),
    "pull request from fork": Event(
        name="pull_request", ref="refs/pull/2/merge", of_fork=True, has_secrets=False
    ),
    "pull_request_target": Event(name="pull_request_target", ref="refs/heads/master", of_fork=True),
    "merge queue": Event(name="merge_group", ref=f"refs/heads/{MERGE_QUEUE}"),
    "push": Event(name="push", ref="refs/heads/master", example=4),
    "tag push": Event(name="push", ref="refs/tags/simple-tag"),
    "manual dispatch": Event(name="workflow_dispatch", ref="refs/heads/master"),
    "schedule": Event(name="schedule", ref="refs/heads/main"),
}

for_each_event = pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())


def variables(
    folder: Path, name: str, content: str, ref: str = "refs/heads/main"
) -> dict[str, str]:
    """Write the event file and return the variables that the runner sets."""
    (folder / "event.json").write_text(content)
    return {
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_SHA": "a" * 40,
        "GITHUB_REF": ref,
        "GITHUB_ACTOR": "Codertocat",
        "GITHUB_REPOSITORY": "Codertocat/Hello-World",
    }


def event_variables(event: Event, folder: Path) -> Mapping[str, str]:
    return variables(folder, event.name, json.dumps(event.payload()), event.ref)


@needs_examples
@for_each_event
class TestWorkflowEvent:
    def test_passing_checks_pass_gate_on_every_event(
        self, event: Event, workspace: Path, tmp_path: Path
    ) -> None:
        step = run_step(workspace, event_variables(event, tmp_path), config="evals")
        assert (step.code, step.outputs["verdict"]) == (0, "passed"), step.log
        assert commands_in(step.log) == []

    def test_missing_key_is_skipped_only_without_secrets(
        self, event: Event, workspace: Path, tmp_path: Path
    ) -> None:
        write(workspace, at("http://localhost:1"), 1, [CONTAINS, JUDGE])
        step = run_step(
            workspace, event_variables(event, tmp_path), config="e.yaml", env_allow="KEY"
        )
        [annotation] = commands_in(step.log)[:1]
        assert KEY_MISSING in annotation.data
        if event.has_secrets:
            assert (step.code, step.outputs["verdict"], annotation.name) == (2, "invalid", "error")
        else:
            assert (step.code, step.outputs["verdict"], annotation.name) == (0, "passed", "warning")
            assert step.outputs["skipped-count"] == "1"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pull_request", "{"),
        ("pull_request", '{"pull_request": 7}'),
        ("merge_group", "[]"),
        ("push", "[" * 100_000),
        ("no_such_event", "{}"),
        ("", ""),
    ],
    ids=["truncated", "wrong type", "list", "deeply nested", "unknown event", "empty"],
)
def test_malformed_event_is_ignored(
    workspace: Path, tmp_path: Path, name: str, content: str
) -> None:
    write(workspace, at("http://localhost:1"), 1, [CONTAINS, JUDGE])
    step = run_step(workspace, variables(tmp_path, name, content), config="e.yaml", env_allow="KEY")
    assert (step.code, step.outputs["verdict"]) == (2, "invalid")
    assert KEY_MISSING in step.log
    assert "Traceback" not in step.log


@pytest.mark.parametrize("file", ["gone.json", "."])
def test_missing_event_file_is_ignored(workspace: Path, tmp_path: Path, file: str) -> None:
    event = {**variables(tmp_path, "pull_request", ""), "GITHUB_EVENT_PATH": str(tmp_path / file)}
    step = run_step(workspace, event, config="evals")
    assert (step.code, step.outputs["verdict"]) == (0, "passed"), step.log
