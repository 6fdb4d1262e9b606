"""Answers on GitHub once everything else stands: whatever goes wrong here changes no verdict."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from agentci._util.text.format import count
from agentci.config.settings import Settings
from agentci.errors import FetchError, GitHubError
from agentci.github.check_run import check
from agentci.github.comment import UNWANTED, Wanted, stick
from agentci.github.comment_marker import Mark, digest_of, key_of
from agentci.github.pull_request import NobodyError, Subject, subject_of
from agentci.model.comparison import Comparison
from agentci.model.problem import Problem
from agentci.model.result import Report
from agentci.reports.report_format import verdict
from agentci.runner.services import World

NEVER: Final = "never"
UNANSWERED: Final = "GitHub did not answer before, and is not asked again"
FORK_HINT: Final = (
    "workflows of pull requests from forks may write nothing: have another workflow comment, as"
    " docs/pull-requests.md shows"
)


def answers(report: Report, settings: Settings, world: World) -> Iterator[Problem]:
    """Comment and make a check run, as the settings say; yields what became of each.

    What could not be done is a warning, all else a notice. A GitHub that does not answer is asked
    for nothing more.
    """
    silent = ""
    for what, do in _wanted(settings):
        if why := _reason_for_none(report, settings) or silent:
            yield Problem(message=f"{what}: {why}", severity="notice")
            continue
        subject = subject_of(world.github)
        try:
            yield Problem(message=do(report, settings, world, subject), severity="notice")
        except NobodyError as error:
            yield Problem(message=f"{what}: {error}", severity="notice")
        except GitHubError as error:
            hint = FORK_HINT if error.denied and subject.from_fork else error.hint
            yield Problem(message=f"{what}: {error}", hint=hint, severity="warning")
            if isinstance(error.__cause__, FetchError):
                silent = UNANSWERED  # for minutes perhaps, and nothing is to wait again


Act: TypeAlias = Callable[[Report, Settings, World, Subject], str]


def _wanted(settings: Settings) -> Iterator[tuple[str, Act]]:
    """What is to be done, each with what there is where it is not."""
    if settings.commenting != NEVER:
        yield "no comment", _comment
    if settings.check_run:
        yield "no check run", _check


def _reason_for_none(report: Report, settings: Settings) -> str:
    """Why nobody is told, whatever was asked for; empty where somebody is."""
    if report.portion is not None:
        return "this is a part of a run, and the step that merges all parts answers"
    if not report.complete:
        return "the run was broken off"
    if settings.access.offline:
        return "nothing is asked of the network with --offline"
    return ""


def _comment(report: Report, settings: Settings, world: World, subject: Subject) -> str:
    pull = subject.pull_request(world.github_api)
    key = key_of(
        workflow=world.github.workflow,
        job=world.github.job,
        step=world.github.step,
        configs=settings.configs,
        matrix=settings.matrix,
    )
    wanted = Wanted(
        settings.commenting,
        shut=not report.decision.open,
        differs=_differs(report.comparison),
    )
    mark = Mark(key=key, result=_result(report))
    done = stick(world.github_api, pull, mark, subject.comment(report), wanted)
    if done == UNWANTED:
        return f"no comment on pull request {pull}: none is wanted for this result"
    return f"the comment on pull request {pull} {done}"


def _check(report: Report, settings: Settings, world: World, subject: Subject) -> str:
    if not subject.commit:
        raise NobodyError(f"the event {world.github.event or 'of no workflow'} names no commit")
    left_out = check(world.github_api, settings.check_run, report, subject)
    without = f", without {count(left_out, 'annotation')}" if left_out else ""
    return f"the check run {settings.check_run} was made{without}"


def _result(report: Report) -> str:
    """What the run came to: the verdict, what is wrong, and how each check ended; no score."""
    wrong = [problem.message for problem in report.problems if problem.severity == "error"]
    ends = sorted((result.id, result.status) for result in report.results)
    return digest_of([verdict(report.decision), wrong, ends])


def _differs(comparison: Comparison | None) -> bool:
    """Whether a run came to something else than its baseline; True where nobody can tell."""
    if comparison is None or comparison.refused:
        return True
    changed = (trend.regressions or trend.improvements for trend in comparison.trends)
    return bool(comparison.added or comparison.gone or any(changed))
