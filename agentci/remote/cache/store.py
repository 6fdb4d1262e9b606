"""The cache of remote evaluators: verified on every read, and cleared on request.

Its files are not trusted: a process may have been killed, a disk may have failed, and a cache that
a workflow restores may come from anybody. It shows that nothing changed since it was written; who
wrote it, only a lock file can tell.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.cache_folder import (
    ENTRY_PATTERNS,
    ENVIRONMENTS_FOLDER,
    EVALUATORS_FOLDER,
    INDEX_FOLDER,
    TREES_FOLDER,
    CorruptionError,
    detect_corruption,
    hold_cache_lock,
    init_cache,
    list_cache_entries,
)
from agentci._util.files import (
    TEMPORARY_PREFIX,
    make_folder,
    remove_path,
    remove_stale_temporaries,
    write_file_atomically,
)
from agentci.errors import PermanentFetchError, UnreachableError
from agentci.model.program import ProgramSnapshot
from agentci.remote.cache.index import (
    MAX_BYTES,
    SUFFIX,
    CachedEvaluator,
    EvaluatorKey,
    Manifest,
    find_paths_problem,
    format_index_name,
    hash_key,
    make_manifest,
    read_index,
    render_index,
    survives_round_trip,
)
from agentci.remote.cache.trees import install_tree, is_intact, verify_tree, write_tree

# Held by whoever puts something in its place, or removes it.
_WRITE_LOCK_NAME: Final = "evaluators"


class CacheEntry(Struct, frozen=True, kw_only=True):
    """One entry of the cache, for people who look after it.

    Attributes:
        name: of its file in the index.
        key: None where it cannot be told.
        evaluator: None where it is damaged.
        size_bytes: of all its files; 0 where it is damaged.
        corruption: what is wrong with it; None where all is well.
    """

    name: str
    key: EvaluatorKey | None = None
    evaluator: CachedEvaluator | None = None
    size_bytes: int = 0
    corruption: str | None = None


class EvaluatorCache:
    """Keeps remote evaluators in a folder, for any number of threads and processes at once.

    Attributes:
        folder: absolute path of the cache; made when something is put there.
    """

    def __init__(self, folder: Path, *, owner: Path | None = None) -> None:
        """Keep evaluators in ``folder``; as root, give them to who owns the path ``owner``."""
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay as they are)
        self._owner = owner
        self._index = self.folder / EVALUATORS_FOLDER / INDEX_FOLDER
        self._trees = self.folder / EVALUATORS_FOLDER / TREES_FOLDER

    def find(self, key: EvaluatorKey) -> CachedEvaluator | None:
        """The evaluator, every byte of it verified; None where it is to be fetched.

        What is damaged is removed, as far as we may.

        Raises:
            UnreachableError: too much is open, or memory is short.
        """
        path = self._index / format_index_name(key)
        try:
            return self._read_verified(path)
        except CorruptionError:
            pass
        with hold_cache_lock(self.folder, _WRITE_LOCK_NAME, owner=self._owner):
            try:
                return self._read_verified(path)  # another process may have put it there anew
            except CorruptionError as damage:
                if damage.path.parent == self._trees:
                    remove_path(path)
                remove_path(damage.path)
        return None

    def put(self, key: EvaluatorKey, snapshot: ProgramSnapshot) -> CachedEvaluator:
        """Keep an evaluator, in place of what was kept under ``key``.

        Raises:
            RefusedError: it cannot be kept in one folder.
            UnreachableError: the disk does not take it; nothing is left of it.
        """
        inventory = _make_checked_manifest(key, snapshot)
        try:
            self._make_folders()
            tree = self._trees / inventory.digest
            made = None
            if not is_intact(tree, inventory.files):
                made = write_tree(self._trees, snapshot.files, owner=self._owner)
            with hold_cache_lock(self.folder, _WRITE_LOCK_NAME, owner=self._owner):
                if made is not None:
                    install_tree(made, tree, inventory.files)
                self._write_index(inventory)
        except OSError as error:
            raise UnreachableError(
                f"the cache {self.folder} cannot be written to: {error.strerror or error}",
                hint="make room or let it be written to, or name another folder with --cache-dir",
            ) from None
        return self._make_cached_evaluator(inventory)

    def lock(self, key: EvaluatorKey) -> AbstractContextManager[None]:
        """Be the only one, among all threads and processes, that fetches ``key``."""
        return hold_cache_lock(self.folder, f"evaluator {hash_key(key)}", owner=self._owner)

    def list_entries(self) -> Iterator[CacheEntry]:
        """Verify all that the cache holds, and remove nothing."""
        try:
            with detect_corruption(self._index, "the index"):
                self._check_folders()
                names = sorted(_list_names(self._index))
        except CorruptionError as damage:
            yield CacheEntry(name=damage.path.name, corruption=str(damage))
            return
        for name in names:
            yield self._verify_entry(self._index / name)

    def _verify_entry(self, path: Path) -> CacheEntry:
        key = None
        try:
            inventory = read_index(path)
            if inventory is None:
                return CacheEntry(name=path.name, corruption="it was removed just now")
            key = inventory.key
            size = verify_tree(self._trees / inventory.digest, inventory.files)
        except CorruptionError as damage:
            return CacheEntry(name=path.name, key=key, corruption=str(damage))
        return CacheEntry(
            name=path.name,
            key=key,
            evaluator=self._make_cached_evaluator(inventory),
            size_bytes=size,
        )

    def _read_verified(self, path: Path) -> CachedEvaluator | None:
        """What a file of the index leads to, verified; None where there is no such file.

        Raises:
            DamageError: something is not as it was written.
        """
        self._check_folders()
        inventory = read_index(path)
        if inventory is None:
            return None
        verify_tree(self._trees / inventory.digest, inventory.files)
        return self._make_cached_evaluator(inventory)

    def _check_folders(self) -> None:
        """See to it that our own folders are none of somebody else's, by a link.

        Raises:
            DamageError: one of them is not a folder.
        """
        for folder in (self._index.parent, self._index, self._trees):
            with detect_corruption(folder, f"the folder {folder.name}"):
                try:
                    mode = folder.lstat().st_mode
                except FileNotFoundError:
                    continue
                if not stat.S_ISDIR(mode):
                    raise CorruptionError(f"{folder.name} is not a folder", folder)

    def _write_index(self, inventory: Manifest) -> None:
        """Put an evaluator into the index, in place of whatever is there."""
        path = self._index / format_index_name(inventory.key)
        if path.is_dir():
            remove_path(path)
        write_file_atomically(path, render_index(inventory), owner=self._owner)

    def _make_folders(self) -> None:
        """Have all folders, and nothing in them that killed processes left long ago."""
        init_cache(self.folder, self._owner)
        for _ in range(3):
            try:
                self._check_folders()
            except CorruptionError as damage:
                remove_path(damage.path)
        for folder in (self._index, self._trees):
            make_folder(folder, self._owner)
            remove_stale_temporaries(folder)
        remove_stale_temporaries(self.folder)

    def _make_cached_evaluator(self, inventory: Manifest) -> CachedEvaluator:
        folder = self._trees / inventory.digest
        return CachedEvaluator(
            path=folder / inventory.entry,
            folder=folder,
            digests={path: mark.sha256 for path, mark in inventory.files.items()},
        )


def _list_names(folder: Path) -> list[str]:
    if not os.path.lexists(folder):
        return []
    return [path.name for path in folder.iterdir() if not path.name.startswith(TEMPORARY_PREFIX)]


def _make_checked_manifest(key: EvaluatorKey, snapshot: ProgramSnapshot) -> Manifest:
    """The inventory of what can be kept.

    Raises:
        RefusedError: it cannot be.
    """
    unfit = find_paths_problem(snapshot.entry, snapshot.files)
    if sum(len(file.content) for file in snapshot.files.values()) > MAX_BYTES:
        unfit = f"it is larger than {MAX_BYTES // 1024**2} MiB"
    if unfit is None:
        inventory = make_manifest(key, snapshot)
        if survives_round_trip(inventory):
            return inventory
        unfit = "its names are too long, or no text"
    raise PermanentFetchError(f"{key.ref} cannot be kept: {unfit}")


class ClearedCache(Struct, frozen=True, kw_only=True):
    """What is no longer there.

    Attributes:
        remaining: what could not be removed.
    """

    evaluators: int
    environments: int
    freed_bytes: int
    remaining: tuple[Path, ...]


def clear_cache(folder: Path) -> ClearedCache:
    """Empty a cache; its tag stays, by which it is known the next time.

    Raises:
        OSError: it cannot be read.
    """
    evaluators, environments = _count_entries(folder)
    size = _measure_bytes(folder)
    for path in list_cache_entries(folder):
        remove_path(path)
    left = list_cache_entries(folder)
    for name in ENTRY_PATTERNS:
        with suppress(OSError):
            (folder / name).rmdir()
    evaluators_left, environments_left = _count_entries(folder)
    return ClearedCache(
        evaluators=evaluators - evaluators_left,
        environments=environments - environments_left,
        freed_bytes=size - _measure_bytes(folder),
        remaining=tuple(left),
    )


def _count_entries(folder: Path) -> tuple[int, int]:
    """How many evaluators and environments there are, as far as they can be seen."""
    names = ENTRY_PATTERNS[ENVIRONMENTS_FOLDER]
    return (
        sum(
            name.endswith(SUFFIX)
            for name in _list_file_names(folder / EVALUATORS_FOLDER / INDEX_FOLDER)
        ),
        sum(bool(names.fullmatch(name)) for name in _list_file_names(folder / ENVIRONMENTS_FOLDER)),
    )


def _list_file_names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _measure_bytes(folder: Path) -> int:
    """Of all files below ``folder``, in bytes, as far as they can be seen."""
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{path}/{name}").st_size
    return size
