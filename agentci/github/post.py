"""Posts results on GitHub as a pull request comment and a check run."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count
from agentci.config.settings import Settings
from agentci.errors import FetchError, GitHubError
from agentci.github.api_client import GitHubApi, extract_id
from agentci.github.comment import (
    NOT_POSTED,
    CommentMarker,
    CommentPolicy,
    digest_json,
    make_comment_key,
    upsert_comment,
)
from agentci.github.pull_request import NoPullRequestError, PostTarget, find_post_target
from agentci.github.workflow import Workflow
from agentci.model.gate import Comparison
from agentci.model.json import Json, JsonObject
from agentci.model.problem import Problem, Severity
from agentci.model.result import Report
from agentci.reports.annotations import make_annotations
from agentci.reports.report_format import format_title, get_verdict
from agentci.reports.workflow_commands import Annotation

ANNOTATIONS_PER_REQUEST: Final = 50
# A thousand annotations; nobody reads more.
MAX_REQUESTS: Final = 20
MAX_TITLE: Final = 255
# No character takes more than four bytes: below 64 KiB.
MAX_MESSAGE: Final = 16_000
_LEVELS: Final[dict[Severity, str]] = {
    "error": "failure",
    "warning": "warning",
    "note": "notice",
}


def create_check_run(api: GitHubApi, name: str, report: Report, subject: PostTarget) -> int:
    """Make a check run, and return how many annotations it does not show.

    It is complete from the first request on, so that none waits forever for what a later one did
    not bring.

    Raises:
        GitHubError: it could not be made, or not all of its annotations.
    """
    shown = [
        fields for each in make_annotations(report) if (fields := _make_annotation_fields(each))
    ]
    output: JsonObject = {"title": _format_title(report), "summary": subject.render_comment(report)}
    batches = islice(_split_batches(shown), MAX_REQUESTS)
    body: dict[str, Json] = {
        "name": name,
        "head_sha": subject.commit,
        "status": "completed",
        "conclusion": "success" if report.decision.passed else "failure",
        "output": {**output, "annotations": next(batches, [])},
    }
    if subject.run_url:
        body["details_url"] = subject.run_url
    made = extract_id(api.post("check-runs", body))
    for batch in batches:
        api.patch(f"check-runs/{made}", {"output": {**output, "annotations": batch}})
    return max(0, len(shown) - ANNOTATIONS_PER_REQUEST * MAX_REQUESTS)


def _format_title(report: Report) -> str:
    return truncate.short(escape.flatten_line(format_title(report)), MAX_TITLE)


def _split_batches(annotations: Sequence[JsonObject]) -> Iterator[list[JsonObject]]:
    for start in range(0, len(annotations), ANNOTATIONS_PER_REQUEST):
        yield list(annotations[start : start + ANNOTATIONS_PER_REQUEST])


def _make_annotation_fields(annotation: Annotation) -> JsonObject | None:
    """A remark as the API takes it; None where it is about no file of the repository."""
    place = annotation.place
    if place is None or place.file.startswith(("/", "../")):
        return None
    title = truncate.short(escape.flatten_line(annotation.title), MAX_TITLE)
    message = truncate.characters(escape.remove_control(annotation.message), MAX_MESSAGE)
    return {
        "path": place.file,
        "start_line": place.line,
        "end_line": place.line,
        "annotation_level": _LEVELS[annotation.level],
        "title": title,
        "message": message.strip() or title,
    }


NEVER: Final = "never"
STOPPED_ANSWERING: Final = "GitHub did not answer before, and is not asked again"
FORK_HINT: Final = (
    "workflows of pull requests from forks may write nothing: have another workflow comment, as"
    " docs/pull-requests.md shows"
)


def post_results(report: Report, settings: Settings, workflow: Workflow) -> Iterator[Problem]:
    """Comment and make a check run, as the settings say; yields what became of each.

    What could not be done is a warning, all else a notice. A GitHub that does not answer is asked
    for nothing more.
    """
    silent = ""
    for what, do in _list_actions(settings):
        if why := _explain_no_post(report, settings) or silent:
            yield Problem(message=f"{what}: {why}", severity="note")
            continue
        subject = find_post_target(workflow.context)
        try:
            yield Problem(message=do(report, settings, workflow, subject), severity="note")
        except NoPullRequestError as error:
            yield Problem(message=f"{what}: {error}", severity="note")
        except GitHubError as error:
            hint = FORK_HINT if error.denied and subject.from_fork else error.hint
            yield Problem(message=f"{what}: {error}", hint=hint, severity="warning")
            if isinstance(error.__cause__, FetchError):
                silent = STOPPED_ANSWERING  # for minutes perhaps, and nothing is to wait again


PostAction: TypeAlias = Callable[[Report, Settings, Workflow, PostTarget], str]


def _list_actions(settings: Settings) -> Iterator[tuple[str, PostAction]]:
    """What is to be done, each with what there is where it is not."""
    if settings.commenting != NEVER:
        yield "no comment", _post_comment
    if settings.check_run:
        yield "no check run", _post_check_run


def _explain_no_post(report: Report, settings: Settings) -> str:
    """Why nobody is told, whatever was asked for; empty where somebody is."""
    if report.shard_info is not None:
        return "this is a part of a run, and the step that merges all parts answers"
    if not report.complete:
        return "the run was broken off"
    if settings.fetch_settings.offline:
        return "nothing is asked of the network with --offline"
    return ""


def _post_comment(
    report: Report, settings: Settings, workflow: Workflow, subject: PostTarget
) -> str:
    pull = subject.find_pull_request_number(workflow.api)
    key = make_comment_key(
        workflow=workflow.context.workflow,
        job=workflow.context.job,
        step=workflow.context.step,
        configs=settings.configs,
        matrix=settings.matrix,
    )
    wanted = CommentPolicy(
        settings.commenting,
        shut=not report.decision.passed,
        differs=_differs_from_baseline(report.comparison),
    )
    mark = CommentMarker(key=key, result=_digest_result(report))
    done = upsert_comment(workflow.api, pull, mark, subject.render_comment(report), wanted)
    if done == NOT_POSTED:
        return f"no comment on pull request {pull}: none is wanted for this result"
    return f"the comment on pull request {pull} {done}"


def _post_check_run(
    report: Report, settings: Settings, workflow: Workflow, subject: PostTarget
) -> str:
    if not subject.commit:
        raise NoPullRequestError(
            f"the event {workflow.context.event or 'of no workflow'} names no commit"
        )
    left_out = create_check_run(workflow.api, settings.check_run, report, subject)
    without = f", without {format_count(left_out, 'annotation')}" if left_out else ""
    return f"the check run {settings.check_run} was made{without}"


def _digest_result(report: Report) -> str:
    """What the run came to: the verdict, what is wrong, and how each check ended; no score."""
    wrong = [problem.message for problem in report.problems if problem.severity == "error"]
    ends = sorted((result.id, result.status) for result in report.results)
    return digest_json([get_verdict(report.decision), wrong, ends])


def _differs_from_baseline(comparison: Comparison | None) -> bool:
    """Whether a run came to something else than its baseline; True where nobody can tell."""
    if comparison is None or comparison.not_comparable:
        return True
    changed = (trend.regressions or trend.improvements for trend in comparison.evaluators)
    return bool(comparison.added or comparison.removed or any(changed))
