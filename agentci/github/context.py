"""What GitHub Actions tells a step about itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHub:
    """Where a step of a workflow may answer; everything is absent outside of one.

    Attributes:
        active: this process is a step, its log is scanned for workflow commands.
        workspace: the checked-out repository.
        output_file: takes the step's outputs.
        summary_file: takes Markdown for the page of the run.
        event: name of what started the workflow.
        event_file: tells of it, in JSON.
        actor: who did.
        ref_name: the branch or tag that the workflow runs on.
        workflow: the name of its file.
        run: its number among all runs; all attempts of a run share it.
        sha: the commit that the workflow runs on; see ``Event.head_sha``.
    """

    active: bool
    workspace: Path | None
    output_file: Path | None
    summary_file: Path | None
    event: str = ""
    event_file: Path | None = None
    actor: str = ""
    sha: str = ""
    ref_name: str = ""
    workflow: str = ""
    run: str = ""


def github_of(environ: Mapping[str, str]) -> GitHub:
    """Read the variables that the runner sets."""
    active = environ.get("GITHUB_ACTIONS") == "true"

    def path(name: str) -> Path | None:
        return Path(environ[name]) if active and environ.get(name) else None

    return GitHub(
        active=active,
        workspace=path("GITHUB_WORKSPACE"),
        output_file=path("GITHUB_OUTPUT"),
        summary_file=path("GITHUB_STEP_SUMMARY"),
        event=environ.get("GITHUB_EVENT_NAME", ""),
        event_file=path("GITHUB_EVENT_PATH"),
        actor=environ.get("GITHUB_ACTOR", ""),
        sha=environ.get("GITHUB_SHA", ""),
        ref_name=environ.get("GITHUB_REF_NAME", ""),
        workflow=_file_name(environ.get("GITHUB_WORKFLOW_REF", "")),
        run=environ.get("GITHUB_RUN_ID", ""),
    )


def _file_name(workflow: str) -> str:
    """``ci.yml`` of ``octo/agent/.github/workflows/ci.yml@refs/heads/main``."""
    return workflow.partition("@refs/")[0].rpartition("/")[2]
