"""Finds the baseline for `--baseline base`: in the cache, then in earlier workflow runs.

Their reports are artifacts, read through GitHub's API.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar
from urllib.parse import quote

from msgspec import Struct

from agentci._util.archives import ArchiveError, read_zip_member
from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.suggest import shorten_commit
from agentci._util.workspace import limit_input
from agentci.config.settings import Settings
from agentci.errors import GitHubError, InputError, UnreachableError
from agentci.github.api_client import PAGE_ITEMS, GitHubApi
from agentci.github.baseline.cache import (
    BaselineStore,
    explain_incomplete,
    explain_unevaluated,
    open_baseline_store,
)
from agentci.github.baseline.git import GitRepository, open_git_repository
from agentci.github.events import (
    COMMIT_HASH,
    TRUSTED_EVENTS,
    BaseCommit,
    GitHubContext,
    Workflow,
    find_base_commit,
    get_nested,
    read_event,
)
from agentci.model.result import Report
from agentci.model.values import Json, replace
from agentci.reports.merge.read import MAX_REPORT_BYTES, REPORT_NAME, read_report
from agentci.reports.run_content import ChunkWriter
from agentci.runner.services import Services

MAX_ARCHIVE_BYTES: Final = 256 * 1024**2

OLD_RUNNER: Final = "runners set it; update a self-hosted runner"
MERGE_QUEUE_QUERY: Final = {"event": "merge_group"}

T = TypeVar("T")


class ArtifactMissingError(Exception):
    """A run has no usable artifact; the message completes a sentence about the run."""


class WorkflowRun(Struct, frozen=True, kw_only=True):
    """A run of the workflow for a commit of the repository itself."""

    number: int
    commit: str


class WorkflowRuns:
    """The runs of the current workflow; all methods raise ``GitHubError``.

    Args:
        github: the current run and its workflow.
        artifact: name of the artifacts that contain results.
        unavailable: why the API may not be used; empty if it may.
    """

    def __init__(
        self, api: GitHubApi, github: GitHubContext, artifact: str, *, unavailable: str = ""
    ) -> None:
        self._failure = GitHubError(unavailable) if unavailable else None
        self._api = api
        self._github = github
        self._artifact = artifact

    def find_merge_base(self, commit: str, branch: str) -> str:
        """Return the merge base of ``commit`` and a branch."""
        compared = self._get(f"compare/{quote(branch, safe='')}...{commit}", {"per_page": 1})
        found = get_nested(compared, "merge_base_commit", "sha")
        if not (isinstance(found, str) and COMMIT_HASH.match(found)):
            raise GitHubError(f"GitHub returned no merge base of {commit} and {branch}")
        return found

    def history(self, commit: str, most: int) -> tuple[str, ...]:
        """Return ``commit`` and its first-parent ancestors, newest first, at most ``most``."""
        listed = self._get("commits", {"sha": commit, "per_page": min(most, PAGE_ITEMS)})
        parents = {
            get_nested(each, "sha"): get_nested(each, "parents", 0, "sha")
            for each in _list_items(listed)
        }
        found: list[str] = []
        following: Json = commit
        while isinstance(following, str) and following in parents:
            found.append(following)
            following = parents.pop(following)
        return tuple(found)

    def find_by_commit(self, commit: str) -> tuple[WorkflowRun, ...]:
        """Return the runs of a commit, newest first."""
        return tuple(self._list_runs({"head_sha": commit}))

    def find_by_branch(self, branch: str) -> tuple[WorkflowRun, ...]:
        """Return the newest runs on a branch, then those of merge queues."""
        queries = [{"branch": branch}] if branch else []
        return tuple(
            run for query in [*queries, MERGE_QUEUE_QUERY] for run in self._list_runs(query)
        )

    def download_results(self, run: WorkflowRun, file_name: str, *, limit_bytes: int) -> bytes:
        """Download a file of a run's artifact; with several attempts, that of the last one.

        Raises:
            ArtifactMissingError: there is no artifact, or it has expired.
            ArchiveError: it is not a readable archive.
        """
        path, query = f"actions/runs/{run.number}/artifacts", {"name": self._artifact}
        pages = self._call_api(lambda api: [*api.pages(path, query, items="artifacts")])
        listed = [each for each in pages if each.get("name") == self._artifact]
        if not listed:
            raise ArtifactMissingError(f"has no artifact {self._artifact}")
        newest = max(listed, key=lambda each: str(each.get("created_at")))
        if newest.get("expired"):
            raise ArtifactMissingError(f"has only an expired artifact {self._artifact}")
        path = f"actions/artifacts/{newest.get('id')}/zip"
        content = self._call_api(lambda api: api.download(path, limit_bytes=MAX_ARCHIVE_BYTES))
        return read_zip_member(content, file_name, limit_bytes=limit_bytes)

    def _list_runs(self, query: Mapping[str, str]) -> Iterator[WorkflowRun]:
        if self._failure is None and not self._github.workflow_file:
            raise GitHubError("GITHUB_WORKFLOW_REF does not name a workflow", hint=OLD_RUNNER)
        path = f"actions/workflows/{quote(self._github.workflow_file, safe='')}/runs"
        listed = self._get(path, {**query, "per_page": PAGE_ITEMS})
        for each in _list_items(get_nested(listed, "workflow_runs")):
            number, commit = get_nested(each, "id"), get_nested(each, "head_sha")
            if isinstance(number, int) and isinstance(commit, str) and self._is_comparable(each):
                yield WorkflowRun(number=number, commit=commit)

    def _get(self, path: str, query: Mapping[str, str | int]) -> Json:
        return self._call_api(lambda api: api.get(path, query))

    def _call_api(self, ask: Callable[[GitHubApi], T]) -> T:
        """Call the API; after a request without a response, raise its error without a request."""
        if self._failure is not None:
            raise self._failure
        try:
            return ask(self._api)
        except GitHubError as error:
            if error.status is None:
                self._failure = error
            raise

    def _is_comparable(self, run: Json) -> bool:
        """Whether it is another run that evaluated a commit of this repository."""
        home = get_nested(run, "repository", "full_name")
        return (
            str(get_nested(run, "id")) != self._github.run
            and get_nested(run, "event") in TRUSTED_EVENTS
            and isinstance(home, str)
            and home == get_nested(run, "head_repository", "full_name")
        )


def _list_items(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


# How many earlier commits of the branch are searched for results.
MAX_COMMITS_BEHIND: Final = 100
# How many runs are searched for results.
MAX_RUNS_TRIED: Final = 10


class CommitHistory(Protocol):
    """A source of a branch's history: GitHub or git."""

    def history(self, commit: str, most: int) -> tuple[str, ...]:
        """Return ``commit`` and its first-parent ancestors, newest first, at most ``most``.

        Raises:
            GitHubError: the request to GitHub failed.
            UnreachableError: git failed.
        """
        ...


class BaselineReport(Struct, frozen=True, kw_only=True):
    """Results of an earlier run.

    Attributes:
        where: the place they were found in, as shown to the user.
        behind: how many commits they are older than the requested one.
    """

    report: Report
    commit: str
    where: str
    behind: int = 0


class BaselineSearch:
    """One search for results; failures are collected instead of raised.

    Attributes:
        misses: why there were no results so far, one sentence each.

    Args:
        store: results in the cache; None if it cannot be used.
        runs: of the workflow.
        history: lists earlier commits.
        series: name of the stored results.
        contents: where the contents of cases are stored; None if they are not needed.
        misses: failures that are known already.
    """

    def __init__(
        self,
        *,
        store: BaselineStore | None,
        runs: WorkflowRuns,
        history: CommitHistory,
        series: str,
        contents: ChunkWriter | None = None,
        misses: Sequence[str] = (),
    ) -> None:
        self.misses = list(misses)
        self._store = store
        self._runs = runs
        self._history = history
        self._series = series
        self._contents = contents
        self._tries = MAX_RUNS_TRIED

    def find_by_commit(self, commit: str) -> BaselineReport | None:
        """Find the results of a commit, of its last run if there were several."""
        return self._find_first(commit, self._list_runs(commit))

    def find_before(self, commit: str, branch: str) -> BaselineReport | None:
        """Find the newest results of a commit before ``commit`` on the branch."""
        before = self._list_earlier_commits(commit)
        runs: dict[str, list[WorkflowRun]] = {}
        for run in self._list_runs(branch=branch) if before else ():
            runs.setdefault(run.commit, []).append(run)
        for behind, each in enumerate(before, 1):
            if found := self._find_first(each, runs.get(each, ())):
                return replace(found, behind=behind)
        return None

    def _find_first(self, commit: str, runs: Iterable[WorkflowRun]) -> BaselineReport | None:
        """Return the results in the cache, else those of the first run that has some."""
        if found := self._read_from_cache(commit):
            return found
        for run in runs:
            if self._tries and (found := self._read_from_run(run)):
                return found
        return None

    def _read_from_cache(self, commit: str) -> BaselineReport | None:
        try:
            content = self._store.find(commit, self._series) if self._store else None
        except UnreachableError as error:
            self._add_miss(str(error))
            return None
        return None if content is None else self._read(content, commit, "the cache")

    def _read_from_run(self, run: WorkflowRun) -> BaselineReport | None:
        self._tries -= 1
        where = f"run {run.number}"
        try:
            content = self._runs.download_results(run, REPORT_NAME, limit_bytes=MAX_REPORT_BYTES)
        except (ArtifactMissingError, ArchiveError, GitHubError) as error:
            self._add_miss(f"{where}: {format_with_hint(error)}")
            return None
        return self._read(content, run.commit, where)

    def _read(self, content: bytes, commit: str, where: str) -> BaselineReport | None:
        try:
            file = f"{REPORT_NAME} of {where}"
            with limit_input(file, size=len(content)):
                report = read_report(
                    content, file=file, outcomes_only=True, contents=self._contents
                )
        except InputError as error:
            self._add_miss(str(error.problems[0]))
            return None
        if why := _explain_mismatch(report, commit):
            self._add_miss(f"{REPORT_NAME} of {where} {why}")
            return None
        return BaselineReport(report=report, commit=commit, where=where)

    def _list_runs(self, commit: str = "", *, branch: str = "") -> Iterator[WorkflowRun]:
        """Yield the runs of a commit or of a branch."""
        try:
            yield from (
                self._runs.find_by_commit(commit) if commit else self._runs.find_by_branch(branch)
            )
        except GitHubError as error:
            self._add_miss(format_with_hint(error))

    def _list_earlier_commits(self, commit: str) -> tuple[str, ...]:
        try:
            return self._history.history(commit, MAX_COMMITS_BEHIND + 1)[1:]
        except (GitHubError, UnreachableError) as error:
            self._add_miss(f"cannot list earlier commits: {format_with_hint(error)}")
            return ()

    def _add_miss(self, why: str) -> None:
        if why not in self.misses:
            self.misses.append(why)


def format_with_hint(error: Exception) -> str:
    """Return the message of an error with its hint, if it has one."""
    hint = getattr(error, "hint", None)
    return f"{error} ({hint})" if hint else str(error)


def _explain_mismatch(report: Report, commit: str) -> str:
    """Explain why a report is not the complete report of a commit; empty if it is."""
    if reason := explain_incomplete(report) or explain_unevaluated(report):
        return reason
    if report.commit not in ("", commit):
        return f"belongs to commit {shorten_commit(report.commit)}"
    return ""


MAX_MISSES: Final = 4
NO_COMMIT: Final = "the commit of this run is unknown"
NO_MAIN_BRANCH: Final = "the repository has no branch main or master, and origin has no HEAD"
OFFLINE: Final = "GitHub is not searched with --offline"
OUTSIDE_WORKFLOW: Final = "GitHub is searched only in a workflow"
UNKNOWN_MERGE_BASE: Final = "the merge base with {branch} is unknown"
DOCS_HINT: Final = "see agentci's docs/baselines.md for how a workflow keeps its results"


class NoBaselineError(Exception):
    """There are no results to compare with; the message says why, without a full stop."""


class ChosenBaseline(Struct, frozen=True, kw_only=True):
    """The results that a run is compared with.

    Attributes:
        stale: why they may not be the base commit's; empty if they are.
    """

    found: BaselineReport
    stale: str = ""


def find_baseline(
    evaluated: str, settings: Settings, services: Services, workflow: Workflow
) -> ChosenBaseline:
    """Find the results of the base commit, in the cache first, then on GitHub.

    Args:
        evaluated: the commit of this run; empty if unknown.

    Raises:
        NoBaselineError: there are none, or the base is unknown.
    """
    if not evaluated:
        raise NoBaselineError(NO_COMMIT)
    repository = open_git_repository(services)
    runs = make_workflow_runs(settings, workflow)
    base, doubt = find_base(evaluated, runs, repository, workflow.context)
    search = _make_search(settings, services, workflow.context, runs=runs, repository=repository)
    doubt = doubt and f"the baseline may be stale: {doubt}"
    found = search.find_by_commit(base.commit)
    if found:
        return ChosenBaseline(found=found, stale=doubt)
    found = search.find_before(base.commit, base.branch)
    if not found:
        raise NoBaselineError(_explain_missing(base, search))
    stale = "" if base.is_any_earlier else _explain_stale(base, found, search)
    return ChosenBaseline(found=found, stale="; ".join(filter(None, (stale, doubt))))


def find_base(
    evaluated: str, runs: WorkflowRuns, repository: GitRepository, github: GitHubContext
) -> tuple[BaseCommit, str]:
    """Return the base commit, and why it may be wrong; empty if it is not.

    Raises:
        NoBaselineError: it is unknown.
    """
    if github.active:
        base, doubt = _find_workflow_base(evaluated, runs, github)
    else:
        base, doubt = _find_local_base(evaluated, repository), ""
    if not base.commit:
        raise NoBaselineError(doubt or f"the event `{github.event}` names no base commit")
    return base, doubt


def _find_workflow_base(
    evaluated: str, runs: WorkflowRuns, github: GitHubContext
) -> tuple[BaseCommit, str]:
    """Return the base commit, and why it may be wrong."""
    base = find_base_commit(read_event(github), github.ref_name)
    if base.is_any_earlier:
        return replace(base, commit=evaluated), ""
    if not base.merge_base_with:
        return base, ""
    try:
        return replace(base, commit=runs.find_merge_base(evaluated, base.merge_base_with)), ""
    except GitHubError as error:
        return (
            base,
            f"{UNKNOWN_MERGE_BASE.format(branch=base.merge_base_with)}: {format_with_hint(error)}",
        )


def _find_local_base(evaluated: str, repository: GitRepository) -> BaseCommit:
    """Return the base of what is checked out; on the main branch, any earlier results will do."""
    try:
        base = repository.find_merge_base_with_main(evaluated)
    except UnreachableError as error:
        raise NoBaselineError(f"the base commit is unknown: {format_with_hint(error)}") from None
    if not base:
        raise NoBaselineError(NO_MAIN_BRANCH)
    return BaseCommit(commit=base, branch="", is_any_earlier=base == evaluated)


def make_workflow_runs(settings: Settings, workflow: Workflow) -> WorkflowRuns:
    """Make the list of the workflow's runs; outside a workflow and offline, there are none."""
    unavailable = "" if workflow.context.active else OUTSIDE_WORKFLOW
    return WorkflowRuns(
        workflow.api,
        workflow.context,
        settings.baseline_artifact,
        unavailable=OFFLINE if settings.fetch_settings.offline else unavailable,
    )


def _make_search(
    settings: Settings,
    services: Services,
    github: GitHubContext,
    *,
    runs: WorkflowRuns,
    repository: GitRepository,
) -> BaselineSearch:
    store: BaselineStore | None = None
    misses: list[str] = []
    try:
        store = open_baseline_store(settings.fetch_settings, services)
    except InputError as error:
        misses += [problem.message for problem in error.problems]
    return BaselineSearch(
        store=store,
        runs=runs,
        history=runs if github.active else repository,
        series=settings.baseline_artifact,
        contents=services.run_contents,
        misses=misses,
    )


def _explain_missing(base: BaseCommit, search: BaselineSearch) -> str:
    why = _format_misses(search) or "neither the cache nor a run of the workflow on GitHub has any"
    commit = shorten_commit(base.commit)
    return f"no results of {commit} or an earlier commit: {why} ({DOCS_HINT})"


def _explain_stale(base: BaseCommit, found: BaselineReport, search: BaselineSearch) -> str:
    behind = format_count(found.behind, "commit")
    why = _format_misses(search)
    return (
        f"the baseline is stale: its commit {shorten_commit(found.commit)} is {behind} before the "
        f"base {shorten_commit(base.commit)}, which has no results{why and f' ({why})'}"
    )


def _format_misses(search: BaselineSearch) -> str:
    return "; ".join(truncate.truncate_list(search.misses, MAX_MISSES))
