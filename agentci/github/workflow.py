"""The workflow run that agentci is a step of: its context, its repository's API, its commit."""

from msgspec import Struct

from agentci._util.workspace import Workspace
from agentci.github.api_client import GitHubApi
from agentci.github.events import COMMIT_HASH, GitHubContext, find_head_commit, read_event
from agentci.model.result import RunInfo


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
