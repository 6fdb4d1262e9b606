"""What a workflow is to be compared with, by what started it."""

from typing import Final

from msgspec import Struct

from agentci.github.event import Event

# What these judge is in the repository: nobody else can start them, or say what runs in them.
TRUSTED_EVENTS: Final = frozenset({"push", "schedule", "workflow_dispatch", "merge_group"})

# And the events of their reviews, which begin so.
PULL_REQUEST: Final = "pull_request"


class Base(Struct, frozen=True, kw_only=True):
    """Where the results are that a run is compared with.

    Attributes:
        commit: as the event names it; empty where it names none.
        left: the branch that what is judged was begun on or merged into: its last commit that is
            part of what is judged is the base. Empty where ``commit`` is it.
        branch: whose earlier runs there are, where none is of the base itself.
        is_any_earlier: any earlier run of the branch will do, also one of the same commit.
    """

    commit: str
    branch: str
    left: str = ""
    is_any_earlier: bool = False


def base_of(event: Event, branch: str) -> Base:
    """The base of an event.

    A pull request is judged as GitHub merges it: into what its base branch is by then. Its event
    still names the commit that the branch was at when the pull request was made or last pushed to;
    compared with that one, it would have to answer for what others have merged since.

    Args:
        branch: the branch or tag that the workflow runs on.
    """
    if event.name.startswith(PULL_REQUEST):
        return Base(commit=event.base_sha, branch=event.base_branch, left=event.base_branch)
    if event.base_sha:
        return Base(commit=event.base_sha, branch=event.base_branch or event.default_branch)
    if event.name == "push":  # of a new branch, or of a tag
        return Base(commit="", branch=event.default_branch, left=event.default_branch)
    return Base(commit="", branch=branch, is_any_earlier=True)
