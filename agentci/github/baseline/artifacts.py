"""Earlier runs of a workflow, and what they kept: asked of GitHub's API."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import quote

from msgspec import Struct

from agentci._util.archives import read_zip_member
from agentci._util.git_files import COMMIT_HASH
from agentci.errors import GitHubError
from agentci.github.api_client import PAGE_ITEMS, GitHubApi
from agentci.github.context import GitHubContext
from agentci.github.events import TRUSTED_EVENTS
from agentci.model.json import Json

MAX_ARCHIVE_BYTES: Final = 256 * 1024**2

OLD_RUNNER: Final = "runners set it; one of your own may be too old"
MERGE_QUEUE_QUERY: Final = {"event": "merge_group"}

T = TypeVar("T")


class ArtifactMissingError(Exception):
    """A run has not kept what is asked for; says so as the end of a sentence about it."""


class WorkflowRun(Struct, frozen=True, kw_only=True):
    """A run of the workflow, of a commit of the repository itself."""

    number: int
    commit: str


class WorkflowRuns:
    """The runs of the workflow that this one is of; all raise ``GitHubError``.

    Args:
        github: names the workflow and the run that goes on.
        artifact: the name of the artifacts that results are kept in.
        unasked: why nothing is asked; empty where it is.
    """

    def __init__(
        self, api: GitHubApi, github: GitHubContext, artifact: str, *, unasked: str = ""
    ) -> None:
        self._failure = GitHubError(unasked) if unasked else None
        self._api = api
        self._github = github
        self._artifact = artifact

    def find_merge_base(self, commit: str, branch: str) -> str:
        """The last commit that ``commit`` and a branch share."""
        compared = self._get(f"compare/{quote(branch, safe='')}...{commit}", {"per_page": 1})
        found = _get_nested(compared, "merge_base_commit", "sha")
        if not (isinstance(found, str) and COMMIT_HASH.match(found)):
            raise GitHubError(f"GitHub does not say where {commit} left {branch}")
        return found

    def history(self, commit: str, most: int) -> tuple[str, ...]:
        """``commit`` and what its branch was at before, the newest first; at most ``most``."""
        listed = self._get("commits", {"sha": commit, "per_page": min(most, PAGE_ITEMS)})
        parents = {
            _get_nested(each, "sha"): _get_nested(each, "parents", 0, "sha")
            for each in _list_items(listed)
        }
        found: list[str] = []
        following: Json = commit
        while isinstance(following, str) and following in parents:
            found.append(following)
            following = parents.pop(following)
        return tuple(found)

    def find_by_commit(self, commit: str) -> tuple[WorkflowRun, ...]:
        """The runs of a commit, the newest first."""
        return tuple(self._list_runs({"head_sha": commit}))

    def find_by_branch(self, branch: str) -> tuple[WorkflowRun, ...]:
        """The newest runs on a branch, and those that a merge queue had before it."""
        queries = [{"branch": branch}] if branch else []
        return tuple(
            run for query in [*queries, MERGE_QUEUE_QUERY] for run in self._list_runs(query)
        )

    def download_results(self, run: WorkflowRun, file_name: str, *, limit_bytes: int) -> bytes:
        """A file of what a run kept; of several attempts it is that of the last one.

        Raises:
            GoneError: it has kept none, or keeps it no longer.
            ArchiveError: what it has kept is of no use.
        """
        path, query = f"actions/runs/{run.number}/artifacts", {"name": self._artifact}
        pages = self._call_api(lambda api: [*api.pages(path, query, items="artifacts")])
        listed = [each for each in pages if each.get("name") == self._artifact]
        if not listed:
            raise ArtifactMissingError(f"has no artifact {self._artifact}")
        newest = max(listed, key=lambda each: str(each.get("created_at")))
        if newest.get("expired"):
            raise ArtifactMissingError(f"has an artifact {self._artifact} that has expired")
        path = f"actions/artifacts/{newest.get('id')}/zip"
        content = self._call_api(lambda api: api.download(path, limit_bytes=MAX_ARCHIVE_BYTES))
        return read_zip_member(content, file_name, limit_bytes=limit_bytes)

    def _list_runs(self, query: Mapping[str, str]) -> Iterator[WorkflowRun]:
        if self._failure is None and not self._github.workflow_file:
            raise GitHubError("GITHUB_WORKFLOW_REF names no workflow", hint=OLD_RUNNER)
        path = f"actions/workflows/{quote(self._github.workflow_file, safe='')}/runs"
        listed = self._get(path, {**query, "per_page": PAGE_ITEMS})
        for each in _list_items(_get_nested(listed, "workflow_runs")):
            number, commit = _get_nested(each, "id"), _get_nested(each, "head_sha")
            if isinstance(number, int) and isinstance(commit, str) and self._is_comparable(each):
                yield WorkflowRun(number=number, commit=commit)

    def _get(self, path: str, query: Mapping[str, str | int]) -> Json:
        return self._call_api(lambda api: api.get(path, query))

    def _call_api(self, ask: Callable[[GitHubApi], T]) -> T:
        """What GitHub answers; where it gave no answer once, however often asked, that is all."""
        if self._failure is not None:
            raise self._failure
        try:
            return ask(self._api)
        except GitHubError as error:
            if error.status is None:
                self._failure = error
            raise

    def _is_comparable(self, run: Json) -> bool:
        """Whether a run is another one, and judged what is in this repository."""
        home = _get_nested(run, "repository", "full_name")
        return (
            str(_get_nested(run, "id")) != self._github.run
            and _get_nested(run, "event") in TRUSTED_EVENTS
            and isinstance(home, str)
            and home == _get_nested(run, "head_repository", "full_name")
        )


def _get_nested(value: Json, *steps: str | int) -> Json:
    """What stands below ``steps``, one in the other; None where nothing does."""
    for step in steps:
        match value, step:
            case Mapping(), str():
                value = value.get(step)
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                return None
    return value


def _list_items(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()
