"""Annotates a step of a workflow; what is on lines of its pull request is shown first."""

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
    """Print the annotations; GitHub is asked for the diff only where it would not show all."""
    annotations = make_annotations(report)
    diff = NO_DIFF
    if exceed_annotation_limit(annotations) and not settings.fetch_settings.offline:
        try:
            diff = _fetch_diff(annotations, workflow)
        except GitHubError as error:
            if settings.verbose:
                said = f"the pull request's diff is not known: {error}"
                hint = f" ({error.hint})" if error.hint else ""
                write_to_stream(f"{escape_for_log_line(f'{said}{hint}')}\n", out)
    write_to_stream(render_annotations(annotations, diff), out)


def _fetch_diff(annotations: Iterable[Annotation], workflow: Workflow) -> DiffLines:
    """What the pull request, if there is one, changes in the files that are annotated.

    Raises:
        GitHubError: it cannot be asked for.
    """
    number = read_event(workflow.context).pull_request
    if number is None:
        return NO_DIFF
    sought = {each.place.file for each in annotations if each.place}
    diff: dict[str, tuple[range, ...]] = {}
    for changed in workflow.api.pages(f"pulls/{number}/files"):
        name, patch = changed.get("filename"), changed.get("patch")
        if isinstance(name, str) and name in sought:
            # Of large and of binary files there is no patch.
            diff[name] = parse_hunks(patch) if isinstance(patch, str) else ()
        if diff.keys() == sought:
            break
    return diff
