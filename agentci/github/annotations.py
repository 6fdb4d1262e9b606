"""Annotates a step of a workflow; what is on lines of its pull request is shown first."""

from collections.abc import Iterable

from agentci._util.files import say
from agentci._util.text.escape import one_line
from agentci.config.settings import Settings
from agentci.errors import GitHubError
from agentci.github.read_event import read_event
from agentci.model.result import Report
from agentci.reports.annotations import annotations_of
from agentci.reports.diff_lines import NO_DIFF, Diff, lines_shown
from agentci.reports.workflow_commands import Annotation, annotate, are_too_many
from agentci.runner.services import World


def remark(report: Report, settings: Settings, world: World) -> None:
    """Print the annotations; GitHub is asked for the diff only where it would not show all."""
    annotations = annotations_of(report)
    diff = NO_DIFF
    if are_too_many(annotations) and not settings.access.offline:
        try:
            diff = _diff(annotations, world)
        except GitHubError as error:
            if settings.verbose:
                said = f"the pull request's diff is not known: {error}"
                hint = f" ({error.hint})" if error.hint else ""
                say(f"{one_line(f'{said}{hint}')}\n", world.out)
    say(annotate(annotations, diff), world.out)


def _diff(annotations: Iterable[Annotation], world: World) -> Diff:
    """What the pull request, if there is one, changes in the files that are annotated.

    Raises:
        GitHubError: it cannot be asked for.
    """
    number = read_event(world.github).pull_request
    if number is None:
        return NO_DIFF
    sought = {each.place.file for each in annotations if each.place}
    diff: dict[str, tuple[range, ...]] = {}
    for changed in world.github_api.pages(f"pulls/{number}/files"):
        name, patch = changed.get("filename"), changed.get("patch")
        if isinstance(name, str) and name in sought:
            # Of large and of binary files there is no patch.
            diff[name] = lines_shown(patch) if isinstance(patch, str) else ()
        if diff.keys() == sought:
            break
    return diff
