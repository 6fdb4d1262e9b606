"""The event that started a workflow: commits, pull request, base commit, missing secrets."""

import json
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from agentci._util.git_files import COMMIT_HASH
from agentci._util.workspace import read_file
from agentci.errors import InputError
from agentci.github.context import GitHubContext
from agentci.model.json import Json

BRANCH_PREFIX: Final = "refs/heads/"


class WorkflowEvent(Struct, frozen=True, kw_only=True):
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


def parse_event(name: str, sha: str, payload: Json) -> WorkflowEvent:
    """Read an event of any kind and shape.

    Args:
        name: of the event.
        sha: the commit that the workflow runs on.
        payload: what GitHub tells of it.
    """
    if isinstance(request := get_nested(payload, "pull_request"), Mapping):
        number = get_nested(request, "number")
        base = get_nested(request, "base", "repo", "full_name")
        return WorkflowEvent(
            name=name,
            pull_request=number if type(number) is int and number > 0 else None,
            head_sha=_parse_commit(get_nested(request, "head", "sha")),
            base_sha=_parse_commit(get_nested(request, "base", "sha")),
            base_branch=_parse_branch(get_nested(request, "base", "ref")),
            from_fork=isinstance(base, str)
            and base != get_nested(request, "head", "repo", "full_name"),
        )
    if isinstance(group := get_nested(payload, "merge_group"), Mapping):
        return WorkflowEvent(
            name=name,
            head_sha=_parse_commit(get_nested(group, "head_sha")) or _parse_commit(sha),
            base_sha=_parse_commit(get_nested(group, "base_sha")),
            base_branch=_parse_branch(get_nested(group, "base_ref")),
        )
    if name == "push":
        ref = get_nested(payload, "ref")
        return WorkflowEvent(
            name=name,
            head_sha=_parse_commit(get_nested(payload, "after")) or _parse_commit(sha),
            base_sha=_parse_commit(get_nested(payload, "before")),
            base_branch=_parse_branch(ref)
            if isinstance(ref, str) and ref.startswith(BRANCH_PREFIX)
            else "",
            default_branch=_parse_branch(get_nested(payload, "repository", "default_branch")),
        )
    return WorkflowEvent(
        name=name, head_sha="" if name.startswith("pull_request") else _parse_commit(sha)
    )


def get_nested(value: Json, *names: str) -> Json:
    """The value at a path of keys; None if any of them is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _parse_commit(value: Json) -> str:
    return value if isinstance(value, str) and COMMIT_HASH.match(value) else ""


def _parse_branch(value: Json) -> str:
    return value.removeprefix(BRANCH_PREFIX) if isinstance(value, str) else ""


WORKFLOW_RUN: Final = "workflow_run"


class TriggeringRun(Struct, frozen=True, kw_only=True):
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


def parse_triggering_run(payload: Json) -> TriggeringRun | None:
    """Read the event; None where it tells of no run."""
    run = payload.get("workflow_run") if isinstance(payload, Mapping) else None
    if not isinstance(run, Mapping):
        return None
    repository = run.get("head_repository")
    name = repository.get("full_name") if isinstance(repository, Mapping) else None
    number, event, sha, branch = (run.get(k) for k in ("id", "event", "head_sha", "head_branch"))
    if not (type(number) is int and isinstance(sha, str) and COMMIT_HASH.match(sha)):
        return None
    if not isinstance(event, str):
        return None
    if not (isinstance(branch, str) and isinstance(name, str)):
        branch = name = ""
    return TriggeringRun(
        run=number, event=event, head_sha=sha, head_branch=branch, head_repository=name
    )


# What these judge is in the repository: nobody else can start them, or say what runs in them.
TRUSTED_EVENTS: Final = frozenset({"push", "schedule", "workflow_dispatch", "merge_group"})

# And the events of their reviews, which begin so.
PULL_REQUEST_PREFIX: Final = "pull_request"


class BaseCommit(Struct, frozen=True, kw_only=True):
    """Where the results are that a run is compared with.

    Attributes:
        commit: as the event names it; empty where it names none.
        merge_base_with: the branch that the evaluated commit started from or was merged into; the
            base is their merge base. Empty where ``commit`` is the base.
        branch: whose earlier runs there are, where none is of the base itself.
        is_any_earlier: any earlier run of the branch will do, also one of the same commit.
    """

    commit: str
    branch: str
    merge_base_with: str = ""
    is_any_earlier: bool = False


def find_base_commit(event: WorkflowEvent, branch: str) -> BaseCommit:
    """The base of an event.

    A pull request is judged as GitHub merges it: into what its base branch is by then. Its event
    still names the commit that the branch was at when the pull request was made or last pushed to;
    compared with that one, it would have to answer for what others have merged since.

    Args:
        branch: the branch or tag that the workflow runs on.
    """
    if event.name.startswith(PULL_REQUEST_PREFIX):
        return BaseCommit(
            commit=event.base_sha, branch=event.base_branch, merge_base_with=event.base_branch
        )
    if event.base_sha:
        return BaseCommit(commit=event.base_sha, branch=event.base_branch or event.default_branch)
    if event.name == "push":  # of a new branch, or of a tag
        return BaseCommit(
            commit="", branch=event.default_branch, merge_base_with=event.default_branch
        )
    return BaseCommit(commit="", branch=branch, is_any_earlier=True)


# `pull_request_target` runs what the base branch has, and is given secrets.
PULL_REQUEST_EVENTS: Final = frozenset(
    {"pull_request", "pull_request_review", "pull_request_review_comment"}
)
DEPENDABOT_ACTOR: Final = "dependabot[bot]"
FORK_WITHOUT_SECRETS: Final = "pull requests from forks are given no secrets"
DEPENDABOT_WITHOUT_SECRETS: Final = "what Dependabot starts is given no secrets of Actions"


def explain_missing_secrets(event: WorkflowEvent, actor: str) -> str:
    """Why a step has no secrets, as a sentence; empty where it should have those that it names.

    Args:
        event: what started the workflow.
        actor: who did.
    """
    if event.name not in PULL_REQUEST_EVENTS and not (
        event.name == "push" and actor == DEPENDABOT_ACTOR
    ):
        return ""
    if actor == DEPENDABOT_ACTOR:
        return DEPENDABOT_WITHOUT_SECRETS
    return FORK_WITHOUT_SECRETS if event.from_fork else ""


def find_missing_secrets_reason(github: GitHubContext) -> str:
    """Why this step has no secrets; empty where it should have those that it names."""
    return explain_missing_secrets(read_event(github), github.actor)


# More than GitHub sends.
MAX_EVENT_BYTES: Final = 32 * 1024**2


def read_event(github: GitHubContext) -> WorkflowEvent:
    """What is known of the event; no more than its name where its file cannot be read."""
    return parse_event(github.event, github.sha, _read_payload(github))


def read_triggering_run(github: GitHubContext) -> TriggeringRun | None:
    """The run that this one follows; None where it follows none."""
    return parse_triggering_run(_read_payload(github)) if github.event == WORKFLOW_RUN else None


def _read_payload(github: GitHubContext) -> Json:
    if github.event_file is None:
        return None
    try:
        content = read_file(github.event_file, name="the event", limit_bytes=MAX_EVENT_BYTES)
        payload: Json = json.loads(content)
    except (InputError, ValueError, RecursionError):
        return None
    return payload
