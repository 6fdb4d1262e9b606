"""Evaluators in repositories on GitHub, the community's by default."""

from collections.abc import Mapping, Sequence
from typing import Final

from agentci._util.parallel import side_by_side
from agentci.errors import RefusedError, UnreachableError
from agentci.model.program import Listing, ProgramFile, RemoteProgram, Snapshot
from agentci.model.values import replace
from agentci.remote.sources.contents import (
    Tally,
    below,
    check_paths,
    is_script,
    missing,
    snapshot_of,
    split,
)
from agentci.remote.sources.git_tree import (
    EXECUTABLE,
    FOLDER,
    Entry,
    blob_sha,
    check_kind,
    root_of,
    walk,
)
from agentci.remote.sources.github_server import GitHubServer
from agentci.remote.sources.index_yaml import INDEX, MAX_INDEX_BYTES, parse_index
from agentci.remote.sources.refs import (
    COMMIT,
    check_ref,
    check_repository,
    check_revision,
    normal_sha256,
    shown,
    why_refused,
)
from agentci.remote.sources.source import Surroundings

NAME: Final = "github"
REPOSITORY: Final = "agentevals-dev/evaluators"
BRANCH: Final = "main"

# What differs from git's own name of it is asked for once more: it may have been cut on its way.
_TRIES: Final = 2


class GitHubSource:
    """Fetches programs with their folders, at one commit, verified by git's own digests."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._server = GitHubServer(surroundings)
        self._repository = surroundings.repository or REPOSITORY
        self._branch = surroundings.branch or BRANCH

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """Fill in the community's repository and its branch; see :class:`Source`."""
        repository = program.repository or self._repository
        revision = program.revision or self._branch
        if COMMIT.fullmatch(revision.lower()):
            revision = revision.lower()
        check_repository(repository)
        check_revision(revision)
        check_ref(program.ref)
        sha256 = program.sha256 and normal_sha256(program.sha256)
        return replace(program, repository=repository, revision=revision, sha256=sha256)

    def resolve(self, program: RemoteProgram) -> str:
        """Find the commit of a branch or tag, once a run; see :class:`Source`."""
        if COMMIT.fullmatch(program.revision):
            return program.revision
        return self._server.find_commit(program.repository, program.revision)

    def pin(self, program: RemoteProgram, commit: str) -> str | None:
        """Name the commit in place of a branch; see :class:`Source`."""
        return None if COMMIT.fullmatch(program.revision) else f"rev: {commit}"

    def fetch(self, program: RemoteProgram, commit: str, *, paths: Sequence[str]) -> Snapshot:
        """Fetch the folder of the program; see :class:`Source`.

        With ``paths`` there is no listing to compare with: whoever names them knows their digests.
        Neither are there modes: what begins with ``#!`` counts as executable.
        """
        if not COMMIT.fullmatch(commit):
            raise RefusedError(f"{shown(commit)} is no commit", hint="it has 40 digits")
        if paths:
            files = self._fetch_named(program, commit, paths)
        else:
            files = self._fetch_listed(program, commit)
        return snapshot_of(split(program.ref)[1], files)

    def catalogue(self) -> Sequence[Listing]:
        """All evaluators of the community's index, or of the one in its place."""
        check_repository(self._repository)
        check_revision(self._branch)
        where = f"{INDEX} of {self._repository} ({self._branch})"
        content = self._server.load_file(
            self._repository, self._branch, INDEX, limit_bytes=MAX_INDEX_BYTES
        )
        if content is None:
            raise RefusedError(f"there is no {where}", hint=self._server.hint())
        return parse_index(
            content, name=where, source=NAME, is_usable=lambda path: why_refused(path) is None
        )

    def _fetch_named(
        self, program: RemoteProgram, commit: str, paths: Sequence[str]
    ) -> Mapping[str, ProgramFile]:
        folder, name = split(program.ref)
        check_paths(paths)
        if name not in paths:
            raise RefusedError(f"{shown(name)} is not among the files of {shown(program.ref)}")
        expected, tally = Tally(), Tally()
        for path in paths:
            expected.add(path, 0)

        def fetch_one(path: str) -> ProgramFile:
            whole = f"{folder}/{path}" if folder else path
            content = self._server.load_file(program.repository, commit, whole)
            if content is None:
                message = f"{shown(whole)} is not in {program.repository} at {commit}"
                raise RefusedError(message, hint=self._server.hint())
            tally.add(path, len(content))
            return ProgramFile(content=content, executable=is_script(content))

        return dict(zip(paths, side_by_side(fetch_one, paths), strict=True))

    def _fetch_listed(self, program: RemoteProgram, commit: str) -> Mapping[str, ProgramFile]:
        entries = self._entries(program, commit)
        check_paths(entries)
        tally = Tally()
        for path, entry in entries.items():
            check_kind(entry)
            tally.add(path, entry.size)

        def fetch_one(entry: Entry) -> ProgramFile:
            content = self._verified(program.repository, commit, entry)
            return ProgramFile(content=content, executable=entry.mode == EXECUTABLE)

        fetched = side_by_side(fetch_one, list(entries.values()))
        return dict(zip(entries, fetched, strict=True))

    def _entries(self, program: RemoteProgram, commit: str) -> Mapping[str, Entry]:
        """The files that are fetched, by their path in the program's folder."""
        tree = self._server.list_tree(program.repository, commit, recursive=True)
        found = tree.entries
        if tree.truncated:
            found = walk(
                root_of(commit),
                split(program.ref)[0],
                lambda folder: self._server.list_folder(program.repository, folder),
            )
        listed = {entry.path: entry for entry in found if entry.mode != FOLDER}
        if program.ref not in listed:
            raise missing(program.ref, f"{program.repository} at {commit}", listed)
        return {path: listed[whole] for path, whole in below(program.ref, listed).items()}

    def _verified(self, repository: str, commit: str, entry: Entry) -> bytes:
        for _ in range(_TRIES):
            content = self._server.load_file(repository, commit, entry.path)
            if content is None:
                message = f"{shown(entry.path)} is listed in {repository}, but cannot be loaded"
                raise UnreachableError(message, hint=self._server.hint())
            if blob_sha(content) == entry.sha:
                return content
        raise UnreachableError(
            f"{shown(entry.path)} of {repository} came with another content than git has",
            hint="a proxy or a portal may answer in place of GitHub",
        )
