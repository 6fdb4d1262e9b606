"""The files of a commit as a folder: those that a pull request is merged into.

``BaseFilesFetcher`` writes them from the checkout's git repository, else from GitHub's API, once
per run and only if they are needed. Nothing of the commit is run, and git applies no filters.
"""

import os
import shutil
import tempfile
import weakref
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.archives import ArchiveError, iterate_tar_members
from agentci._util.files import FILE_MODE, PROGRAM_MODE
from agentci._util.parallel import OncePerKey, parallel_map
from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name, shorten_commit
from agentci._util.workspace import Workspace, resolve_inside, resolve_path
from agentci.config.settings import Settings
from agentci.errors import GitHubError, UnreachableError
from agentci.github.baseline.find import (
    OFFLINE,
    OUTSIDE_WORKFLOW,
    NoBaselineError,
    find_base,
    format_with_hint,
    make_workflow_runs,
)
from agentci.github.baseline.git import open_git_repository
from agentci.github.events import Workflow, find_repository_folder, get_nested
from agentci.remote.sources.github import (
    EXECUTABLE,
    FOLDER,
    LINK,
    SUBMODULE,
    GitTreeEntry,
    compute_blob_sha,
    parse_tree_entries,
)
from agentci.runner.services import Services

MAX_FILES: Final = 20_000
MAX_TOTAL_BYTES: Final = 256 * 1024**2
# The same files in an archive, with their headers.
MAX_ARCHIVE_BYTES: Final = 320 * 1024**2
# Files that GitHub leaves out of archives, or changes in them, are downloaded one by one.
MAX_SINGLE_FILES: Final = 100

FilesSource: TypeAlias = Literal["git", "github"]
# Yields the object name and the content of entries.
_ReadContents: TypeAlias = Callable[[Sequence[GitTreeEntry]], Iterable[tuple[str, bytes]]]

_MIB: Final = 1024**2
_NO_BASE: Final = "the event `{event}` has no base commit"


class NoBaseFilesError(Exception):
    """The files of a commit are not available; the message says why, without a full stop."""


class BaseFiles(Struct, frozen=True, kw_only=True):
    """The files of a commit, in a temporary folder until the end of the process.

    Submodules and links that lead out of the repository are left out.

    Attributes:
        source: the git repository of the checkout, or GitHub's API.
        workspace: the same folders as the run's workspace, with the files of the commit: a path
            relative to one of them is the same file in the other. ``workspace.root`` is the
            temporary folder. Files of the run that are not in git are not in it.
    """

    commit: str
    source: FilesSource
    workspace: Workspace


class BaseFilesFetcher:
    """Fetches the files of commits, each at most once; safe to share between threads.

    Args:
        settings: with ``offline``, GitHub is not asked.
        services: with the run's workspace.
    """

    def __init__(self, settings: Settings, services: Services, workflow: Workflow) -> None:
        self._settings = settings
        self._services = services
        self._workflow = workflow
        self._fetched: OncePerKey[str, BaseFiles] = OncePerKey()

    def fetch_base(self, evaluated: str) -> BaseFiles:
        """Fetch the files of the base commit, found as for ``baseline: base``.

        Outside a workflow, the base of the main branch is its own last commit: its files are those
        without uncommitted changes.

        Args:
            evaluated: the commit of this run; empty if unknown.

        Raises:
            NoBaseFilesError: there is no base commit, or its files are not available.
        """
        if not evaluated:
            raise NoBaseFilesError("the commit of this run is unknown")
        github = self._workflow.context
        runs = make_workflow_runs(self._settings, self._workflow)
        try:
            base, _ = find_base(evaluated, runs, open_git_repository(self._services), github)
        except NoBaselineError as error:
            raise NoBaseFilesError(str(error)) from None
        if github.active and base.is_any_earlier:
            raise NoBaseFilesError(_NO_BASE.format(event=github.event))
        return self.fetch(base.commit)

    def fetch(self, commit: str) -> BaseFiles:
        """Fetch the files of a commit of the workflow's repository, and of the checkout.

        Raises:
            NoBaseFilesError: neither has it, it has too many files, or they are too large.
        """
        return self._fetched.get_or_compute(commit, lambda: self._fetch(commit))

    def _fetch(self, commit: str) -> BaseFiles:
        try:
            scratch = resolve_path(Path(tempfile.mkdtemp(prefix="agentci-base-")))
        except OSError as error:
            message = f"there is no place for a temporary folder: {error.strerror}"
            raise NoBaseFilesError(message) from None
        weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        misses: list[str] = []
        try:
            return self._write_from_git(commit, scratch)
        except UnreachableError as error:
            misses.append(str(error))
        try:
            return self._write_from_github(commit, scratch)
        except (GitHubError, ArchiveError) as error:
            misses.append(format_with_hint(error))
        what = f"the files of {shorten_commit(commit)} are not available"
        raise NoBaseFilesError(f"{what}: {'; '.join(misses)}")

    def _write_from_git(self, commit: str, scratch: Path) -> BaseFiles:
        repository = open_git_repository(self._services)
        entries = repository.list_files(commit)
        read = partial(repository.read_contents, scratch=scratch)
        return self._write(entries, read, commit, source="git", root=scratch / "git")

    def _write_from_github(self, commit: str, scratch: Path) -> BaseFiles:
        if not self._workflow.context.active:
            raise GitHubError(OUTSIDE_WORKFLOW)
        if self._settings.fetch_settings.offline:
            raise GitHubError(OFFLINE)
        entries = _list_github_files(commit, self._workflow)
        read = partial(_read_github_contents, commit=commit, workflow=self._workflow)
        return self._write(entries, read, commit, source="github", root=scratch / "github")

    def _write(
        self,
        entries: Sequence[GitTreeEntry],
        read: _ReadContents,
        commit: str,
        *,
        source: FilesSource,
        root: Path,
    ) -> BaseFiles:
        real = self._services.workspace
        folder = find_repository_folder(real) or real.root
        _write_files(entries, read, root / folder.relative_to(real.root), commit)
        return BaseFiles(commit=commit, source=source, workspace=_move_workspace(real, root))


def _move_workspace(workspace: Workspace, root: Path) -> Workspace:
    """Return the same folders below another root; a working directory outside becomes the root."""
    inside = workspace.cwd.is_relative_to(workspace.root)
    cwd = root / workspace.cwd.relative_to(workspace.root) if inside else root
    return Workspace(root=root, cwd=cwd)


def _list_github_files(commit: str, workflow: Workflow) -> tuple[GitTreeEntry, ...]:
    """List the files of a commit.

    Raises:
        GitHubError: the request failed, or GitHub does not list all files.
    """
    tree = workflow.api.get(f"git/trees/{commit}", {"recursive": "1"})
    if get_nested(tree, "truncated") is not False:
        raise GitHubError("GitHub does not list all files of the commit: they are too many")
    try:
        listed = tuple(parse_tree_entries(get_nested(tree, "tree")))
    except (KeyError, TypeError, AttributeError):
        raise GitHubError("GitHub returned an invalid list of files") from None
    return tuple(entry for entry in listed if entry.mode != FOLDER)


def _read_github_contents(
    entries: Sequence[GitTreeEntry], *, commit: str, workflow: Workflow
) -> Iterator[tuple[str, bytes]]:
    """Yield contents from the archive of a commit, and single files that are not in it.

    ``.gitattributes`` can exclude files from archives and change them there, so each file is found
    by its digest.

    Raises:
        GitHubError: a request failed, or too many files are not in the archive.
        ArchiveError: the archive is damaged or too large.
    """
    missing = {entry.sha: entry for entry in entries}
    archive = workflow.api.download(f"tarball/{commit}", limit_bytes=MAX_ARCHIVE_BYTES)
    for member in iterate_tar_members(archive, limit_bytes=MAX_ARCHIVE_BYTES):
        content = b"" if member.problem or member.is_folder else member.read(MAX_TOTAL_BYTES)
        sha = compute_blob_sha(content)
        if missing.pop(sha, None):
            yield sha, content
    if len(missing) > MAX_SINGLE_FILES:
        count = format_count(len(missing), "file")
        raise GitHubError(f"GitHub's archive of the commit lacks {count} (see `.gitattributes`)")

    def load(entry: GitTreeEntry) -> tuple[str, bytes]:
        return entry.sha, _load_github_content(entry, workflow)

    yield from parallel_map(load, list(missing.values()))


def _load_github_content(entry: GitTreeEntry, workflow: Workflow) -> bytes:
    blob = workflow.api.get(f"git/blobs/{entry.sha}")
    try:
        content = b64decode(str(get_nested(blob, "content")))
    except ValueError:
        content = b""
    if compute_blob_sha(content) != entry.sha:
        raise GitHubError(f"GitHub returned other content of {quote_name(entry.path)} than git has")
    return content


def _write_files(
    entries: Sequence[GitTreeEntry], read: _ReadContents, folder: Path, commit: str
) -> None:
    """Write the files of a commit; links are written last, so that nothing is written through one.

    Raises:
        NoBaseFilesError: a limit is exceeded, a path is unsafe, or the disk is full.
    """
    entries = [entry for entry in entries if entry.mode != SUBMODULE]
    if reason := _find_problem(entries):
        raise NoBaseFilesError(f"{shorten_commit(commit)} {reason}")
    by_sha: dict[str, list[GitTreeEntry]] = {}
    for entry in entries:
        by_sha.setdefault(entry.sha, []).append(entry)
    links: dict[Path, bytes] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for sha, content in read(entries):
            for entry in by_sha[sha]:
                path = folder / entry.path
                if entry.mode == LINK:
                    links[path] = content
                else:
                    _write_file(path, content, is_executable=entry.mode == EXECUTABLE)
        _make_links(links, folder)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        what = f"the files of {shorten_commit(commit)} cannot be written to {folder}"
        raise NoBaseFilesError(f"{what}: {why}") from None


def _find_problem(entries: Sequence[GitTreeEntry]) -> str:
    """Explain why files are not written, as the end of a sentence; empty if they are."""
    if len(entries) > MAX_FILES:
        return f"has more than {MAX_FILES:,} files"
    if sum(entry.size for entry in entries) > MAX_TOTAL_BYTES:
        return f"has more than {MAX_TOTAL_BYTES // _MIB} MiB of files"
    paths = {entry.path for entry in entries}
    unsafe = next((path for path in paths if not _is_safe(path, paths)), None)
    return "" if unsafe is None else f"has a file with the unsafe path {quote_name(unsafe)}"


def _is_safe(path: str, paths: Collection[str]) -> bool:
    """Whether a path stays in its folder, is not below a file or link, and is not git's data."""
    is_plain = {"", ".", "..", ".git"}.isdisjoint(path.lower().split("/"))
    return is_plain and not any(str(each) in paths for each in PurePosixPath(path).parents)


def _write_file(path: Path, content: bytes, *, is_executable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = PROGRAM_MODE if is_executable else FILE_MODE
    with open(os.open(path, flags, mode), "wb") as file:  # noqa: PTH123 (opens a file descriptor)
        file.write(content)


def _make_links(links: dict[Path, bytes], folder: Path) -> None:
    """Make links, and remove those that lead out of the folder."""
    for path, target in links.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.fsdecode(target))
    for path in links:
        if resolve_inside(path, (folder,)) is None:
            path.unlink()
