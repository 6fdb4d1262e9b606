"""The environment variables that GitHub Actions sets for a step."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


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
