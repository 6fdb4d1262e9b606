"""Results of commits in the cache, as baselines of later runs.

They are as untrusted as any cache that a workflow restores: readers parse them strictly and check
that they belong to the commit that they are stored under.
"""

import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.archives import ArchiveError, make_zip_archive, read_zip_member
from agentci._util.cache_folder import (
    BASELINES_FOLDER,
    ENTRY_PATTERNS,
    CorruptionError,
    detect_corruption,
    find_cache_owner,
    hold_cache_lock,
    init_cache,
    read_cache_file,
)
from agentci._util.files import (
    make_folder,
    remove_path,
    remove_stale_temporaries,
    write_file_atomically,
)
from agentci._util.workspace import Workspace, is_file, is_folder, limit_input
from agentci.config.settings import FetchSettings, Settings
from agentci.errors import FetchError, InputError, UnreachableError
from agentci.github.baseline.git import open_git_repository
from agentci.github.events import TRUSTED_EVENTS, GitHubContext
from agentci.model.result import EXIT_INVALID_INPUT, Report, has_only_errors
from agentci.model.values import Problem, replace
from agentci.reports.json_report import JsonReport
from agentci.reports.merge.read import MAX_REPORT_BYTES, REPORT_NAME, read_report_file
from agentci.reports.run_content import ChunkWriter
from agentci.runner.prepare import find_cache_folder
from agentci.runner.services import Services


def read_baseline_report(
    named: str,
    workspace: Workspace,
    *,
    limit_bytes: int = MAX_REPORT_BYTES,
    outcomes_only: bool = False,
    contents: ChunkWriter | None = None,
) -> Report:
    """Read ``results.json``, or that of a folder.

    Args:
        outcomes_only: leave out explanations of the results, which comparisons do not need.
        contents: where the contents of its cases are stored; None if they are not needed.

    Raises:
        InputError: it does not exist, is too large, or has another version.
    """
    path = workspace.cwd / named
    path = path / REPORT_NAME if is_folder(path) else path
    if not is_file(path):
        raise InputError.from_message(
            f"there is no report {named}", hint=f"name a {REPORT_NAME} or its folder"
        )
    name = workspace.display_path(path)
    found = workspace.resolve_given(path)
    with limit_input(name):
        return read_report_file(
            found,
            file=name,
            limit_bytes=limit_bytes,
            outcomes_only=outcomes_only,
            contents=contents,
        )


def explain_incomplete(report: Report) -> str:
    """Explain why a report is not of a whole run, as the end of a sentence; empty if it is."""
    if not report.complete:
        return "belongs to an interrupted run"
    if report.shard_info is not None:
        return f"covers only {report.shard_info.shard}"
    if not report.results:
        return "has no results"
    return ""


def explain_unevaluated(report: Report) -> str:
    """Explain why a report has nothing to compare with; empty if it has.

    A failed recording leaves an error in each case, and no answers.
    """
    if has_only_errors(report.results):
        return "has no evaluated check: its recording failed, or all checks errored"
    return ""


MAX_CACHED_BASELINES: Final = 100
MAX_BYTES: Final = 256 * 1024**2
MAX_ENTRY_BYTES: Final = 128 * 1024**2

_NAME: Final = "the results"
_REMOVED: Final = "the results were removed"
_DIGITS: Final = 16


class BaselineCacheStats(Struct, frozen=True, kw_only=True):
    """Number of stored results, by whether they can be read."""

    sound: int
    damaged: int
    size_bytes: int


class CachedBaseline(Struct, frozen=True, kw_only=True):
    """The results of one commit.

    Attributes:
        damage: why they cannot be read; None if they can.
    """

    commit: str
    path: Path
    size_bytes: int
    damage: str | None


class BaselineStore:
    """Stores the results of commits; safe for concurrent threads and processes.

    Args:
        folder: the cache.
        repository: identifies the repository; results of others are not found.
        owner: a path whose owner gets the files that are created as root.
        most: maximum number of results; the newest are kept.
    """

    def __init__(
        self,
        folder: Path,
        *,
        repository: str = "",
        owner: Path | None = None,
        most: int = MAX_CACHED_BASELINES,
    ) -> None:
        self._folder = folder
        self._own = folder / BASELINES_FOLDER
        self._repository = repository
        self._owner = owner
        self._most = most

    def find(self, commit: str, series: str) -> bytes | None:
        """Return the verified results of a commit, or None; damaged results are removed.

        Args:
            series: separates the results of several jobs of a commit.

        Raises:
            UnreachableError: too many open files, or not enough memory.
        """
        path = self._path(commit, series)
        with suppress(CorruptionError):
            return self._read(path)
        with hold_cache_lock(self._folder, BASELINES_FOLDER, owner=self._owner):
            try:
                return self._read(path)  # another process may have replaced it
            except CorruptionError:
                remove_path(path)
        return None

    def put(self, commit: str, series: str, results: bytes) -> None:
        """Store the results of a commit and replace earlier ones.

        Raises:
            UnreachableError: they cannot be written.
        """
        try:
            init_cache(self._folder, self._owner)
            with suppress(CorruptionError):
                self._check_folder()
            make_folder(self._own, self._owner)
            remove_stale_temporaries(self._own)
            with hold_cache_lock(self._folder, BASELINES_FOLDER, owner=self._owner):
                path = self._path(commit, series)
                write_file_atomically(
                    path, make_zip_archive(REPORT_NAME, results), owner=self._owner
                )
                self._prune()
        except OSError as error:
            raise UnreachableError(
                f"cannot write to the cache {self._folder}: {error.strerror or error}",
                hint="free disk space, make it writable, or choose another one with --cache-dir",
            ) from None

    def inspect(self) -> BaselineCacheStats:
        """Verify all stored results without removing any."""
        entries = self.entries()
        damaged = sum(each.damage is not None for each in entries)
        size = sum(each.size_bytes for each in entries)
        return BaselineCacheStats(sound=len(entries) - damaged, damaged=damaged, size_bytes=size)

    def entries(self) -> Sequence[CachedBaseline]:
        """List all stored results, verified; none is removed."""
        return [
            CachedBaseline(
                commit=path.name.partition("-")[0],
                path=path,
                size_bytes=_file_size(path),
                damage=self._damage(path),
            )
            for path in self._entries()
        ]

    def _path(self, commit: str, series: str) -> Path:
        names = f"{self._repository}\0{series}"
        digest = sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        return self._own / f"{commit}-{digest}.zip"

    def _read(self, path: Path) -> bytes | None:
        """Read and unpack a file and verify its checksum; None if it does not exist.

        Raises:
            CorruptionError: it was changed.
        """
        self._check_folder()
        content = read_cache_file(path, _NAME, limit_bytes=MAX_ENTRY_BYTES)
        if content is None:
            return None
        try:
            return read_zip_member(content, REPORT_NAME, limit_bytes=MAX_REPORT_BYTES)
        except ArchiveError as error:
            raise CorruptionError(str(error), path) from None

    def _damage(self, path: Path) -> str | None:
        try:
            return None if self._read(path) is not None else _REMOVED
        except CorruptionError as error:
            return str(error)

    def _check_folder(self) -> None:
        """Check that the folder is not a link to another place.

        Raises:
            CorruptionError: it was not a folder; it has been removed.
        """
        with detect_corruption(self._own, "the folder"), suppress(FileNotFoundError):
            if not stat.S_ISDIR(self._own.lstat().st_mode):
                remove_path(self._own)
                raise CorruptionError("it is not a folder", self._own)

    def _entries(self) -> Iterator[Path]:
        with suppress(OSError):
            yield from (
                p
                for p in sorted(self._own.iterdir())
                if ENTRY_PATTERNS[BASELINES_FOLDER].fullmatch(p.name)
            )

    def _prune(self) -> None:
        """Remove the oldest results until the limits hold."""
        newest = sorted(self._entries(), key=_modified_at, reverse=True)
        size = 0
        for index, path in enumerate(newest):
            size += _file_size(path)
            if index >= self._most or (index and size > MAX_BYTES):
                remove_path(path)


def _modified_at(path: Path) -> tuple[float, str]:
    return path.lstat().st_mtime, path.name


def _file_size(path: Path) -> int:
    with suppress(OSError):
        return path.lstat().st_size
    return 0


def save_baseline(
    report: Report, settings: Settings, services: Services, github: GitHubContext
) -> Report:
    """Save a complete report of a commit; returns it with a note if saving failed."""
    try:
        if _is_complete(report) and _matches_commit(report, services, github):
            shown = services.variables.redactor.redact_value(report)
            content = "".join(JsonReport().render(shown)).encode()
            store = open_baseline_store(settings.fetch_settings, services)
            store.put(report.commit, settings.baseline_artifact, content)
    except (FetchError, InputError) as error:
        message = f"the results are not saved as a baseline for later runs: {error}"
        problem = Problem(message=message, severity="note")
        return replace(report, problems=(*report.problems, problem))
    return report


def open_baseline_store(access: FetchSettings, services: Services) -> BaselineStore:
    """Open the results in the cache.

    Raises:
        InputError: a pull request or another user may have written to the cache.
    """
    folder = find_cache_folder(access, services)
    return BaselineStore(folder, repository=services.repository, owner=find_cache_owner(folder))


def _is_complete(report: Report) -> bool:
    return report.decision.exit_code != EXIT_INVALID_INPUT and not explain_incomplete(report)


def _matches_commit(report: Report, services: Services, github: GitHubContext) -> bool:
    """Whether the evaluated files are those of the commit in the repository.

    Those of a pull request are not: they are from a merge commit that is on no branch, with changes
    that may be unreviewed. Nor are those of another commit that a workflow checks out.
    """
    if github.active:
        return github.event in TRUSTED_EVENTS and report.commit == github.sha
    return report.commit != "" and not open_git_repository(services).has_changes()
