"""Where a repository's API is, and with which token it is asked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from agentci._util.action_inputs import input_token
from agentci.errors import GitHubError

GITHUB_API: Final = "https://api.github.com"
NOBODY_HINT: Final = (
    "a step of a workflow gets it by the input github-token; elsewhere set GITHUB_TOKEN"
)
_REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a repository's API is asked with.

    Attributes:
        api: its base address, without ``/`` at the end.
        repository: ``OWNER/NAME``.
        token: is sent to that address alone.
    """

    api: str
    repository: str
    token: str = field(repr=False)

    def check(self) -> None:
        """See whether anything can be asked.

        Raises:
            GitHubError: it cannot.
        """
        if not _REPOSITORY.fullmatch(self.repository):
            said = "GITHUB_REPOSITORY names no repository"
            raise GitHubError(said, hint="a workflow sets it to OWNER/NAME; elsewhere set it so")
        if not self.token:
            raise GitHubError("there is no token for GitHub's API", hint=NOBODY_HINT)


def access_of(environ: Mapping[str, str]) -> Access:
    """Read the variables of the runner; the input of the action goes before ``GITHUB_TOKEN``."""
    return Access(
        api=environ.get("GITHUB_API_URL", "").rstrip("/") or GITHUB_API,
        repository=environ.get("GITHUB_REPOSITORY", ""),
        token=input_token(environ) or environ.get("GITHUB_TOKEN", "").strip(),
    )
