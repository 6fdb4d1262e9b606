"""What started a workflow: the commits and the pull request that it is about.

The fields are those of https://docs.github.com/webhooks/webhook-events-and-payloads; which commit
``GITHUB_SHA`` is, https://docs.github.com/actions/reference/events-that-trigger-workflows tells.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from agentci.model.json import Json

# SHA-1 or SHA-256; all zeros stand for no commit, as where a push makes a branch.
COMMIT: Final = re.compile(r"(?!0+\Z)(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
BRANCH: Final = "refs/heads/"


class Event(Struct, frozen=True, kw_only=True):
    """What happened; empty and None stand for what does not apply or was not told.

    Attributes:
        name: as ``on:`` of a workflow has it.
        pull_request: number of the one it is about.
        head_sha: the commit it brings; of a pull request its own last one, not ``GITHUB_SHA``, a
            merge that GitHub made of it.
        base_sha: the commit it is put on, as of the event: the last one of a pull request's base,
            the one before in a merge queue, the one that a push found.
        base_branch: name of the branch that it changes or wants to change.
        default_branch: of the repository; of a push alone.
        from_fork: it is a pull request out of another repository, or one that is gone.
    """

    name: str = ""
    pull_request: int | None = None
    head_sha: str = ""
    base_sha: str = ""
    base_branch: str = ""
    default_branch: str = ""
    from_fork: bool = False


def event_of(name: str, sha: str, payload: Json) -> Event:
    """Read an event of any kind and shape.

    Args:
        name: of the event.
        sha: the commit that the workflow runs on.
        payload: what GitHub tells of it.
    """
    if isinstance(request := _at(payload, "pull_request"), Mapping):
        number = _at(request, "number")
        base = _at(request, "base", "repo", "full_name")
        return Event(
            name=name,
            pull_request=number if type(number) is int and number > 0 else None,
            head_sha=_commit(_at(request, "head", "sha")),
            base_sha=_commit(_at(request, "base", "sha")),
            base_branch=_branch(_at(request, "base", "ref")),
            from_fork=isinstance(base, str) and base != _at(request, "head", "repo", "full_name"),
        )
    if isinstance(group := _at(payload, "merge_group"), Mapping):
        return Event(
            name=name,
            head_sha=_commit(_at(group, "head_sha")) or _commit(sha),
            base_sha=_commit(_at(group, "base_sha")),
            base_branch=_branch(_at(group, "base_ref")),
        )
    if name == "push":
        ref = _at(payload, "ref")
        return Event(
            name=name,
            head_sha=_commit(_at(payload, "after")) or _commit(sha),
            base_sha=_commit(_at(payload, "before")),
            base_branch=_branch(ref) if isinstance(ref, str) and ref.startswith(BRANCH) else "",
            default_branch=_branch(_at(payload, "repository", "default_branch")),
        )
    return Event(name=name, head_sha="" if name.startswith("pull_request") else _commit(sha))


def _at(value: Json, *names: str) -> Json:
    """What stands below ``names``, one in the other; None where nothing does."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _commit(value: Json) -> str:
    return value if isinstance(value, str) and COMMIT.match(value) else ""


def _branch(value: Json) -> str:
    return value.removeprefix(BRANCH) if isinstance(value, str) else ""
