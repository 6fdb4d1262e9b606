"""Secrets are missing only in workflows started by forks and by Dependabot."""

import pytest

from agentci.github.events import (
    DEPENDABOT_WITHOUT_SECRETS,
    FORK_WITHOUT_SECRETS,
    explain_missing_secrets,
    parse_event,
)
from agentci.model.values import Json


def request(head: Json, base: Json = "org/agent") -> Json:
    return {
        "pull_request": {
            "head": {"repo": None if head is None else {"full_name": head}},
            "base": {"repo": {"full_name": base}},
        }
    }


@pytest.mark.parametrize(
    ("event", "actor", "payload", "why"),
    [
        ("pull_request", "me", request("me/agent"), FORK_WITHOUT_SECRETS),
        ("pull_request_review", "me", request("me/agent"), FORK_WITHOUT_SECRETS),
        ("pull_request", "me", request(None), FORK_WITHOUT_SECRETS),
        ("pull_request", "dependabot[bot]", request("org/agent"), DEPENDABOT_WITHOUT_SECRETS),
        ("push", "dependabot[bot]", {}, DEPENDABOT_WITHOUT_SECRETS),
        ("pull_request", "me", request("org/agent"), ""),
        ("pull_request_target", "me", request("me/agent"), ""),
        ("push", "me", {}, ""),
        ("pull_request", "me", {}, ""),
        ("pull_request", "me", [], ""),
        ("pull_request", "me", request("me/agent", base=7), ""),
        ("", "", None, ""),
    ],
)
def test_missing_secrets_are_explained(event: str, actor: str, payload: Json, why: str) -> None:
    assert explain_missing_secrets(parse_event(event, "", payload), actor) == why
