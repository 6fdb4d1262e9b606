"""Earlier runs of a workflow and their artifacts, from GitHub's API."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import quote

from msgspec import Struct

from agentci._util.archives import read_zip_member
from agentci._util.git_files import COMMIT_HASH
from agentci.errors import GitHubError
from agentci.github.api_client import PAGE_ITEMS, GitHubApi
from agentci.github.context import GitHubContext
from agentci.github.events import TRUSTED_EVENTS, get_nested
from agentci.model.json import Json

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
