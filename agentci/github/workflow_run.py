"""The run that another one followed: what a workflow started by ``workflow_run`` is about.

All of it is told by GitHub itself, so that nothing need be believed of what that run left behind.
See https://docs.github.com/webhooks/webhook-events-and-payloads#workflow_run.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from agentci.github.event import COMMIT
from agentci.model.json import Json

EVENT: Final = "workflow_run"


class Origin(Struct, frozen=True, kw_only=True):
    """A run of another workflow.

    Attributes:
        run: its number.
        event: what started it.
        head_sha: the commit that it was about; of a pull request the last one.
        head_branch: the branch of that commit, and ``head_repository`` where it is: ``OWNER/NAME``.
            Empty where it is gone.
    """

    run: int
    event: str
    head_sha: str
    head_branch: str
    head_repository: str

    @property
    def head(self) -> str:
        """The branch as the API looks for it: ``OWNER:BRANCH``."""
        return f"{self.head_repository.partition('/')[0]}:{self.head_branch}"


def origin_of(payload: Json) -> Origin | None:
    """Read the event; None where it tells of no run."""
    run = payload.get("workflow_run") if isinstance(payload, Mapping) else None
    if not isinstance(run, Mapping):
        return None
    repository = run.get("head_repository")
    name = repository.get("full_name") if isinstance(repository, Mapping) else None
    number, event, sha, branch = (run.get(k) for k in ("id", "event", "head_sha", "head_branch"))
    if not (type(number) is int and isinstance(sha, str) and COMMIT.match(sha)):
        return None
    if not isinstance(event, str):
        return None
    if not (isinstance(branch, str) and isinstance(name, str)):
        branch = name = ""
    return Origin(run=number, event=event, head_sha=sha, head_branch=branch, head_repository=name)
