"""What refusals of GitHub's API mean, and what a workflow needs in order to be let through."""

import json
from collections.abc import Mapping
from typing import Final

from agentci._util.http.client import GET
from agentci._util.http.document import Response
from agentci._util.http.retries import RATE_LIMIT_HINT, PassingError
from agentci._util.text import escape, truncate
from agentci.errors import GitHubError

SUCCESSES: Final = range(200, 300)
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
LIMITING: Final = frozenset({403, 429})
# As long as GitHub asks for where its answer does not say how long.
SECONDARY_SECONDS: Final = 60.0
MAX_SAID: Final = 200

# The permission of a workflow, by how the paths of an API begin.
_PERMISSIONS: Final = {
    "actions": "actions",
    "check-runs": "checks",
    "commits": "pull-requests",
    "compare": "contents",
    "issues": "pull-requests",
    "pulls": "pull-requests",
}


def busy(response: Response) -> PassingError | None:
    """A limit on how fast one asks, which GitHub may tell in words alone."""
    if response.status in LIMITING and "secondary rate limit" in _message(response):
        return PassingError(
            "it was asked too much at a time",
            hint=RATE_LIMIT_HINT,
            asked_seconds=SECONDARY_SECONDS,
            arrived=False,
        )
    return None


def refusal(method: str, path: str, response: Response) -> GitHubError:
    """The error for an answer that is no success.

    Args:
        path: what was asked for, as ``GitHubApi`` is given it.
    """
    status = response.status
    said = _message(response)
    shown = f" ({truncate.short(escape.one_line(said), MAX_SAID)})" if said else ""
    message = f"GitHub answered {status} for {method} {path}{shown}"
    if status == UNAUTHORIZED:
        hint = "the token is not valid, or not any more: see the input github-token"
        return GitHubError(message, hint=hint, status=status)
    if status == FORBIDDEN:
        return GitHubError(message, hint=_permission(method, path), status=status, denied=True)
    if status == NOT_FOUND:
        hint = f"it is not there, or the token may not see it: {_permission(method, path)}"
        return GitHubError(message, hint=hint, status=status)
    return GitHubError(message, status=status)


def _permission(method: str, path: str) -> str:
    # Those of a commit are another matter than the list of all.
    kind = "contents" if path == "commits" else _PERMISSIONS.get(path.partition("/")[0])
    if kind is None:
        return "see what the token may do"
    return f"the job needs `permissions: {kind}: {'read' if method == GET else 'write'}`"


def _message(response: Response) -> str:
    """What GitHub says beside the status."""
    try:
        document = json.loads(response.content)
    except (ValueError, RecursionError):
        return ""
    said = document.get("message") if isinstance(document, Mapping) else None
    return said if isinstance(said, str) else ""
