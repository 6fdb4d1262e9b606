"""Print a workflow step's annotations; those on changed lines of its pull request come first."""

from collections.abc import Iterable
from typing import TextIO

from agentci._util.files import write_to_stream
from agentci._util.text.escape import escape_for_log_line
from agentci.config.settings import Settings
from agentci.errors import GitHubError
from agentci.github.events import read_event
from agentci.github.workflow import Workflow
from agentci.model.result import Report
from agentci.reports.annotations import make_annotations
from agentci.reports.workflow_commands import (
    NO_DIFF,
    Annotation,
    DiffLines,
    exceed_annotation_limit,
    parse_hunks,
    render_annotations,
)


def print_annotations(report: Report, settings: Settings, workflow: Workflow, out: TextIO) -> None:
    """Print the annotations; the diff is fetched only if GitHub would not show all of them."""
    annotations = make_annotations(report)
    diff = NO_DIFF
    if exceed_annotation_limit(annotations) and not settings.fetch_settings.offline:
        try:
            diff = _fetch_diff(annotations, workflow)
        except GitHubError as error:
            if settings.verbose:
                message = f"cannot fetch the pull request's diff: {error}"
                hint = f"; {error.hint}" if error.hint else ""
                write_to_stream(f"{escape_for_log_line(f'{message}{hint}')}\n", out)
    write_to_stream(render_annotations(annotations, diff), out)


def _fetch_diff(annotations: Iterable[Annotation], workflow: Workflow) -> DiffLines:
    """Fetch the changed lines of annotated files; ``NO_DIFF`` outside pull requests.

    Raises:
        GitHubError: the request failed.
    """
    number = read_event(workflow.context).pull_request
    if number is None:
        return NO_DIFF
    annotated = {each.place.file for each in annotations if each.place}
    diff: dict[str, tuple[range, ...]] = {}
    for changed in workflow.api.pages(f"pulls/{number}/files"):
        name, patch = changed.get("filename"), changed.get("patch")
        if isinstance(name, str) and name in annotated:
            # GitHub sends no patch for large and binary files.
            diff[name] = parse_hunks(patch) if isinstance(patch, str) else ()
        if diff.keys() == annotated:
            break
    return diff
