"""Looks for the results of a commit, and of those before it: in the cache, then in earlier runs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from msgspec import Struct

from agentci._util.text.suggest import short_commit
from agentci._util.zip_archive import ArchiveError
from agentci.errors import GitHubError, InputError, UnreachableError
from agentci.github.baseline.artifacts import GoneError, Run, Runs
from agentci.github.baseline.cache import BaselineStore
from agentci.github.baseline.read import lack_of
from agentci.model.result import Report
from agentci.model.values import replace
from agentci.reports.merge.part import MAX_REPORT_BYTES, REPORT_NAME
from agentci.reports.merge.read import read_report

# How far back results are looked for, in commits of the branch.
MAX_BEHIND: Final = 100
# How many runs are asked for what they kept.
MAX_TRIED: Final = 10


class History(Protocol):
    """Knows what a branch was at."""

    def history(self, commit: str, most: int) -> tuple[str, ...]:
        """``commit`` and those before it, the newest first; at most ``most``.

        Raises:
            GitHubError: GitHub does not tell.
            UnreachableError: git does not tell.
        """
        ...


class Found(Struct, frozen=True, kw_only=True):
    """Results of an earlier run.

    Attributes:
        where: they were found, as shown to the user.
        behind: how many commits of the branch they are older than what was asked for.
    """

    report: Report
    commit: str
    where: str
    behind: int = 0


class Search:
    """One search, which raises nothing: what is in its way is told.

    Attributes:
        misses: why there were no results so far, a sentence each.

    Args:
        kept: results in the cache; None where it cannot be used.
        runs: of the workflow.
        history: what knows what came before.
        series: what the results are kept as.
        misses: why there are none, as far as that is known before.
    """

    def __init__(
        self,
        *,
        kept: BaselineStore | None,
        runs: Runs,
        history: History,
        series: str,
        misses: Sequence[str] = (),
    ) -> None:
        self.misses = list(misses)
        self._kept = kept
        self._runs = runs
        self._history = history
        self._series = series
        self._tries = MAX_TRIED

    def of_commit(self, commit: str) -> Found | None:
        """The results of a commit; those of its last run, if there were several."""
        return self._first(commit, self._listed(commit))

    def of_earlier(self, commit: str, branch: str) -> Found | None:
        """The newest results of what the branch was at before ``commit``."""
        before = self._before(commit)
        runs: dict[str, list[Run]] = {}
        for run in self._listed(branch=branch) if before else ():
            runs.setdefault(run.commit, []).append(run)
        for behind, each in enumerate(before, 1):
            if found := self._first(each, runs.get(each, ())):
                return replace(found, behind=behind)
        return None

    def _first(self, commit: str, runs: Iterable[Run]) -> Found | None:
        """The results of a commit in the cache, else of the first run that has kept some."""
        if found := self._cached(commit):
            return found
        for run in runs:
            if self._tries and (found := self._kept_by(run)):
                return found
        return None

    def _cached(self, commit: str) -> Found | None:
        try:
            content = self._kept.find(commit, self._series) if self._kept else None
        except UnreachableError as error:
            self._miss(str(error))
            return None
        return None if content is None else self._read(content, commit, "the cache")

    def _kept_by(self, run: Run) -> Found | None:
        self._tries -= 1
        where = f"run {run.number}"
        try:
            content = self._runs.results(run, REPORT_NAME, limit_bytes=MAX_REPORT_BYTES)
        except (GoneError, ArchiveError, GitHubError) as error:
            self._miss(f"{where}: {told(error)}")
            return None
        return self._read(content, run.commit, where)

    def _read(self, content: bytes, commit: str, where: str) -> Found | None:
        try:
            report = read_report(content, file=f"{REPORT_NAME} of {where}")
        except InputError as error:
            self._miss(str(error.problems[0]))
            return None
        if why := _fault(report, commit):
            self._miss(f"{REPORT_NAME} of {where} {why}")
            return None
        return Found(report=report, commit=commit, where=where)

    def _listed(self, commit: str = "", *, branch: str = "") -> Iterator[Run]:
        """The runs of a commit or of a branch."""
        try:
            yield from self._runs.of_commit(commit) if commit else self._runs.of_branch(branch)
        except GitHubError as error:
            self._miss(told(error))

    def _before(self, commit: str) -> tuple[str, ...]:
        try:
            return self._history.history(commit, MAX_BEHIND + 1)[1:]
        except (GitHubError, UnreachableError) as error:
            self._miss(f"what came before it is not known: {told(error)}")
            return ()

    def _miss(self, why: str) -> None:
        if why not in self.misses:
            self.misses.append(why)


def told(error: Exception) -> str:
    """What went wrong, with a way out where one is known."""
    hint = getattr(error, "hint", None)
    return f"{error} ({hint})" if hint else str(error)


def _fault(report: Report, commit: str) -> str:
    """Why a report is not that of a commit, whole; empty where it is."""
    if lack := lack_of(report):
        return lack
    if report.commit not in ("", commit):
        return f"is of the commit {short_commit(report.commit)}"
    return ""
