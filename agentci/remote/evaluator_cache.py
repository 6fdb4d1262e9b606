"""Cache of remote evaluators: verified on every read, and cleared on request.

Its files are untrusted: a process may have been killed, a disk may have failed, and a cache that a
workflow restores may have been written by anyone. Verification shows only that an entry has not
changed since it was written; a lock file is needed to show that its content is the right one.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
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
    FILE_MODE,
    FOLDER_MODE,
    PROGRAM_MODE,
    TEMPORARY_PREFIX,
    fsync_path,
    give_to_owner,
    make_folder,
    remove_path,
    remove_stale_temporaries,
    set_mode,
    write_file_atomically,
)
from agentci.errors import PermanentFetchError, UnreachableError
from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.cache_index import (
    MAX_BYTES,
    SUFFIX,
    CachedEvaluator,
    EvaluatorKey,
    FileDigest,
    Manifest,
    find_parent_folders,
    find_paths_problem,
    format_index_name,
    hash_key,
    make_manifest,
    read_index,
    render_index,
    survives_round_trip,
)

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def verify_tree(tree: Path, files: Mapping[str, FileDigest]) -> int:
    """Check that ``tree`` holds exactly ``files``, byte for byte.

    Returns:
        The size of all files in bytes.

    Raises:
        CorruptionError: a file is missing, unexpected or different.
        UnreachableError: too many files are open or memory runs out.
    """
    size = 0
    missing = set(files)
    with detect_corruption(tree, "its folder"):
        if not stat.S_ISDIR(tree.lstat().st_mode):
            raise CorruptionError("its folder is not a folder", tree)
        for name, path in _list_files(tree, find_parent_folders(files)):
            if name not in missing:
                raise CorruptionError(f"{name} is not part of it", tree)
            missing.remove(name)
            with detect_corruption(tree, name):
                size += _verify_file(tree, name, path, files[name], MAX_BYTES - size)
    if missing:
        raise CorruptionError(f"{min(missing)} is missing", tree)
    return size


def is_intact(tree: Path, files: Mapping[str, FileDigest]) -> bool:
    """Whether ``tree`` holds exactly ``files``, as checked by :func:`verify_tree`."""
    try:
        verify_tree(tree, files)
    except CorruptionError:
        return False
    return True


def write_tree(trees: Path, files: Mapping[str, ProgramFile], *, owner: Path | None) -> Path:
    """Write ``files`` to a new folder in ``trees`` under a temporary name, and sync it to disk.

    Raises:
        OSError: writing fails; the folder is removed.
    """
    made = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=trees))
    try:
        folders = [made, *(made / folder for folder in sorted(find_parent_folders(files)))]
        for folder in folders:
            folder.mkdir(exist_ok=True)
            set_mode(folder, FOLDER_MODE)
            give_to_owner(folder, owner)
        for name, file in files.items():
            path = made / name
            path.write_bytes(file.content)
            set_mode(path, PROGRAM_MODE if file.executable else FILE_MODE)
            give_to_owner(path, owner)
        # Sync after all writes: the first call waits for the disk, later ones mostly find their
        # data written.
        for path in (*(made / name for name in files), *reversed(folders)):
            fsync_path(path)
    except BaseException:
        remove_path(made)
        raise
    return made


def install_tree(made: Path, tree: Path, files: Mapping[str, FileDigest]) -> None:
    """Rename the folder ``made`` to ``tree``, unless an intact copy already exists.

    Raises:
        OSError: another file or folder there cannot be removed.
    """
    try:
        if is_intact(tree, files):
            return
        remove_path(tree)
        try:
            made.rename(tree)
        except OSError:
            # On file systems without locks, another process may have been faster.
            if not is_intact(tree, files):
                raise
        fsync_path(tree.parent)
    finally:
        remove_path(made)


def _list_files(tree: Path, folders: set[str]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield every entry below ``tree`` except ``folders``, with its relative path."""
    waiting = [(str(tree), "")]
    while waiting:
        folder, prefix = waiting.pop()
        with os.scandir(folder) as found:
            for each in found:
                name = f"{prefix}{each.name}"
                if name in folders and each.is_dir(follow_symlinks=False):
                    waiting.append((each.path, f"{name}/"))
                else:
                    yield name, each


def _verify_file(
    tree: Path, name: str, found: os.DirEntry[str], digest: FileDigest, limit_bytes: int
) -> int:
    """Check one file and return its size in bytes."""
    if not found.is_file(follow_symlinks=False):
        raise CorruptionError(f"{name} is not a regular file", tree)
    with open(os.open(found.path, _READ), "rb") as file:  # noqa: PTH123 (opens a file descriptor)
        mode = os.fstat(file.fileno()).st_mode
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise CorruptionError(f"{name} is too large", tree)
    if hashlib.sha256(content).hexdigest() != digest.sha256:
        raise CorruptionError(f"{name} has unexpected content", tree)
    if digest.executable and not mode & stat.S_IXUSR:
        raise CorruptionError(f"{name} is not executable", tree)
    return len(content)


# Held while an entry is installed or removed.
_WRITE_LOCK_NAME: Final = "evaluators"


class CacheEntry(Struct, frozen=True, kw_only=True):
    """One entry of the cache, for listings.

    Attributes:
        name: file name in the index folder.
        key: None if unreadable.
        evaluator: None if the entry is corrupt.
        size_bytes: of all its files; 0 if the entry is corrupt.
        corruption: description of the damage; None if the entry is intact.
    """

    name: str
    key: EvaluatorKey | None = None
    evaluator: CachedEvaluator | None = None
    size_bytes: int = 0
    corruption: str | None = None


class EvaluatorCache:
    """Stores remote evaluators in a folder; safe for concurrent threads and processes.

    Attributes:
        folder: absolute path of the cache; created on the first write.
    """

    def __init__(self, folder: Path, *, owner: Path | None = None) -> None:
        """Store evaluators in ``folder``; as root, owned by the owner of the path ``owner``."""
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay as they are)
        self._owner = owner
        self._index = self.folder / EVALUATORS_FOLDER / INDEX_FOLDER
        self._trees = self.folder / EVALUATORS_FOLDER / TREES_FOLDER

    def find(self, key: EvaluatorKey) -> CachedEvaluator | None:
        """Return the evaluator after verifying every byte; None if it must be fetched.

        Corrupt entries are removed as far as permissions allow.

        Raises:
            UnreachableError: too many files are open or memory runs out.
        """
        path = self._index / format_index_name(key)
        try:
            return self._read_verified(path)
        except CorruptionError:
            pass
        with hold_cache_lock(self.folder, _WRITE_LOCK_NAME, owner=self._owner):
            try:
                return self._read_verified(path)  # another process may have replaced it
            except CorruptionError as damage:
                if damage.path.parent == self._trees:
                    remove_path(path)
                remove_path(damage.path)
        return None

    def put(self, key: EvaluatorKey, snapshot: ProgramSnapshot) -> CachedEvaluator:
        """Store an evaluator, replacing any entry under ``key``.

        Raises:
            PermanentFetchError: its files cannot be stored in one folder.
            UnreachableError: writing fails; no partial entry remains.
        """
        manifest = _make_checked_manifest(key, snapshot)
        try:
            self._make_folders()
            tree = self._trees / manifest.digest
            made = None
            if not is_intact(tree, manifest.files):
                made = write_tree(self._trees, snapshot.files, owner=self._owner)
            with hold_cache_lock(self.folder, _WRITE_LOCK_NAME, owner=self._owner):
                if made is not None:
                    install_tree(made, tree, manifest.files)
                path = self._index / format_index_name(manifest.key)
                if path.is_dir():
                    remove_path(path)
                write_file_atomically(path, render_index(manifest), owner=self._owner)
        except OSError as error:
            raise UnreachableError(
                f"the cache {self.folder} is not writable: {error.strerror or error}",
                hint="free disk space, make it writable, or choose another one with `--cache-dir`",
            ) from None
        return self._make_cached_evaluator(manifest)

    def lock(self, key: EvaluatorKey) -> AbstractContextManager[None]:
        """Lock ``key`` among all threads and processes, so that one of them fetches it."""
        return hold_cache_lock(self.folder, f"evaluator {hash_key(key)}", owner=self._owner)

    def list_entries(self) -> Iterator[CacheEntry]:
        """Yield all entries after verifying them; none is removed."""
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
            manifest = read_index(path)
            if manifest is None:
                return CacheEntry(name=path.name, corruption="it was just removed")
            key = manifest.key
            size = verify_tree(self._trees / manifest.digest, manifest.files)
        except CorruptionError as damage:
            return CacheEntry(name=path.name, key=key, corruption=str(damage))
        return CacheEntry(
            name=path.name,
            key=key,
            evaluator=self._make_cached_evaluator(manifest),
            size_bytes=size,
        )

    def _read_verified(self, path: Path) -> CachedEvaluator | None:
        """Read and verify the entry of an index file; None if the file does not exist.

        Raises:
            CorruptionError: a file differs from what was written.
        """
        self._check_folders()
        manifest = read_index(path)
        if manifest is None:
            return None
        verify_tree(self._trees / manifest.digest, manifest.files)
        return self._make_cached_evaluator(manifest)

    def _check_folders(self) -> None:
        """Check that the cache's own folders are real ones, since links could lead outside it.

        Raises:
            CorruptionError: one of them is not a folder.
        """
        for folder in (self._index.parent, self._index, self._trees):
            with detect_corruption(folder, f"the folder {folder.name}"):
                try:
                    mode = folder.lstat().st_mode
                except FileNotFoundError:
                    continue
                if not stat.S_ISDIR(mode):
                    raise CorruptionError(f"{folder.name} is not a folder", folder)

    def _make_folders(self) -> None:
        """Create all folders and remove stale temporary files of killed processes."""
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

    def _make_cached_evaluator(self, manifest: Manifest) -> CachedEvaluator:
        folder = self._trees / manifest.digest
        return CachedEvaluator(
            path=folder / manifest.entry,
            folder=folder,
            digests={path: digest.sha256 for path, digest in manifest.files.items()},
        )


def _list_names(folder: Path) -> list[str]:
    if not os.path.lexists(folder):
        return []
    return [path.name for path in folder.iterdir() if not path.name.startswith(TEMPORARY_PREFIX)]


def _make_checked_manifest(key: EvaluatorKey, snapshot: ProgramSnapshot) -> Manifest:
    """Make the manifest of a snapshot that can be stored.

    Raises:
        PermanentFetchError: it cannot be stored.
    """
    reason = find_paths_problem(snapshot.entry, snapshot.files)
    if sum(len(file.content) for file in snapshot.files.values()) > MAX_BYTES:
        reason = f"it is larger than {MAX_BYTES // 1024**2} MiB"
    if reason is None:
        manifest = make_manifest(key, snapshot)
        if survives_round_trip(manifest):
            return manifest
        reason = "its names are too long or not valid UTF-8"
    raise PermanentFetchError(f"{key.ref} cannot be cached: {reason}")


class ClearedCache(Struct, frozen=True, kw_only=True):
    """Result of clearing a cache.

    Attributes:
        evaluators: number of removed evaluators.
        environments: number of removed environments.
        freed_bytes: size of all removed files.
        remaining: paths that could not be removed.
    """

    evaluators: int
    environments: int
    freed_bytes: int
    remaining: tuple[Path, ...]


def clear_cache(folder: Path) -> ClearedCache:
    """Remove all entries of a cache; its tag file stays, which identifies the folder as a cache.

    Raises:
        OSError: the folder cannot be read.
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
    """Return the number of readable evaluators and environments."""
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
    """Return the total size of all readable files below ``folder``."""
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{path}/{name}").st_size
    return size
