"""The workflow run that agentci is a step of: its context, its repository's API, its commit."""

from msgspec import Struct

from agentci._util.git_files import COMMIT_HASH, find_head_commit
from agentci._util.workspace import Workspace
from agentci.github.api_client import GitHubApi
from agentci.github.context import GitHubContext


class Workflow(Struct, frozen=True, kw_only=True):
    """A workflow run, which may be absent; see ``GitHubContext.active``.

    Attributes:
        context: what the runner tells a step about itself.
        api: the GitHub API of the workflow's repository.
    """

    context: GitHubContext
    api: GitHubApi


def find_checked_out_commit(workspace: Workspace, github: GitHubContext) -> str:
    """The commit that is evaluated: what is checked out, else what the workflow runs on.

    The two differ where a workflow checks out something else, as the last commit of a pull request
    in the place of GitHub's merge of it; then only the first is what was evaluated.
    """
    if head := find_head_commit(workspace):
        return head
    return github.sha if github.active and COMMIT_HASH.match(github.sha) else ""
