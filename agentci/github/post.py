"""Posts results on GitHub as a check run and a comment, which is found by a hidden marker."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TextIO, TypeAlias

from msgspec import Struct

from agentci._util.files import write_to_stream
from agentci._util.text import escape, truncate
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count
from agentci.config.settings import Settings
from agentci.errors import FetchError, GitHubError
from agentci.github.api_client import FORBIDDEN, NOT_FOUND, GitHubApi, extract_id
from agentci.github.events import WORKFLOW_RUN as FOLLOWING
from agentci.github.events import (
    GitHubContext,
    TriggeringRun,
    Workflow,
    WorkflowEvent,
    format_run_url,
    get_nested,
    read_event,
    read_triggering_run,
)
from agentci.model.gate import Comparison
from agentci.model.result import Report
from agentci.model.values import CommentMode, Json, JsonObject, Problem, Severity, replace
from agentci.reports.annotations import list_case_files, make_annotations
from agentci.reports.comment import CommentReport
from agentci.reports.groups_and_totals import get_verdict
from agentci.reports.sections import Arrange, join_blocks
from agentci.reports.verdict import format_title, list_verdict_warnings
from agentci.reports.workflow_commands import (
    NO_DIFF,
    Annotation,
    DiffLines,
    exceed_annotation_limit,
    parse_hunks,
    render_annotations,
)

_DIGITS: Final = 16
_MARKER: Final = re.compile(r"<!-- agentci:([0-9a-f]{16}):([0-9a-f]{16}) -->\r?\n", re.ASCII)


class CommentMarker(Struct, frozen=True, kw_only=True):
    """The hidden marker of a comment: which comment it is, and which result it shows.

    Attributes:
        key: equal for all runs of the same step, job and matrix values.
        result: equal for all runs with the same result.
    """

    key: str
    result: str

    def prepend_to(self, text: str) -> str:
        """Return the comment's body: the marker, then ``text``."""
        return f"<!-- agentci:{self.key}:{self.result} -->\n{text}"


def parse_marker(body: str) -> CommentMarker | None:
    """Return the marker of a comment; None without one."""
    found = _MARKER.match(body)
    return CommentMarker(key=found[1], result=found[2]) if found else None


def make_comment_key(
    *, workflow: str, job: str, step: str, configs: Sequence[str], matrix: str
) -> str:
    """Make the key that tells the comments of a pull request apart.

    It does not depend on anything that changes from run to run (commit, run, attempt, event,
    result, key order of the matrix): each change would create another comment.

    Args:
        workflow: its file.
        job, step: their ids in the workflow.
        configs: as the user named them.
        matrix: the job's matrix values, as JSON.
    """
    return digest_json([workflow, job, step, sorted(configs), _parse_matrix(matrix)])


def digest_json(value: object) -> str:
    """Return a short digest of a JSON value."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _parse_matrix(matrix: str) -> object:
    try:
        return json.loads(matrix)
    except (ValueError, RecursionError):
        return matrix


CREATED: Final = "created"
UPDATED: Final = "updated"
UNCHANGED: Final = "unchanged"
NOT_POSTED: Final = ""
# Tokens of workflows and of apps belong to no user.
BOT_TYPE: Final = "Bot"


def upsert_comment(
    api: GitHubApi, pull: int, mark: CommentMarker, text: str, policy: "CommentPolicy"
) -> str:
    """Create or update the comment if ``policy`` says so; returns what was done.

    Raises:
        GitHubError: a request failed.
    """
    found = _find_comment(api, pull, mark.key)
    before = None if found is None else str(found["body"])
    if not policy.should_post(None if before is None else parse_marker(before), mark):
        return NOT_POSTED if found is None else UNCHANGED
    body = mark.prepend_to(text)
    if found is None:
        return _create_comment(api, pull, body)
    if before is not None and before.replace("\r\n", "\n").rstrip() == body.rstrip():
        return UNCHANGED
    try:
        api.patch(f"issues/comments/{extract_id(found)}", {"body": body})
    except GitHubError as error:
        if error.status != NOT_FOUND:
            raise
        return _create_comment(api, pull, body)  # it was deleted in the meantime
    return UPDATED


class CommentPolicy:
    """Decides whether a comment is posted.

    Args:
        failed: whether the gate failed.
        differs: whether the result differs from the baseline's, or has warnings.
    """

    def __init__(self, when: CommentMode, *, failed: bool, differs: bool) -> None:
        self._when = when
        self._failed = failed
        self._differs = differs

    def should_post(self, before: CommentMarker | None, now: CommentMarker) -> bool:
        """Whether to create or update the comment.

        Args:
            before: the marker of the existing comment; None without one.
            now: the marker of the new one.
        """
        if self._when == "failed":
            return self._failed or before is not None
        if self._when == "changed":
            return self._differs if before is None else before.result != now.result
        return True


def _create_comment(api: GitHubApi, pull: int, body: str) -> str:
    api.post(f"issues/{pull}/comments", {"body": body})
    return CREATED


def _find_comment(api: GitHubApi, pull: int, key: str) -> JsonObject | None:
    """Find the first comment with this key that the token's owner wrote."""
    viewer: int | None = None
    is_viewer_known = False
    for comment in api.pages(f"issues/{pull}/comments"):
        body = comment.get("body")
        mark = parse_marker(body) if isinstance(body, str) else None
        if mark is None or mark.key != key:
            continue
        if not is_viewer_known:
            viewer, is_viewer_known = _fetch_viewer_id(api), True
        if _is_ours(comment.get("user"), viewer):
            return comment
    return None


def _fetch_viewer_id(api: GitHubApi) -> int | None:
    """Return the id of the token's user; None for tokens of workflows and apps."""
    try:
        return extract_id(api.get("/user"))
    except GitHubError as error:
        if error.status in {FORBIDDEN, NOT_FOUND}:
            return None
        raise


def _is_ours(author: object, viewer: int | None) -> bool:
    """Whether the token's owner wrote it: any user can put a marker into a comment."""
    if not isinstance(author, Mapping):
        return False
    if viewer is None:
        return author.get("type") == BOT_TYPE
    return author.get("id") == viewer


OPEN_STATE: Final = "open"
SHOWN_DIGITS: Final = 12


class PostTarget(Struct, frozen=True, kw_only=True):
    """What results are posted to.

    Attributes:
        commit: the evaluated commit; empty if unknown.
        run_url: the page of the run that evaluated it.
        from_fork: whether it comes from another repository.
        report_url, arrange: as in ``CommentReport``.
    """

    event: WorkflowEvent
    triggering_run: TriggeringRun | None
    commit: str
    run_url: str
    from_fork: bool
    report_url: str = ""
    arrange: Arrange = join_blocks

    def render_comment(self, report: Report) -> str:
        """Render the comment's Markdown."""
        comment = CommentReport(
            run_url=self.run_url,
            commit=self.commit,
            report_url=self.report_url,
            arrange=self.arrange,
        )
        return "".join(comment.render(report))

    def find_pull_request_number(self, api: GitHubApi) -> int:
        """Return the number of the only open pull request whose last commit was evaluated.

        The results of an earlier commit never replace those of a later one.

        Raises:
            NoPullRequestError: there is none, or more than one.
            GitHubError: a request failed.
        """
        if (number := self.event.pull_request) is not None:
            if self.commit and get_nested(api.get(f"pulls/{number}"), "head", "sha") != self.commit:
                commit = self.commit[:SHOWN_DIGITS]
                raise NoPullRequestError(f"pull request {number} has commits after {commit}")
            return number
        if self.triggering_run is not None:
            if not self.triggering_run.head_repository:
                raise NoPullRequestError(f"the branch of {self.commit[:SHOWN_DIGITS]} was deleted")
            query = {"state": OPEN_STATE, "head": self.triggering_run.head}
            name = self.triggering_run.head_repository
            found = [
                pull
                for pull in api.pages("pulls", query)
                if get_nested(pull, "head", "repo", "full_name") == name
            ]
        elif self.event.name == "push" and self.commit:
            found = list(api.pages(f"commits/{self.commit}/pulls"))
        elif self.event.name:
            raise NoPullRequestError(f"the event `{self.event.name}` has no pull request")
        else:
            raise NoPullRequestError("there is no pull request outside a workflow")
        return _require_single(found, self.commit)


class NoPullRequestError(GitHubError):
    """There is no pull request to post to, which is not a failure."""


def find_post_target(github: GitHubContext) -> PostTarget:
    """Find what this run, or the run that triggered it, evaluated."""
    event = read_event(github)
    origin = read_triggering_run(github)
    if origin is None:
        return PostTarget(
            event=event,
            triggering_run=None,
            # If the other run is unknown, ``head_sha`` is the default branch's.
            commit="" if event.name == FOLLOWING else event.head_sha,
            run_url=github.run_url,
            from_fork=event.from_fork,
        )
    return PostTarget(
        event=event,
        triggering_run=origin,
        commit=origin.head_sha,
        run_url=format_run_url(github.repository_url, origin.run) if github.repository_url else "",
        from_fork=False,  # this run has the token of the repository itself
    )


def _require_single(pulls: list[JsonObject], commit: str) -> int:
    numbers = sorted(_list_open_numbers(pulls, commit))
    if len(numbers) != 1:
        count = f"{len(numbers)} open pull requests have" if numbers else "no open pull request has"
        raise NoPullRequestError(f"{count} {commit[:SHOWN_DIGITS]} as the last commit")
    return numbers[0]


def _list_open_numbers(pulls: list[JsonObject], commit: str) -> Iterator[int]:
    for pull in pulls:
        number = pull.get("number")
        is_open = pull.get("state") == OPEN_STATE
        if isinstance(number, int) and is_open and get_nested(pull, "head", "sha") == commit:
            yield number


ANNOTATIONS_PER_REQUEST: Final = 50
# For a thousand annotations.
MAX_REQUESTS: Final = 20
MAX_TITLE: Final = 255
# At most four bytes per character: below GitHub's limit of 64 KiB.
MAX_MESSAGE: Final = 16_000
_LEVELS: Final[dict[Severity, str]] = {"error": "failure", "warning": "warning", "note": "notice"}


def create_check_run(
    api: GitHubApi, name: str, report: Report, subject: PostTarget, diff: DiffLines = NO_DIFF
) -> int:
    """Create a check run and return how many annotations it leaves out.

    The first request already completes it, so that a failed later request leaves no check run
    pending.

    Raises:
        GitHubError: a request failed.
    """
    shown = [
        fields
        for each in make_annotations(report, diff)
        if (fields := _make_annotation_fields(each))
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
    """Return an annotation in the API's format; None if it is not on a file of the repository."""
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
NOT_RESPONDING: Final = "skipped, because GitHub did not respond to an earlier request"
FORK_HINT: Final = (
    "workflows of pull requests from forks have no write access: comment from another workflow, as"
    " agentci's docs/pull-requests.md shows"
)


def post_results(
    report: Report, settings: Settings, workflow: Workflow, arrange: Arrange = join_blocks
) -> Iterator[Problem]:
    """Post the comment and the check run that the settings ask for; yields the outcome of each.

    A failure is a warning, everything else a note. After a request without a response no more
    requests are made.
    """
    not_responding = ""
    for what, do in _list_actions(settings):
        if why := _explain_no_post(report, settings) or not_responding:
            yield Problem(message=f"{what}: {why}", severity="note")
            continue
        subject = replace(
            find_post_target(workflow.context), report_url=settings.report_url, arrange=arrange
        )
        try:
            yield Problem(message=do(report, settings, workflow, subject), severity="note")
        except NoPullRequestError as error:
            yield Problem(message=f"{what}: {error}", severity="note")
        except GitHubError as error:
            hint = FORK_HINT if error.denied and subject.from_fork else error.hint
            yield Problem(message=f"{what}: {error}", hint=hint, severity="warning")
            if isinstance(error.__cause__, FetchError):
                not_responding = NOT_RESPONDING  # its retries may have taken minutes already


PostAction: TypeAlias = Callable[[Report, Settings, Workflow, PostTarget], str]


def _list_actions(settings: Settings) -> Iterator[tuple[str, PostAction]]:
    """List the actions, each with the subject of a message that explains its absence."""
    if settings.commenting != NEVER:
        yield "no comment", _post_comment
    if settings.check_run:
        yield "no check run", _post_check_run


def _explain_no_post(report: Report, settings: Settings) -> str:
    """Explain why nothing is posted; empty if something is."""
    if report.shard_info is not None:
        return "this is one shard of a run; the step that merges all shards posts the results"
    if not report.complete:
        return "the run was interrupted"
    if settings.fetch_settings.offline:
        return "--offline allows no network access"
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
    policy = CommentPolicy(
        settings.commenting,
        failed=not report.decision.passed,
        differs=_differs_from_baseline(report.comparison) or bool(list_verdict_warnings(report)),
    )
    mark = CommentMarker(key=key, result=_digest_result(report))
    done = upsert_comment(workflow.api, pull, mark, subject.render_comment(report), policy)
    if done == NOT_POSTED:
        return (
            f"no comment on pull request {pull}: `comment: {settings.commenting}` does not apply to"
            " this result"
        )
    return f"comment on pull request {pull} {done}"


def _post_check_run(
    report: Report, settings: Settings, workflow: Workflow, subject: PostTarget
) -> str:
    if not subject.commit:
        raise NoPullRequestError(
            f"the event `{workflow.context.event}` has no commit"
            if workflow.context.event
            else "there is no commit outside a workflow"
        )
    diff = NO_DIFF
    try:
        if _has_failures(report):
            number = subject.find_pull_request_number(workflow.api)
            diff = _fetch_diff(report, number, workflow.api)
    except GitHubError as error:
        if isinstance(error.__cause__, FetchError):
            raise
        # Without a pull request, or permission to read it, failures are on the config's lines.
    left_out = create_check_run(workflow.api, settings.check_run, report, subject, diff)
    without = f", without {format_count(left_out, 'annotation')}" if left_out else ""
    return f"check run `{settings.check_run}` created{without}"


def _digest_result(report: Report) -> str:
    """Digest verdict, errors, warnings and the status of each check of a run, but no scores."""
    errors = [problem.message for problem in report.problems if problem.severity == "error"]
    statuses = sorted((result.id, result.status) for result in report.results)
    warnings = list_verdict_warnings(report)
    return digest_json([get_verdict(report.decision), errors, warnings, statuses])


def _differs_from_baseline(comparison: Comparison | None) -> bool:
    """Whether the result differs from the baseline's; True if that is unknown."""
    if comparison is None or comparison.no_baseline:
        return True
    if any(each.newly_failing or each.worse or each.fixed for each in comparison.evaluators):
        return True
    same = comparison.classes.compared + comparison.classes.not_evaluated
    return same < comparison.classes.total


def print_annotations(report: Report, settings: Settings, workflow: Workflow, out: TextIO) -> None:
    """Print the annotations, with those about failures on lines of the pull request's diff."""
    diff, number = NO_DIFF, read_event(workflow.context).pull_request
    if number is not None and not settings.fetch_settings.offline:
        try:
            diff = _fetch_diff(report, number, workflow.api)
        except GitHubError as error:
            if settings.verbose:
                message = f"cannot fetch the pull request's diff: {error}"
                hint = f"; {error.hint}" if error.hint else ""
                write_to_stream(f"{escape_for_log_line(f'{message}{hint}')}\n", out)
    write_to_stream(render_annotations(make_annotations(report, diff), diff), out)


def _has_failures(report: Report) -> bool:
    return any(each.status in ("failed", "errored") for each in report.results)


def _fetch_diff(report: Report, number: int, api: GitHubApi) -> DiffLines:
    """Fetch the changed lines of the files that annotations may be on.

    Raises:
        GitHubError: the request failed.
    """
    annotations = make_annotations(report)
    wanted = {each.place.file for each in annotations if each.place}
    if _has_failures(report):
        wanted |= list_case_files(report.results)
    elif not exceed_annotation_limit(annotations):
        return NO_DIFF
    diff: dict[str, tuple[range, ...]] = {}
    for changed in api.pages(f"pulls/{number}/files", retry=False):
        name, patch = changed.get("filename"), changed.get("patch")
        if isinstance(name, str) and name in wanted:
            # GitHub sends no patch for large and binary files.
            diff[name] = parse_hunks(patch) if isinstance(patch, str) else ()
        if diff.keys() == wanted:
            break
    return diff
