"""The workflow run that agentci is a step of: its variables, its event, its API and its commit.

The event has the commits, the pull request and the base commit, and decides whether secrets are
available. The commit is read from git's files, without a process.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.workspace import Workspace, is_file, read_file, trust_path
from agentci.errors import InputError
from agentci.github.api_client import GitHubApi
from agentci.model.result import RunInfo
from agentci.model.values import Json


class GitHubContext(Struct, frozen=True, kw_only=True):
    """The workflow step that this process is; all fields are empty outside a workflow.

    Attributes:
        active: whether this process is a step; its log is then scanned for workflow commands.
        workspace: the checked-out repository.
        output_file: the file for the step's outputs.
        summary_file: the file for the job summary, in Markdown.
        event: name of the event that started the workflow.
        event_file: the event's payload, as JSON.
        actor: the user who started it.
        ref_name: the branch or tag that the workflow runs on.
        run: id of the run; all attempts of a run share it.
        sha: the commit that the workflow runs on; see ``WorkflowEvent.head_sha``.
        workflow: its file in the repository if known, else its name.
        job, step: their ids in the workflow.
        run_url: the page of the run.
        repository_url: the page of the repository.
    """

    active: bool
    workspace: Path | None
    output_file: Path | None
    summary_file: Path | None
    event: str = ""
    event_file: Path | None = None
    actor: str = ""
    sha: str = ""
    workflow: str = ""
    job: str = ""
    step: str = ""
    run_url: str = ""
    repository_url: str = ""
    ref_name: str = ""
    run: str = ""

    @property
    def workflow_path(self) -> str:
        """The path of the workflow's file in the repository; empty if only its name is known."""
        return self.workflow.split("/", 2)[2] if self.workflow_file else ""

    @property
    def workflow_file(self) -> str:
        """The name of the workflow's file; empty if only the workflow's name is known."""
        folder, _, name = self.workflow.rpartition("/")
        return name if folder.endswith(".github/workflows") else ""


def read_github_context(environ: Mapping[str, str]) -> GitHubContext:
    """Read the variables that the runner sets."""
    active = environ.get("GITHUB_ACTIONS") == "true"

    def path(name: str) -> Path | None:
        return Path(environ[name]) if active and environ.get(name) else None

    repository_url, run = _repository_url(environ), environ.get("GITHUB_RUN_ID", "")
    return GitHubContext(
        active=active,
        workspace=path("GITHUB_WORKSPACE"),
        output_file=path("GITHUB_OUTPUT"),
        summary_file=path("GITHUB_STEP_SUMMARY"),
        event=environ.get("GITHUB_EVENT_NAME", ""),
        event_file=path("GITHUB_EVENT_PATH"),
        actor=environ.get("GITHUB_ACTOR", ""),
        sha=environ.get("GITHUB_SHA", ""),
        # OWNER/NAME/PATH@REF; the ref differs in each pull request.
        workflow=environ.get("GITHUB_WORKFLOW_REF", "").partition("@refs/")[0]
        or environ.get("GITHUB_WORKFLOW", ""),
        job=environ.get("GITHUB_JOB", ""),
        step=environ.get("GITHUB_ACTION", ""),
        run_url=format_run_url(repository_url, run) if repository_url and run else "",
        repository_url=repository_url,
        ref_name=environ.get("GITHUB_REF_NAME", ""),
        run=run,
    )


def format_run_url(repository_url: str, run: str | int) -> str:
    """Return the URL of a run's page."""
    return f"{repository_url}/actions/runs/{run}"


def _repository_url(environ: Mapping[str, str]) -> str:
    server, name = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
    return f"{server}/{name}" if server and name else ""


BRANCH_PREFIX: Final = "refs/heads/"


class WorkflowEvent(Struct, frozen=True, kw_only=True):
    """An event that started a workflow; empty and None mean not applicable or unknown.

    Attributes:
        name: as under ``on:`` of a workflow.
        pull_request: its number.
        head_sha: the new commit; for a pull request the last commit of its branch, not
            ``GITHUB_SHA``, which is GitHub's merge commit.
        base_sha: the commit before, at the time of the event: the last commit of a pull request's
            base branch, the previous one in a merge queue, the one before a push.
        base_branch: the branch that is, or would be, changed.
        default_branch: of the repository; only known for pushes.
        from_fork: whether it is a pull request from another, or a deleted, repository.
        title: of the pull request.
        date: when the event happened, in ISO 8601.
    """

    name: str = ""
    pull_request: int | None = None
    head_sha: str = ""
    base_sha: str = ""
    base_branch: str = ""
    default_branch: str = ""
    from_fork: bool = False
    title: str = ""
    date: str = ""


def parse_event(name: str, sha: str, payload: Json) -> WorkflowEvent:
    """Parse an event of any kind; unexpected shapes are treated as unknown.

    Args:
        name: of the event.
        sha: the commit that the workflow runs on.
        payload: the event's document.
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
            title=_parse_text(get_nested(request, "title")),
            date=_parse_date(get_nested(request, "updated_at")),
        )
    if isinstance(group := get_nested(payload, "merge_group"), Mapping):
        return WorkflowEvent(
            name=name,
            head_sha=_parse_commit(get_nested(group, "head_sha")) or _parse_commit(sha),
            base_sha=_parse_commit(get_nested(group, "base_sha")),
            base_branch=_parse_branch(get_nested(group, "base_ref")),
            date=_parse_date(get_nested(group, "head_commit", "timestamp")),
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
            date=_parse_date(get_nested(payload, "head_commit", "timestamp")),
        )
    return WorkflowEvent(
        name=name, head_sha="" if name.startswith("pull_request") else _parse_commit(sha)
    )


def get_nested(value: Json, *steps: str | int) -> Json:
    """Return the value at a path of keys and indexes; None if any of them is missing."""
    for step in steps:
        match value, step:
            case Mapping(), str():
                value = value.get(step)
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                return None
    return value


def _parse_commit(value: Json) -> str:
    return value if isinstance(value, str) and COMMIT_HASH.match(value) else ""


def _parse_branch(value: Json) -> str:
    return value.removeprefix(BRANCH_PREFIX) if isinstance(value, str) else ""


def _parse_text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _parse_date(value: Json) -> str:
    return value if isinstance(value, str) and _DATE.fullmatch(value) else ""


_DATE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)", re.ASCII)

WORKFLOW_RUN: Final = "workflow_run"


class TriggeringRun(Struct, frozen=True, kw_only=True):
    """A run of another workflow.

    Attributes:
        run: its id.
        event: name of the event that started it.
        head_sha: the commit that it ran for; for a pull request the last commit of its branch.
        head_branch, head_repository: branch and ``OWNER/NAME`` of that commit; empty if deleted.
    """

    run: int
    event: str
    head_sha: str
    head_branch: str
    head_repository: str

    @property
    def head(self) -> str:
        """The branch in the API's syntax: ``OWNER:BRANCH``."""
        return f"{self.head_repository.partition('/')[0]}:{self.head_branch}"


def parse_triggering_run(payload: Json) -> TriggeringRun | None:
    """Parse a ``workflow_run`` event; None if it names no run."""
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


# These run code of the repository itself; only users with write access can start them.
TRUSTED_EVENTS: Final = frozenset({"push", "schedule", "workflow_dispatch", "merge_group"})

# Also the prefix of the events of pull request reviews.
PULL_REQUEST_PREFIX: Final = "pull_request"
MERGE_GROUP: Final = "merge_group"


def is_before_merge(event: str) -> bool:
    """Whether an event is about changes that are not merged yet: a pull request, a merge queue."""
    return event.startswith(PULL_REQUEST_PREFIX) or event == MERGE_GROUP


class BaseCommit(Struct, frozen=True, kw_only=True):
    """The commit whose results are the baseline of a run.

    Attributes:
        commit: as in the event; empty if the event names none.
        merge_base_with: the branch whose merge base with the evaluated commit is the base; empty
            if ``commit`` is the base.
        branch: the branch whose earlier runs are searched if the base has no results.
        is_any_earlier: whether any earlier run of the branch may be used, even of the same commit.
    """

    commit: str
    branch: str
    merge_base_with: str = ""
    is_any_earlier: bool = False


def find_base_commit(event: WorkflowEvent, branch: str) -> BaseCommit:
    """Return the base of an event.

    A pull request is evaluated as merged into the current base branch, but its event still names
    the base commit at the time of the last push. Compared with that commit, the pull request would
    be blamed for what others have merged since. So the merge base is used.

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


# `pull_request_target` runs the base branch's workflow and has secrets.
PULL_REQUEST_EVENTS: Final = frozenset(
    {"pull_request", "pull_request_review", "pull_request_review_comment"}
)
DEPENDABOT_ACTOR: Final = "dependabot[bot]"
FORK_WITHOUT_SECRETS: Final = "pull requests from forks have no access to secrets"
DEPENDABOT_WITHOUT_SECRETS: Final = (
    "workflows started by Dependabot have no access to Actions secrets"
)


def explain_missing_secrets(event: WorkflowEvent, actor: str) -> str:
    """Explain why a step has no secrets; empty if it should have them.

    Args:
        actor: the user who started the workflow.
    """
    if event.name not in PULL_REQUEST_EVENTS and not (
        event.name == "push" and actor == DEPENDABOT_ACTOR
    ):
        return ""
    if actor == DEPENDABOT_ACTOR:
        return DEPENDABOT_WITHOUT_SECRETS
    return FORK_WITHOUT_SECRETS if event.from_fork else ""


def find_missing_secrets_reason(github: GitHubContext) -> str:
    """Explain why this step has no secrets; empty if it should have those that it names."""
    return explain_missing_secrets(read_event(github), github.actor)


AGENTS_OF_FORKS: Final = "for pull requests from forks, agents run only in the sandbox"
AGENTS_WITHOUT_CONSENT: Final = (
    "the workflow does not allow agents to run outside the sandbox (input `allow-agents: true`)"
)


def find_agent_refusal(github: GitHubContext, *, allowed: bool) -> str:
    """Explain why agents of eval files run only in the sandbox; empty if they may run outside.

    Outside of workflows the user who starts agentci allows it.

    Args:
        allowed: by the workflow.
    """
    if not github.active:
        return ""
    if read_event(github).from_fork:
        return AGENTS_OF_FORKS
    return "" if allowed else AGENTS_WITHOUT_CONSENT


# More than GitHub's limit for payloads.
MAX_EVENT_BYTES: Final = 32 * 1024**2


def read_event(github: GitHubContext) -> WorkflowEvent:
    """Read the event; only its name is known if its file cannot be read."""
    return parse_event(github.event, github.sha, _read_payload(github))


def read_triggering_run(github: GitHubContext) -> TriggeringRun | None:
    """Read the run that triggered this one by ``workflow_run``; None otherwise."""
    return parse_triggering_run(_read_payload(github)) if github.event == WORKFLOW_RUN else None


def _read_payload(github: GitHubContext) -> Json:
    if github.event_file is None:
        return None
    try:
        content = read_file(
            trust_path(github.event_file), name="the event", limit_bytes=MAX_EVENT_BYTES
        )
        payload: Json = json.loads(content)
    except (InputError, ValueError, RecursionError):
        return None
    return payload


# SHA-1 or SHA-256; all zeros stand for no commit, as where a push makes a branch.
COMMIT_HASH: Final = re.compile(r"(?!0+\Z)(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")

MAX_GIT_FILE_BYTES: Final = 16 * 1024**2

_GITDIR_PREFIX: Final = "gitdir: "
_REF_PREFIX: Final = "ref: "


def find_head_commit(workspace: Workspace) -> str:
    """Return the commit that is checked out; empty if unknown.

    It is that of the workspace, else of the folder in it that contains the working directory: a
    workflow may check out there.
    """
    folder = find_repository_folder(workspace)
    return "" if folder is None else read_head_commit(folder)


def find_repository_folder(workspace: Workspace) -> Path | None:
    """Return the folder whose commit ``find_head_commit`` returns; None if unknown."""
    above = (workspace.cwd, *workspace.cwd.parents)
    folders = (each for each in reversed(above) if each.is_relative_to(workspace.root))
    return next(filter(read_head_commit, folders), None)


def read_head_commit(root: Path) -> str:
    """Return the commit that ``HEAD`` of the repository at ``root`` refers to.

    Empty if there is no repository or no commit yet, or if only git can read its refs (reftable).
    See gitrepository-layout(5).
    """
    folder = _find_git_folder(root)
    head = _read_git_file(folder / "HEAD")
    if not head.startswith(_REF_PREFIX):
        return _parse_commit(head)
    name = head.removeprefix(_REF_PREFIX)
    # Of several worktrees of a repository, each has its HEAD, and all share the branches.
    shared = folder / (_read_git_file(folder / "commondir") or ".")
    return _parse_commit(_read_git_file(shared / name)) or _find_packed_ref(
        _read_git_file(shared / "packed-refs"), name
    )


def _find_git_folder(root: Path) -> Path:
    """Return ``.git``, or the folder that it names if it is a file (worktrees, submodules)."""
    path = root / ".git"
    if is_file(path) and (named := _read_git_file(path)).startswith(_GITDIR_PREFIX):
        return root / named.removeprefix(_GITDIR_PREFIX)
    return path


def _find_packed_ref(refs: str, name: str) -> str:
    lines = (line.partition(" ") for line in refs.splitlines())
    return next((_parse_commit(commit) for commit, _, found in lines if found == name), "")


def _read_git_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_GIT_FILE_BYTES).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""


class Workflow(Struct, frozen=True, kw_only=True):
    """A workflow run, which may be absent; see ``GitHubContext.active``.

    Attributes:
        context: the variables that the runner sets.
        api: the GitHub API of the workflow's repository.
    """

    context: GitHubContext
    api: GitHubApi


def make_run_info(github: GitHubContext) -> RunInfo:
    """Describe the workflow run for reports; empty outside a workflow."""
    if not github.active:
        return RunInfo()
    event, number = read_event(github), None
    if github.repository_url:
        number = event.pull_request
    return RunInfo(
        repository="/".join(github.repository_url.split("/")[-2:]),
        url=github.run_url,
        branch=github.ref_name,
        pull_request=number,
        pull_request_url="" if number is None else f"{github.repository_url}/pull/{number}",
        title=event.title,
        date=event.date,
    )


def find_checked_out_commit(workspace: Workspace, github: GitHubContext) -> str:
    """Return the evaluated commit: what is checked out, else what the workflow runs on.

    The two differ if a workflow checks out another commit, such as the last commit of a pull
    request instead of GitHub's merge commit.
    """
    if head := find_head_commit(workspace):
        return head
    return github.sha if github.active and COMMIT_HASH.match(github.sha) else ""
