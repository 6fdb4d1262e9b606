"""Cache folders: creation, locks, and detection of corrupt files."""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from agentci._util.files import (
    FILE_MODE,
    TEMPORARY_PREFIX,
    give_to_owner,
    list_temporaries,
    make_folder,
    write_file_atomically,
)
from agentci.errors import UnreachableError

EVALUATORS_FOLDER: Final = "evaluators"
INDEX_FOLDER: Final = "index"
TREES_FOLDER: Final = "trees"
ENVIRONMENTS_FOLDER: Final = "environments"
LOCKS_FOLDER: Final = "locks"
BASELINES_FOLDER: Final = "baselines"
RESPONSES_FILE: Final = "responses.sqlite3"
RESPONSES_JOURNAL: Final = f"{RESPONSES_FILE}-journal"
CACHE_TAG: Final = "CACHEDIR.TAG"
GITIGNORE_NAME: Final = ".gitignore"

# Names of the entries in each of our folders; any other name means that the folder is not ours.
ENTRY_PATTERNS: Final = {
    EVALUATORS_FOLDER: re.compile(f"{INDEX_FOLDER}|{TREES_FOLDER}"),
    ENVIRONMENTS_FOLDER: re.compile(r"[0-9a-f]{64}"),
    BASELINES_FOLDER: re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?-[0-9a-f]{16}\.zip"),
    LOCKS_FOLDER: re.compile(r"[0-9a-f]{64}\.lock"),
}

TAG_TEXT: Final = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n"
    b"# This folder is a cache of agentci. All in it can be fetched again.\n"
)
GITIGNORE_TEXT: Final = b"*\n"

# The files of the cache next to these folders.
CACHE_FILES: Final = (RESPONSES_FILE, RESPONSES_JOURNAL)

# Files that an otherwise empty folder may contain in git or on its own disk.
_IGNORED_NAMES: Final = frozenset({CACHE_TAG, GITIGNORE_NAME, ".gitkeep", "lost+found"})


def init_cache(folder: Path, owner: Path | None) -> None:
    """Make ``folder`` a cache if it is not one yet.

    Raises:
        OSError: it cannot be created or written to.
        UnreachableError: it contains other files.
    """
    if is_cache(folder):
        return
    make_folder(folder, owner)
    if not is_usable_as_cache(folder):
        raise UnreachableError(
            f"{folder} is not an agentci cache and is not empty",
            hint="choose an empty folder with `--cache-dir`",
        )
    if not (folder / GITIGNORE_NAME).exists():
        write_file_atomically(folder / GITIGNORE_NAME, GITIGNORE_TEXT, owner=owner)
    write_file_atomically(folder / CACHE_TAG, TAG_TEXT, owner=owner)


def is_cache(folder: Path) -> bool:
    """Whether the folder has our cache tag."""
    tag = folder / CACHE_TAG
    try:
        return tag.stat().st_size == len(TAG_TEXT) and tag.read_bytes() == TAG_TEXT
    except OSError:
        return False


def is_usable_as_cache(folder: Path) -> bool:
    """Whether an existing folder may become a cache: it is empty or has parts of a restored cache.

    Raises:
        OSError: it cannot be read.
    """
    return all(path.name in _IGNORED_NAMES or _is_cache_entry(path) for path in folder.iterdir())


def list_cache_entries(folder: Path) -> list[Path]:
    """List all entries of a cache, except the tag and .gitignore.

    Raises:
        OSError: it cannot be read.
    """
    made = [
        *list_temporaries(folder),
        *(folder / name for name in CACHE_FILES if _is_file(folder / name)),
    ]
    for name, pattern in ENTRY_PATTERNS.items():
        inner = folder / name
        if _is_real_folder(inner):
            made += [path for path in sorted(inner.iterdir()) if _matches(path, pattern)]
    return made


def _is_cache_entry(path: Path) -> bool:
    if path.name.startswith(TEMPORARY_PREFIX) or (path.name in CACHE_FILES and _is_file(path)):
        return True
    pattern = ENTRY_PATTERNS.get(path.name)
    if pattern is None or not _is_real_folder(path):
        return False
    return all(_matches(each, pattern) for each in path.iterdir())


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_file(path: Path) -> bool:
    return os.path.lexists(path) and not _is_real_folder(path)


def _matches(path: Path, pattern: re.Pattern[str]) -> bool:
    return path.name.startswith(TEMPORARY_PREFIX) or bool(pattern.fullmatch(path.name))


@contextmanager
def hold_cache_lock(folder: Path, name: str, *, owner: Path | None = None) -> Iterator[None]:
    """Hold the lock ``name`` exclusively, among all threads and processes; waits for it.

    A killed process releases its locks. If the folder supports no locks, nothing is locked:
    files must be written atomically anyway.

    Args:
        folder: the cache; created if missing.
        name: any text; not reentrant.
        owner: path whose owner gets the files that are created as root.
    """
    descriptor = _acquire_lock(folder, f"{sha256(name.encode()).hexdigest()}.lock", owner)
    try:
        yield
    finally:
        if descriptor is not None:
            # Closing alone keeps the lock if a fork holds the descriptor, too.
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _acquire_lock(folder: Path, name: str, owner: Path | None) -> int | None:
    """Return the descriptor of a held lock; None if locks are not possible."""
    with suppress(OSError, UnreachableError):
        # A read-only cache may still have an existing lock file.
        init_cache(folder, owner)
        make_folder(folder / LOCKS_FOLDER, owner)
    with suppress(OSError):
        while True:
            descriptor = _open_lock_file(folder / LOCKS_FOLDER, name, owner)
            if _wait_for_lock(descriptor, folder / LOCKS_FOLDER / name):
                return descriptor
    return None


def _wait_for_lock(descriptor: int, path: Path) -> bool:
    """Wait for the lock; close the file if it was removed, as others would lock a new one."""
    held = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        held = _is_current(descriptor, path)
    finally:
        if not held:
            os.close(descriptor)
    return held


def _open_lock_file(locks: Path, name: str, owner: Path | None) -> int:
    """Open the lock file; do not follow links or block on special files."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(locks, os.O_RDONLY | os.O_DIRECTORY | flags)
    try:
        with suppress(FileNotFoundError):
            return os.open(name, os.O_RDONLY | os.O_NONBLOCK | flags, dir_fd=folder)
        descriptor = os.open(
            name, os.O_RDONLY | os.O_CREAT | os.O_NONBLOCK | flags, FILE_MODE, dir_fd=folder
        )
    finally:
        os.close(folder)
    with suppress(OSError):
        give_to_owner(locks / name, owner)
    return descriptor


def _is_current(descriptor: int, path: Path) -> bool:
    """Whether the file was not removed during the wait."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


# These errors are about this process, not about the cache.
_RESOURCE_ERRNOS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class CorruptionError(Exception):
    """A cache entry must not be used; the message has the reason, without a full stop.

    Attributes:
        path: the damaged part, to be removed before a new one is written.
    """

    def __init__(self, message: str, path: Path) -> None:
        self.path = path
        super().__init__(message)


@contextmanager
def detect_corruption(path: Path, name: str) -> Iterator[None]:
    """Treat unreadable files as damaged; ``name`` is their name for messages.

    Raises:
        CorruptionError: a file cannot be read.
        UnreachableError: too many files are open, or memory is short.
    """
    try:
        yield
    except FileNotFoundError:
        raise CorruptionError(f"{name} is missing", path) from None
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _RESOURCE_ERRNOS:
            raise UnreachableError(f"the cache cannot be read: {reason}") from None
        raise CorruptionError(f"{name} cannot be read: {reason}", path) from None


def read_cache_file(path: Path, name: str, *, limit_bytes: int) -> bytes | None:
    """Read a file of the cache without following links; None if it does not exist.

    Args:
        name: for messages.

    Raises:
        CorruptionError: it is not a regular file, too large, or cannot be read.
        UnreachableError: too many files are open, or memory is short.
    """
    with detect_corruption(path, name):
        try:
            descriptor = os.open(path, _READ_FLAGS)
        except FileNotFoundError:
            return None
        with open(descriptor, "rb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise CorruptionError(f"{name} is not a regular file", path)
            content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise CorruptionError(f"{name} is too large", path)
    return content
