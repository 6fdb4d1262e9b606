"""What a run is about, as GitHub tells it: a commit, and the pull request that brings it."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from agentci.errors import GitHubError
from agentci.github.api_client import GitHubApi
from agentci.github.context import GitHubContext, format_run_url
from agentci.github.events import WORKFLOW_RUN as FOLLOWING
from agentci.github.events import (
    TriggeringRun,
    WorkflowEvent,
    get_nested,
    read_event,
    read_triggering_run,
)
from agentci.model.json import JsonObject
from agentci.model.result import Report
from agentci.reports.comment import CommentReport

OPEN_STATE: Final = "open"
SHOWN_DIGITS: Final = 12


class PostTarget(Struct, frozen=True, kw_only=True):
    """What is answered to.

    Attributes:
        commit: that was judged; empty where nobody knows.
        run_url: the page of the run that judged it.
        from_fork: whether it comes from another repository.
    """

    event: WorkflowEvent
    triggering_run: TriggeringRun | None
    commit: str
    run_url: str
    from_fork: bool

    def render_comment(self, report: Report) -> str:
        """What is said of it, in Markdown."""
        return "".join(CommentReport(run_url=self.run_url, commit=self.commit).render(report))

    def find_pull_request_number(self, api: GitHubApi) -> int:
        """The number of the one pull request whose last commit it is about.

        What an earlier commit came to never takes the place of what a later one did.

        Raises:
            NobodyError: there is none, or more than one.
            GitHubError: GitHub cannot be asked.
        """
        if (number := self.event.pull_request) is not None:
            if self.commit and get_nested(api.get(f"pulls/{number}"), "head", "sha") != self.commit:
                since = self.commit[:SHOWN_DIGITS]
                raise NoPullRequestError(f"pull request {number} has moved on from {since}")
            return number
        if self.triggering_run is not None:
            if not self.triggering_run.head_repository:
                raise NoPullRequestError(f"the branch of {self.commit[:SHOWN_DIGITS]} is gone")
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
            raise NoPullRequestError(f"the event {self.event.name} has no pull request")
        else:
            raise NoPullRequestError("outside of a workflow there is no pull request")
        return _require_single(found, self.commit)


class NoPullRequestError(GitHubError):
    """There is no pull request to answer to, which is nobody's fault."""


def find_post_target(github: GitHubContext) -> PostTarget:
    """What this run is about; where it follows another one, what that was about."""
    event = read_event(github)
    origin = read_triggering_run(github)
    if origin is None:
        return PostTarget(
            event=event,
            triggering_run=None,
            # Where nothing is told of the other run, ``head_sha`` is the default branch's.
            commit="" if event.name == FOLLOWING else event.head_sha,
            run_url=github.run_url,
            from_fork=event.from_fork,
        )
    return PostTarget(
        event=event,
        triggering_run=origin,
        commit=origin.head_sha,
        run_url=format_run_url(github.repository_url, origin.run) if github.repository_url else "",
        from_fork=False,  # the token is that of this run, which is of the repository's own
    )


def _require_single(pulls: list[JsonObject], commit: str) -> int:
    numbers = sorted(_list_open_numbers(pulls, commit))
    if len(numbers) != 1:
        many = f"{len(numbers)} open pull requests have" if numbers else "no open pull request has"
        raise NoPullRequestError(f"{many} {commit[:SHOWN_DIGITS]} as the last commit")
    return numbers[0]


def _list_open_numbers(pulls: list[JsonObject], commit: str) -> Iterator[int]:
    for pull in pulls:
        number = pull.get("number")
        is_open = pull.get("state") == OPEN_STATE
        if isinstance(number, int) and is_open and get_nested(pull, "head", "sha") == commit:
            yield number
