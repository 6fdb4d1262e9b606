"""The action on whatever may start a workflow, told of it as GitHub tells."""

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
class Started:
    """A workflow that one of GitHub's events started.

    Attributes:
        example: which one of those that Octokit has.
        of_fork: a pull request whose head is in another repository.
        has_secrets: whether its steps are given those of the repository.
    """

    name: str
    ref: str
    example: int = 0
    of_fork: bool = False
    has_secrets: bool = True

    def payload(self) -> Any:
        if self.name == "schedule":  # which no webhook tells of
            return {"schedule": "0 4 * * *"}
        # A pull_request_target is sent as the pull_request that it is.
        payload = examples(self.name.removesuffix("_target"))[self.example]
        if self.of_fork:
            payload = json.loads(json.dumps(payload))
            payload["pull_request"]["head"]["repo"]["full_name"] = "stranger/Hello-World"
        return payload


MERGE_QUEUE: Final = "gh-readonly-queue/main/pr-104-929f8209d40f77f4abc622a499c93a83babdbe64"
STARTED: Final = {
    "a pull request": Started(name="pull_request", ref="refs/pull/2/merge"),
    "a pull request from a fork": Started(
        name="pull_request", ref="refs/pull/2/merge", of_fork=True, has_secrets=False
    ),
    "a target of a pull request": Started(
        name="pull_request_target", ref="refs/heads/master", of_fork=True
    ),
    "a merge queue": Started(name="merge_group", ref=f"refs/heads/{MERGE_QUEUE}"),
    "a push": Started(name="push", ref="refs/heads/master", example=4),
    "a push of a tag": Started(name="push", ref="refs/tags/simple-tag"),
    "a person": Started(name="workflow_dispatch", ref="refs/heads/master"),
    "a clock": Started(name="schedule", ref="refs/heads/main"),
}

by_all = pytest.mark.parametrize("started", STARTED.values(), ids=STARTED.keys())


def variables(
    folder: Path, name: str, content: str, ref: str = "refs/heads/main"
) -> dict[str, str]:
    """What the runner sets, and the file that it writes."""
    (folder / "event.json").write_text(content)
    return {
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_SHA": "a" * 40,
        "GITHUB_REF": ref,
        "GITHUB_ACTOR": "Codertocat",
        "GITHUB_REPOSITORY": "Codertocat/Hello-World",
    }


def told(started: Started, folder: Path) -> Mapping[str, str]:
    return variables(folder, started.name, json.dumps(started.payload()), started.ref)


@needs_examples
@by_all
class TestARunStartedBy:
    def test_opens_the_gate(self, started: Started, workspace: Path, tmp_path: Path) -> None:
        step = run_step(workspace, told(started, tmp_path), config="evals")
        assert (step.code, step.outputs["verdict"]) == (0, "passed"), step.log
        assert commands_in(step.log) == []

    def test_judges_without_a_secret_only_where_none_is_given(
        self, started: Started, workspace: Path, tmp_path: Path
    ) -> None:
        write(workspace, at("http://localhost:1"), 1, [CONTAINS, JUDGE])
        step = run_step(workspace, told(started, tmp_path), config="e.yaml")
        [said] = commands_in(step.log)[:1]
        assert KEY_MISSING in said.data
        if started.has_secrets:
            assert (step.code, step.outputs["verdict"], said.name) == (2, "invalid", "error")
        else:
            assert (step.code, step.outputs["verdict"], said.name) == (0, "passed", "warning")
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
    ids=["cut off", "of another shape", "a list", "deep", "unknown", "empty"],
)
def test_an_event_that_makes_no_sense_changes_nothing(
    workspace: Path, tmp_path: Path, name: str, content: str
) -> None:
    write(workspace, at("http://localhost:1"), 1, [CONTAINS, JUDGE])
    step = run_step(workspace, variables(tmp_path, name, content), config="e.yaml")
    assert (step.code, step.outputs["verdict"]) == (2, "invalid")
    assert KEY_MISSING in step.log
    assert "Traceback" not in step.log


@pytest.mark.parametrize("file", ["gone.json", "."])
def test_an_event_without_a_file_changes_nothing(
    workspace: Path, tmp_path: Path, file: str
) -> None:
    event = {**variables(tmp_path, "pull_request", ""), "GITHUB_EVENT_PATH": str(tmp_path / file)}
    step = run_step(workspace, event, config="evals")
    assert (step.code, step.outputs["verdict"]) == (0, "passed"), step.log
