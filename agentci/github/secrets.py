"""Whether a workflow is one that GitHub gives no secrets to.

See https://docs.github.com/actions/security-guides/using-secrets-in-github-actions.
"""

from collections.abc import Mapping
from typing import Final

from agentci.model.json import Json

# `pull_request_target` runs what the base branch has, and is given secrets.
OF_PULL_REQUESTS: Final = frozenset(
    {"pull_request", "pull_request_review", "pull_request_review_comment"}
)
DEPENDABOT: Final = "dependabot[bot]"
FROM_FORKS: Final = "pull requests from forks are given no secrets"
BY_DEPENDABOT: Final = "what Dependabot starts is given no secrets of Actions"


def withheld(event: str, actor: str, payload: Json) -> str:
    """Why a step has no secrets, as a sentence; empty where it should have those that it names.

    Args:
        event: name of what started the workflow.
        actor: who did.
        payload: what GitHub tells of it.
    """
    if event not in OF_PULL_REQUESTS and not (event == "push" and actor == DEPENDABOT):
        return ""
    if actor == DEPENDABOT:
        return BY_DEPENDABOT
    request = _member(payload, "pull_request")
    base = _member(_member(request, "base"), "repo")
    head = _member(_member(request, "head"), "repo")  # null where the fork is gone
    name = _member(base, "full_name")
    if isinstance(name, str) and name != _member(head, "full_name"):
        return FROM_FORKS
    return ""


def _member(value: Json, name: str) -> Json:
    return value.get(name) if isinstance(value, Mapping) else None
