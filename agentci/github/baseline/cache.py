"""Results of earlier runs in the cache, by the commit that they are of: each whole, or not there.

They are no more to be trusted than the rest of a cache that a workflow restores: who reads them
reads them strictly, and sees whether they are of the commit that they lie under.
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
from agentci.errors import UnreachableError
from agentci.reports.merge.report_files import MAX_REPORT_BYTES, REPORT_NAME

MAX_CACHED_BASELINES: Final = 100
MAX_BYTES: Final = 256 * 1024**2
MAX_ENTRY_BYTES: Final = 128 * 1024**2

_NAME: Final = "the results"
_GONE: Final = "the results are gone"
_DIGITS: Final = 16


class BaselineCacheStats(Struct, frozen=True, kw_only=True):
    """How many results there are, by whether they can be read."""

    sound: int
    damaged: int
    size_bytes: int


class CachedBaseline(Struct, frozen=True, kw_only=True):
    """The results of one commit.

    Attributes:
        damage: why they cannot be read; None where they can.
    """

    commit: str
    path: Path
    size_bytes: int
    damage: str | None


class BaselineStore:
    """Keeps the results of commits, for any number of threads and processes at once.

    Args:
        folder: the cache.
        owner: a path whose owner gets what we make as root.
        most: how many are kept; of all those that were put there, the last ones.
    """

    def __init__(
        self, folder: Path, *, owner: Path | None = None, most: int = MAX_CACHED_BASELINES
    ) -> None:
        self._folder = folder
        self._own = folder / BASELINES_FOLDER
        self._owner = owner
        self._most = most

    def find(self, commit: str, series: str) -> bytes | None:
        """The results of a commit, verified; None where there are none. What is damaged is removed.

        Args:
            series: what keeps apart the results of several jobs of a commit.

        Raises:
            UnreachableError: too much is open, or memory is short.
        """
        path = self._path(commit, series)
        with suppress(CorruptionError):
            return self._read(path)
        with hold_cache_lock(self._folder, BASELINES_FOLDER, owner=self._owner):
            try:
                return self._read(path)  # another process may have put it there anew
            except CorruptionError:
                remove_path(path)
        return None

    def put(self, commit: str, series: str, results: bytes) -> None:
        """Keep the results of a commit, in place of those that were kept of it before.

        Raises:
            UnreachableError: the disk does not take them.
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
                f"the cache {self._folder} cannot be written to: {error.strerror or error}",
                hint="make room or let it be written to, or name another folder with --cache-dir",
            ) from None

    def inspect(self) -> BaselineCacheStats:
        """Verify all that is kept, and remove nothing."""
        kept = self.entries()
        damaged = sum(each.damage is not None for each in kept)
        size = sum(each.size_bytes for each in kept)
        return BaselineCacheStats(sound=len(kept) - damaged, damaged=damaged, size_bytes=size)

    def entries(self) -> Sequence[CachedBaseline]:
        """All that is kept, verified; nothing is removed."""
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
        digest = sha256(series.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        return self._own / f"{commit}-{digest}.zip"

    def _read(self, path: Path) -> bytes | None:
        """What lies there, unpacked; its checksum is looked at.

        Raises:
            DamageError: it is not as it was written.
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
            return None if self._read(path) is not None else _GONE
        except CorruptionError as error:
            return str(error)

    def _check_folder(self) -> None:
        """See to it that our folder is none of somebody else's, by a link.

        Raises:
            DamageError: it was none; it is gone now.
        """
        with detect_corruption(self._own, "the folder"), suppress(FileNotFoundError):
            if not stat.S_ISDIR(self._own.lstat().st_mode):
                remove_path(self._own)
                raise CorruptionError("the folder is none", self._own)

    def _entries(self) -> Iterator[Path]:
        with suppress(OSError):
            yield from (
                p
                for p in sorted(self._own.iterdir())
                if ENTRY_PATTERNS[BASELINES_FOLDER].fullmatch(p.name)
            )

    def _prune(self) -> None:
        """Remove the oldest, until few and small enough are left."""
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
