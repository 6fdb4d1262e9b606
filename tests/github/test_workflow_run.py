"""The run that a workflow follows is told by GitHub, in the events that it sends."""

from typing import Any

import pytest

from agentci.github.events import parse_triggering_run
from tests.github.bench import FORK, HEAD, workflow_run
from tests.helpers.webhooks import examples, needs_examples


@needs_examples
def test_is_read_from_every_event_that_is_known() -> None:
    payloads = examples("workflow_run")
    assert payloads
    for payload in payloads:
        origin = parse_triggering_run(payload)
        assert origin is not None
        run = payload["workflow_run"]
        assert (origin.run, origin.head_sha) == (run["id"], run["head_sha"])
        assert origin.head == f"{run['head_repository']['owner']['login']}:{run['head_branch']}"


def test_has_the_branch_as_the_api_looks_for_it() -> None:
    origin = parse_triggering_run(workflow_run())
    assert origin is not None
    assert (origin.head, origin.head_repository, origin.head_sha) == (
        "mallory:feature",
        FORK,
        HEAD,
    )


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"workflow_run": 3},
        workflow_run(id=True),
        workflow_run(id="3"),
        workflow_run(head_sha="HEAD"),
        workflow_run(head_sha=None),
        workflow_run(event=None),
    ],
)
def test_is_none_where_that_is_not_told(payload: Any) -> None:
    assert parse_triggering_run(payload) is None


@pytest.mark.parametrize(
    "changed",
    [{"head_branch": None}, {"head_repository": None}, {"head_repository": {}}],
    ids=str,
)
def test_has_its_commit_where_the_branch_is_gone(changed: dict[str, Any]) -> None:
    origin = parse_triggering_run(workflow_run(**changed))
    assert origin is not None
    assert (origin.head_sha, origin.head_branch, origin.head_repository) == (HEAD, "", "")
