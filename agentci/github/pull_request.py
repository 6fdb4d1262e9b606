"""The commit and the pull request that results are posted to."""

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
    """What results are posted to.

    Attributes:
        commit: the evaluated commit; empty if unknown.
        run_url: the page of the run that evaluated it.
        from_fork: whether it comes from another repository.
    """

    event: WorkflowEvent
    triggering_run: TriggeringRun | None
    commit: str
    run_url: str
    from_fork: bool

    def render_comment(self, report: Report) -> str:
        """Render the comment's Markdown."""
        return "".join(CommentReport(run_url=self.run_url, commit=self.commit).render(report))

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
