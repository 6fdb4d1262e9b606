"""Source of evaluators in GitHub repositories, by default the community's.

Its client reads commits, git trees and files of GitHub's API.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from agentci._util.http import HttpResponse
from agentci._util.parallel import OncePerKey, parallel_map
from agentci._util.text import truncate
from agentci.errors import FetchError, PermanentFetchError, UnreachableError
from agentci.model.program import CatalogEntry, ProgramFile, ProgramSnapshot, RemoteProgram
from agentci.model.values import replace
from agentci.remote.sources import source
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

FOLDER: Final = "040000"
EXECUTABLE: Final = "100755"

LINK: Final = "120000"
SUBMODULE: Final = "160000"


class GitTreeEntry(Struct, frozen=True, kw_only=True):
    """One file or folder of a git tree.

    Attributes:
        path: relative to the listed tree, separated by ``/``.
        mode: six octal digits, as in git.
        sha: git's object name of its content.
        size: in bytes; 0 for folders.
    """

    path: str
    mode: str
    sha: str
    size: int


class GitTree(Struct, frozen=True, kw_only=True):
    """A listing of a git tree.

    Attributes:
        truncated: whether the server omitted entries of a long listing.
    """

    entries: tuple[GitTreeEntry, ...]
    truncated: bool


def make_root_entry(commit: str) -> GitTreeEntry:
    """Make an entry for the root folder of a commit, which no listing contains."""
    return GitTreeEntry(path="", mode=FOLDER, sha=commit, size=0)


def walk_tree(
    root: GitTreeEntry, folder: str, list_folder: Callable[[GitTreeEntry], Sequence[GitTreeEntry]]
) -> tuple[GitTreeEntry, ...]:
    """List the folders on the way to ``folder``, and everything below it.

    Use it for repositories that are too large for one listing. For the root (""), list only its own
    entries.

    Raises:
        PermanentFetchError: there are too many folders below it.
    """
    here = list_folder(root)
    found = list(here)
    if not folder:
        return tuple(found)
    for step in (*reversed(PurePosixPath(folder).parents), PurePosixPath(folder))[1:]:
        way = [entry for entry in here if entry.path == step.as_posix() and entry.mode == FOLDER]
        here = list_folder(way[0]) if way else ()
        found += here
    left = [entry for entry in here if entry.mode == FOLDER]
    walked = 0
    while left:
        walked += 1
        if walked > source.MAX_FILES:
            where = quote_path(folder)
            raise PermanentFetchError(f"{where} contains more than {source.MAX_FILES} folders")
        here = list_folder(left.pop())
        found += here
        left += [entry for entry in here if entry.mode == FOLDER]
    return tuple(found)


def check_regular_file(entry: GitTreeEntry) -> None:
    """Reject symbolic links and submodules, whose content is elsewhere.

    Raises:
        PermanentFetchError: the entry is one of them.
    """
    if entry.mode == LINK:
        message = f"{quote_path(entry.path)} is a symbolic link"
        raise PermanentFetchError(message, hint="replace it by the file itself")
    if entry.mode == SUBMODULE:
        message = f"{quote_path(entry.path)} is a submodule"
        raise PermanentFetchError(message, hint="copy its files into the program's folder")


def compute_blob_sha(content: bytes) -> str:
    """Compute git's object name of a file's content."""
    named = b"blob %d\0%b" % (len(content), content)
    return hashlib.sha1(named, usedforsecurity=False).hexdigest()


def parse_tree_entries(data: Any) -> Iterator[GitTreeEntry]:
    """Parse the member ``tree`` of GitHub's response for a git tree.

    Raises:
        KeyError, TypeError, AttributeError: it has another shape.
    """
    for each in data:
        entry = GitTreeEntry(
            path=each["path"], mode=each["mode"], sha=each["sha"], size=each.get("size") or 0
        )
        if not all(isinstance(text, str) for text in (entry.path, entry.mode, entry.sha)):
            raise TypeError("`path`, `mode` or `sha` is not a string")
        if type(entry.size) is not int or entry.size < 0:
            raise TypeError("`size` is not a number of bytes")
        yield entry


# GitHub truncates recursive listings at 7 MB; the listing of a single folder may be larger.
MAX_TREE_BYTES: Final = 16 * 1024**2
MAX_COMMIT_BYTES: Final = 64 * 1024

_JSON: Final = "application/vnd.github+json"
_RAW: Final = "application/vnd.github.raw+json"
_SHA: Final = "application/vnd.github.sha"

_VARIABLES: Final = "AGENTEVALS_GITHUB_TOKEN or GITHUB_TOKEN"
_SET_TOKEN_HINT: Final = f"for a private repository set {_VARIABLES} to a token that may read it"
_TOKEN_HINT: Final = f"the token in {_VARIABLES} must be valid and able to read the repository"
_MAX_MESSAGE_SHOWN: Final = 200


class GitHubSourceClient:
    """Client for github.com or a GitHub Enterprise server.

    Each commit and each tree is requested once.
    """

    def __init__(self, context: source.SourceContext) -> None:
        self._context = context
        self._commits: OncePerKey[tuple[str, str], str] = OncePerKey()
        self._trees: OncePerKey[tuple[str, str, bool], GitTree] = OncePerKey()

    def find_commit(self, repository: str, revision: str) -> str:
        """Return the commit that ``revision`` currently points to.

        Raises:
            FetchError: it does not exist, or GitHub cannot be reached.
        """
        key = (repository, revision)
        return self._commits.get_or_compute(key, lambda: self._find_commit(repository, revision))

    def list_tree(self, repository: str, sha: str, *, recursive: bool) -> GitTree:
        """List the tree of a commit, or the tree ``sha`` itself.

        Raises:
            FetchError: it does not exist, or GitHub cannot be reached.
        """
        key = (repository, sha, recursive)
        return self._trees.get_or_compute(key, lambda: self._list_tree(repository, sha, recursive))

    def list_folder(self, repository: str, tree: GitTreeEntry) -> tuple[GitTreeEntry, ...]:
        """List the folder ``tree`` without its subfolders; paths start with its own path.

        Raises:
            FetchError: it does not exist, GitHub cannot be reached, or GitHub truncates the
                listing.
        """
        listed = self.list_tree(repository, tree.sha, recursive=False)
        if listed.truncated:
            raise PermanentFetchError(
                f"the folder {quote_path(tree.path or '/')} of {repository} contains too "
                "many files to list"
            )
        start = f"{tree.path}/" if tree.path else ""
        return tuple(replace(entry, path=start + entry.path) for entry in listed.entries)

    def load_file(
        self, repository: str, revision: str, path: str, *, limit_bytes: int = source.MAX_FILE_BYTES
    ) -> bytes | None:
        """Return the content of a file; None if it does not exist or is not visible to the token.

        Raises:
            FetchError: GitHub cannot be reached or returns an error.
        """
        base, escaped = self._context.github_raw, quote(path)
        if base:
            url, accept = f"{base}/{repository}/{quote(revision)}/{escaped}", "*/*"
        else:
            url = self._build_url(repository, f"contents/{escaped}?ref={quote(revision, safe='')}")
            accept = _RAW
        response = self._get(url, accept, limit_bytes)
        if response.status == 404:  # noqa: PLR2004 (not found)
            return None
        return self._require_content(response, url, f"{quote_path(path)} of {repository}")

    def access_hint(self) -> str:
        """Return a hint for content that is not found although it should exist."""
        return _TOKEN_HINT if self._token(self._context.github_api) else _SET_TOKEN_HINT

    def _find_commit(self, repository: str, revision: str) -> str:
        url = self._build_url(repository, f"commits/{quote(revision, safe='')}")
        response = self._get(url, _SHA, MAX_COMMIT_BYTES)
        if response.status == 404:  # noqa: PLR2004 (not found)
            message = (
                f"{repository} does not exist, is not accessible, or has no {quote_path(revision)}"
            )
            raise PermanentFetchError(message, hint=self.access_hint())
        if response.status == 422:  # noqa: PLR2004 (unknown revision)
            raise PermanentFetchError(
                f"{repository} has no branch, tag or commit {quote_path(revision)}",
                hint="check `branch` or `rev` in the config",
            )
        what = f"{quote_path(revision)} of {repository}"
        commit = self._require_content(response, url, what).decode("utf-8", "replace").strip()
        if not COMMIT.fullmatch(commit):
            raise UnreachableError(f"{source.format_host(url)} returned no commit for {what}")
        return commit

    def _list_tree(self, repository: str, sha: str, recursive: bool) -> GitTree:  # noqa: FBT001
        url = self._build_url(repository, f"git/trees/{sha}{'?recursive=1' if recursive else ''}")
        response = self._get(url, _JSON, MAX_TREE_BYTES)
        if response.status in {404, 422}:
            message = f"{repository} does not exist, is not accessible, or has no commit {sha}"
            raise PermanentFetchError(message, hint=self.access_hint())
        content = self._require_content(response, url, f"the files of {repository}")
        try:
            data = json.loads(content)
            entries = tuple(parse_tree_entries(data["tree"]))
            return GitTree(entries=entries, truncated=bool(data.get("truncated")))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UnreachableError(
                f"{source.format_host(url)} returned an invalid file list of {repository}"
            ) from None

    def _build_url(self, repository: str, path: str) -> str:
        return f"{self._context.github_api}/repos/{repository}/{path}"

    def _get(self, url: str, accept: str, limit_bytes: int) -> HttpResponse:
        headers = {"Accept": accept}
        if token := self._token(url):
            headers["Authorization"] = f"Bearer {token}"
        return self._context.http.get(url, limit_bytes=limit_bytes, headers=headers)

    def _token(self, url: str) -> str:
        """Return the token for the host and port of ``url``; "" if there is none."""
        return self._context.tokens.get(source.parse_host(url), "")

    def _require_content(self, response: HttpResponse, url: str, what: str) -> bytes:
        if response.status != 200:  # noqa: PLR2004 (the only status with content)
            raise self._make_error(response, url, what)
        return response.content

    def _make_error(self, response: HttpResponse, url: str, what: str) -> FetchError:
        host, has_token = source.format_host(url), bool(self._token(url))
        reason = _parse_message(response)
        if response.status == 401:  # noqa: PLR2004 (missing or invalid token)
            return UnreachableError(
                f"{host} requires a valid token for {what}{reason}", hint=_TOKEN_HINT
            )
        if response.status == 403:  # noqa: PLR2004 (no permission)
            hint = _TOKEN_HINT if has_token else _SET_TOKEN_HINT
            return UnreachableError(f"{host} denies read access to {what}{reason}", hint=hint)
        message = f"{host} returned status {response.status} for {what}{reason}"
        kind = PermanentFetchError if 400 <= response.status < 500 else UnreachableError  # noqa: PLR2004
        return kind(message)


def _parse_message(response: HttpResponse) -> str:
    """Return the message of GitHub's error response, in parentheses; "" if there is none."""
    try:
        reason = json.loads(response.content)["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return (
        f" ({truncate.short(' '.join(reason.split()), _MAX_MESSAGE_SHOWN)})"
        if isinstance(reason, str)
        else ""
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
