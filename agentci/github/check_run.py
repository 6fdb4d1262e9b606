"""A check run on the commit that was judged, with all remarks on their lines."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from agentci._util.text import escape, truncate
from agentci.github.api.client import GitHubApi, id_of
from agentci.github.pull_request import Subject
from agentci.model.json import Json, JsonObject
from agentci.model.problem import Severity
from agentci.model.result import Report
from agentci.reports.annotations import annotations_of
from agentci.reports.report_format import conclusion
from agentci.reports.workflow_commands import Annotation

BATCH: Final = 50
# A thousand annotations; nobody reads more.
MAX_BATCHES: Final = 20
MAX_TITLE: Final = 255
# No character takes more than four bytes: below 64 KiB.
MAX_MESSAGE: Final = 16_000
_LEVELS: Final[dict[Severity, str]] = {
    "error": "failure",
    "warning": "warning",
    "notice": "notice",
}


def check(api: GitHubApi, name: str, report: Report, subject: Subject) -> int:
    """Make a check run, and return how many annotations it does not show.

    It is complete from the first request on, so that none waits forever for what a later one did
    not bring.

    Raises:
        GitHubError: it could not be made, or not all of its annotations.
    """
    shown = [fields for each in annotations_of(report) if (fields := _annotation(each))]
    output: JsonObject = {"title": _title(report), "summary": subject.comment(report)}
    batches = islice(_batches(shown), MAX_BATCHES)
    body: dict[str, Json] = {
        "name": name,
        "head_sha": subject.commit,
        "status": "completed",
        "conclusion": "success" if report.decision.open else "failure",
        "output": {**output, "annotations": next(batches, [])},
    }
    if subject.run_url:
        body["details_url"] = subject.run_url
    made = id_of(api.post("check-runs", body))
    for batch in batches:
        api.patch(f"check-runs/{made}", {"output": {**output, "annotations": batch}})
    return max(0, len(shown) - BATCH * MAX_BATCHES)


def _title(report: Report) -> str:
    why = f": {report.decision.why[0]}" if report.decision.why else ""
    return truncate.short(escape.plain_line(f"{conclusion(report)}{why}"), MAX_TITLE)


def _batches(annotations: Sequence[JsonObject]) -> Iterator[list[JsonObject]]:
    for start in range(0, len(annotations), BATCH):
        yield list(annotations[start : start + BATCH])


def _annotation(annotation: Annotation) -> JsonObject | None:
    """A remark as the API takes it; None where it is about no file of the repository."""
    place = annotation.place
    if place is None or place.file.startswith(("/", "../")):
        return None
    title = truncate.short(escape.plain_line(annotation.title), MAX_TITLE)
    message = truncate.characters(escape.plain(annotation.message), MAX_MESSAGE)
    return {
        "path": place.file,
        "start_line": place.line,
        "end_line": place.line,
        "annotation_level": _LEVELS[annotation.level],
        "title": title,
        "message": message.strip() or title,
    }
