"""The workflow run that triggered a workflow, read from GitHub's events."""

from typing import Any

import pytest

from agentci.github.events import parse_triggering_run
from tests.github.bench import FORK, HEAD, workflow_run
from tests.helpers.webhooks import examples, needs_examples


@needs_examples
def test_triggering_run_is_read_from_github_examples() -> None:
    payloads = examples("workflow_run")
    assert payloads
    for payload in payloads:
        origin = parse_triggering_run(payload)
        assert origin is not None
        run = payload["workflow_run"]
        assert (origin.run, origin.head_sha) == (run["id"], run["head_sha"])
        assert origin.head == f"{run['head_repository']['owner']['login']}:{run['head_branch']}"


def test_branch_is_qualified_with_owner() -> None:
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
def test_malformed_payload_has_no_triggering_run(payload: Any) -> None:
    assert parse_triggering_run(payload) is None


@pytest.mark.parametrize(
    "changed",
    [{"head_branch": None}, {"head_repository": None}, {"head_repository": {}}],
    ids=str,
)
def test_deleted_branch_keeps_commit(changed: dict[str, Any]) -> None:
    origin = parse_triggering_run(workflow_run(**changed))
    assert origin is not None
    assert (origin.head_sha, origin.head_branch, origin.head_repository) == (HEAD, "", "")
