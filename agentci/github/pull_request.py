"""What a run is about, as GitHub tells it: a commit, and the pull request that brings it."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from agentci.errors import GitHubError
from agentci.github.api.client import GitHubApi
from agentci.github.context import GitHub, run_url
from agentci.github.event import Event
from agentci.github.read_event import read_event, read_origin
from agentci.github.workflow_run import EVENT as FOLLOWING
from agentci.github.workflow_run import Origin
from agentci.model.json import Json, JsonObject
from agentci.model.result import Report
from agentci.reports.comment import Comment

OPEN: Final = "open"
SHOWN_DIGITS: Final = 12


class Subject(Struct, frozen=True, kw_only=True):
    """What is answered to.

    Attributes:
        commit: that was judged; empty where nobody knows.
        run_url: the page of the run that judged it.
        from_fork: whether it comes from another repository.
    """

    event: Event
    origin: Origin | None
    commit: str
    run_url: str
    from_fork: bool

    def comment(self, report: Report) -> str:
        """What is said of it, in Markdown."""
        return "".join(Comment(run_url=self.run_url, commit=self.commit).render(report))

    def pull_request(self, api: GitHubApi) -> int:
        """The number of the one pull request whose last commit it is about.

        What an earlier commit came to never takes the place of what a later one did.

        Raises:
            NobodyError: there is none, or more than one.
            GitHubError: GitHub cannot be asked.
        """
        if (number := self.event.pull_request) is not None:
            if self.commit and _at(api.get(f"pulls/{number}"), "head", "sha") != self.commit:
                since = self.commit[:SHOWN_DIGITS]
                raise NobodyError(f"pull request {number} has moved on from {since}")
            return number
        if self.origin is not None:
            if not self.origin.head_repository:
                raise NobodyError(f"the branch of {self.commit[:SHOWN_DIGITS]} is gone")
            query = {"state": OPEN, "head": self.origin.head}
            name = self.origin.head_repository
            found = [
                pull
                for pull in api.pages("pulls", query)
                if _at(pull, "head", "repo", "full_name") == name
            ]
        elif self.event.name == "push" and self.commit:
            found = list(api.pages(f"commits/{self.commit}/pulls"))
        elif self.event.name:
            raise NobodyError(f"the event {self.event.name} has no pull request")
        else:
            raise NobodyError("outside of a workflow there is no pull request")
        return _only(found, self.commit)


class NobodyError(GitHubError):
    """There is no pull request to answer to, which is nobody's fault."""


def subject_of(github: GitHub) -> Subject:
    """What this run is about; where it follows another one, what that was about."""
    event = read_event(github)
    origin = read_origin(github)
    if origin is None:
        return Subject(
            event=event,
            origin=None,
            # Where nothing is told of the other run, ``head_sha`` is the default branch's.
            commit="" if event.name == FOLLOWING else event.head_sha,
            run_url=github.run_url,
            from_fork=event.from_fork,
        )
    return Subject(
        event=event,
        origin=origin,
        commit=origin.head_sha,
        run_url=run_url(github.repository_url, origin.run) if github.repository_url else "",
        from_fork=False,  # the token is that of this run, which is of the repository's own
    )


def _only(pulls: list[JsonObject], commit: str) -> int:
    numbers = sorted(_numbers(pulls, commit))
    if len(numbers) != 1:
        many = f"{len(numbers)} open pull requests have" if numbers else "no open pull request has"
        raise NobodyError(f"{many} {commit[:SHOWN_DIGITS]} as the last commit")
    return numbers[0]


def _numbers(pulls: list[JsonObject], commit: str) -> Iterator[int]:
    for pull in pulls:
        number = pull.get("number")
        is_open = pull.get("state") == OPEN
        if isinstance(number, int) and is_open and _at(pull, "head", "sha") == commit:
            yield number


def _at(value: Json, *names: str) -> Json:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
