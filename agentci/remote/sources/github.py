"""Source of evaluators in GitHub repositories, by default the community's."""

from collections.abc import Mapping, Sequence
from typing import Final

from agentci._util.parallel import parallel_map
from agentci.errors import PermanentFetchError, UnreachableError
from agentci.model.program import CatalogEntry, ProgramFile, ProgramSnapshot, RemoteProgram
from agentci.model.values import replace
from agentci.remote.sources.github_client import (
    EXECUTABLE,
    FOLDER,
    GitHubSourceClient,
    GitTreeEntry,
    check_regular_file,
    compute_blob_sha,
    make_root_entry,
    walk_tree,
)
from agentci.remote.sources.source import SourceContext
from agentci.remote.sources.validation import (
    COMMIT,
    INDEX_NAME,
    MAX_INDEX_BYTES,
    SizeBudget,
    check_paths,
    check_ref,
    check_repository,
    check_revision,
    find_ref_problem,
    has_shebang,
    make_not_found_error,
    make_snapshot,
    normalize_sha256,
    parse_index,
    quote_path,
    select_program_files,
    split_ref,
)

NAME: Final = "github"
DEFAULT_REPOSITORY: Final = "agentevals-dev/evaluators"
DEFAULT_BRANCH: Final = "main"

# A file whose digest differs from git's is fetched a second time: the transfer may have been cut
# off.
_TRIES: Final = 2


class GitHubSource:
    """Fetches programs with their folders at one commit, verified by git's digests."""

    def __init__(self, context: SourceContext) -> None:
        self._client = GitHubSourceClient(context)
        self._repository = context.repository or DEFAULT_REPOSITORY
        self._branch = context.branch or DEFAULT_BRANCH

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """Default to the community's repository and its branch; see :class:`Source`."""
        repository = program.repository or self._repository
        revision = program.revision or self._branch
        if COMMIT.fullmatch(revision.lower()):
            revision = revision.lower()
        check_repository(repository)
        check_revision(revision)
        check_ref(program.ref)
        sha256 = program.sha256 and normalize_sha256(program.sha256)
        return replace(program, repository=repository, revision=revision, sha256=sha256)

    def resolve(self, program: RemoteProgram) -> str:
        """Find the commit of a branch or tag, once per run; see :class:`Source`."""
        if COMMIT.fullmatch(program.revision):
            return program.revision
        return self._client.find_commit(program.repository, program.revision)

    def pin(self, program: RemoteProgram, commit: str) -> str | None:
        """Return a ``rev`` with the commit, unless the config has one; see :class:`Source`."""
        return None if COMMIT.fullmatch(program.revision) else f"rev: {commit}"

    def fetch(
        self, program: RemoteProgram, commit: str, *, paths: Sequence[str]
    ) -> ProgramSnapshot:
        """Fetch the folder of the program; see :class:`Source`.

        With ``paths``, no listing is fetched: the caller has the digests and must verify them. File
        modes are then unknown, so files that begin with ``#!`` are executable.
        """
        if not COMMIT.fullmatch(commit):
            raise PermanentFetchError(
                f"{quote_path(commit)} is not a commit", hint="a commit has 40 hexadecimal digits"
            )
        if paths:
            files = self._fetch_named(program, commit, paths)
        else:
            files = self._fetch_listed(program, commit)
        return make_snapshot(split_ref(program.ref)[1], files)

    def catalogue(self) -> Sequence[CatalogEntry]:
        """Return the evaluators in the index of the configured or community repository."""
        check_repository(self._repository)
        check_revision(self._branch)
        where = f"{INDEX_NAME} of {self._repository} ({self._branch})"
        content = self._client.load_file(
            self._repository, self._branch, INDEX_NAME, limit_bytes=MAX_INDEX_BYTES
        )
        if content is None:
            raise PermanentFetchError(f"{where} not found", hint=self._client.access_hint())
        return parse_index(
            content, name=where, source=NAME, is_usable=lambda path: find_ref_problem(path) is None
        )

    def _fetch_named(
        self, program: RemoteProgram, commit: str, paths: Sequence[str]
    ) -> Mapping[str, ProgramFile]:
        folder, name = split_ref(program.ref)
        check_paths(paths)
        if name not in paths:
            raise PermanentFetchError(
                f"{quote_path(name)} is not among the files of {quote_path(program.ref)}"
            )
        expected, budget = SizeBudget(), SizeBudget()
        for path in paths:
            expected.add(path, 0)

        def fetch_one(path: str) -> ProgramFile:
            whole = f"{folder}/{path}" if folder else path
            content = self._client.load_file(program.repository, commit, whole)
            if content is None:
                message = f"{quote_path(whole)} is not in {program.repository} at {commit}"
                raise PermanentFetchError(message, hint=self._client.access_hint())
            budget.add(path, len(content))
            return ProgramFile(content=content, executable=has_shebang(content))

        return dict(zip(paths, parallel_map(fetch_one, paths), strict=True))

    def _fetch_listed(self, program: RemoteProgram, commit: str) -> Mapping[str, ProgramFile]:
        entries = self._list_entries(program, commit)
        check_paths(entries)
        budget = SizeBudget()
        for path, entry in entries.items():
            check_regular_file(entry)
            budget.add(path, entry.size)

        def fetch_one(entry: GitTreeEntry) -> ProgramFile:
            content = self._load_verified(program.repository, commit, entry)
            return ProgramFile(content=content, executable=entry.mode == EXECUTABLE)

        fetched = parallel_map(fetch_one, list(entries.values()))
        return dict(zip(entries, fetched, strict=True))

    def _list_entries(self, program: RemoteProgram, commit: str) -> Mapping[str, GitTreeEntry]:
        """List the files to fetch, by path in the program's folder."""
        tree = self._client.list_tree(program.repository, commit, recursive=True)
        found = tree.entries
        if tree.truncated:
            found = walk_tree(
                make_root_entry(commit),
                split_ref(program.ref)[0],
                lambda folder: self._client.list_folder(program.repository, folder),
            )
        listed = {entry.path: entry for entry in found if entry.mode != FOLDER}
        if program.ref not in listed:
            raise make_not_found_error(program.ref, f"{program.repository} at {commit}", listed)
        return {
            path: listed[whole] for path, whole in select_program_files(program.ref, listed).items()
        }

    def _load_verified(self, repository: str, commit: str, entry: GitTreeEntry) -> bytes:
        for _ in range(_TRIES):
            content = self._client.load_file(repository, commit, entry.path)
            if content is None:
                message = (
                    f"{quote_path(entry.path)} is listed in {repository}, but cannot be downloaded"
                )
                raise UnreachableError(message, hint=self._client.access_hint())
            if compute_blob_sha(content) == entry.sha:
                return content
        raise UnreachableError(
            f"{quote_path(entry.path)} of {repository} has other content than in git",
            hint="a proxy or a captive portal may have answered instead of GitHub",
        )
