"""Whether a workflow is one that GitHub gives no secrets to.

See https://docs.github.com/actions/security-guides/using-secrets-in-github-actions.
"""

from typing import Final

from agentci.github.event import Event

# `pull_request_target` runs what the base branch has, and is given secrets.
OF_PULL_REQUESTS: Final = frozenset(
    {"pull_request", "pull_request_review", "pull_request_review_comment"}
)
DEPENDABOT: Final = "dependabot[bot]"
FROM_FORKS: Final = "pull requests from forks are given no secrets"
BY_DEPENDABOT: Final = "what Dependabot starts is given no secrets of Actions"


def withheld(event: Event, actor: str) -> str:
    """Why a step has no secrets, as a sentence; empty where it should have those that it names.

    Args:
        event: what started the workflow.
        actor: who did.
    """
    if event.name not in OF_PULL_REQUESTS and not (event.name == "push" and actor == DEPENDABOT):
        return ""
    if actor == DEPENDABOT:
        return BY_DEPENDABOT
    return FROM_FORKS if event.from_fork else ""
