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
RESPONSES_FILE: Final = "replies.sqlite3"
RESPONSES_JOURNAL: Final = f"{RESPONSES_FILE}-journal"
CACHE_TAG: Final = "CACHEDIR.TAG"
GITIGNORE_NAME: Final = ".gitignore"

# What we make in each folder of ours; by anything else one tells a folder of somebody else's.
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

# And the files that we make beside them.
CACHE_FILES: Final = (RESPONSES_FILE, RESPONSES_JOURNAL)

# What stands for an empty folder in git, and on a disk of its own.
_IGNORED_NAMES: Final = frozenset({CACHE_TAG, GITIGNORE_NAME, ".gitkeep", "lost+found"})


def init_cache(folder: Path, owner: Path | None) -> None:
    """Make ``folder`` a cache, where it is none yet.

    Raises:
        OSError: it cannot be made or written to.
        UnreachableError: it is used for something else.
    """
    if is_cache(folder):
        return
    make_folder(folder, owner)
    if not is_usable_as_cache(folder):
        raise UnreachableError(
            f"{folder} is no cache of agentci, and holds other things",
            hint="name a folder of its own with --cache-dir",
        )
    if not (folder / GITIGNORE_NAME).exists():
        write_file_atomically(folder / GITIGNORE_NAME, GITIGNORE_TEXT, owner=owner)
    write_file_atomically(folder / CACHE_TAG, TAG_TEXT, owner=owner)


def is_cache(folder: Path) -> bool:
    """Whether the folder carries our tag."""
    tag = folder / CACHE_TAG
    try:
        return tag.stat().st_size == len(TAG_TEXT) and tag.read_bytes() == TAG_TEXT
    except OSError:
        return False


def is_usable_as_cache(folder: Path) -> bool:
    """Whether a folder that is there may become a cache: it is empty, or part of one came back.

    Raises:
        OSError: it cannot be read.
    """
    return all(path.name in _IGNORED_NAMES or _is_cache_entry(path) for path in folder.iterdir())


def list_cache_entries(folder: Path) -> list[Path]:
    """All that we made in a cache, but for the tag and what tells git to look away.

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
    """Be the only one, among all threads and processes, that holds ``name``; waits for its turn.

    A process that is killed lets go. Where the folder takes no locks, nobody is kept waiting:
    what is written must be whole without them, too.

    Args:
        folder: the cache; made where it is missing.
        name: any text; not claimed again by whoever holds it.
        owner: a path whose owner gets what we make as root.
    """
    descriptor = _acquire_lock(folder, f"{sha256(name.encode()).hexdigest()}.lock", owner)
    try:
        yield
    finally:
        if descriptor is not None:
            # Closing would not do where a fork holds the descriptor, too.
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _acquire_lock(folder: Path, name: str, owner: Path | None) -> int | None:
    """The descriptor of a lock that is held, None where there can be none."""
    with suppress(OSError, UnreachableError):
        # A cache that we may only read may have a lock all the same.
        init_cache(folder, owner)
        make_folder(folder / LOCKS_FOLDER, owner)
    with suppress(OSError):
        while True:
            descriptor = _open_lock_file(folder / LOCKS_FOLDER, name, owner)
            if _wait_for_lock(descriptor, folder / LOCKS_FOLDER / name):
                return descriptor
    return None


def _wait_for_lock(descriptor: int, path: Path) -> bool:
    """Wait for the lock; closes what is no lock, for whoever comes next would not find it."""
    held = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        held = _is_current(descriptor, path)
    finally:
        if not held:
            os.close(descriptor)
    return held


def _open_lock_file(locks: Path, name: str, owner: Path | None) -> int:
    """Open the file of a lock, through no link and whatever else lies in its place."""
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
    """Whether the file was not removed while we waited."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


# What is missing here is missing in this process: the cache is not to blame.
_RESOURCE_ERRNOS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class CorruptionError(Exception):
    """An entry must not be used; says why, without a full stop.

    Attributes:
        path: the part that is damaged: of no use, and in the way of a new one.
    """

    def __init__(self, message: str, path: Path) -> None:
        self.path = path
        super().__init__(message)


@contextmanager
def detect_corruption(path: Path, name: str) -> Iterator[None]:
    """Take what cannot be read for damaged; ``name`` is what messages call it.

    Raises:
        DamageError: it cannot be read.
        UnreachableError: too much is open, or memory is short.
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
    """The content of a file of the cache, through no link; None where there is none.

    Args:
        name: what messages call it.

    Raises:
        DamageError: it is no file, too large, or cannot be read.
        UnreachableError: too much is open, or memory is short.
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
