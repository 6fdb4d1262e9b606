"""Keeps what is made once from being made twice at the same time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from agentci._util.cache.init import LOCKS, found
from agentci._util.ownership import FILE_MODE, give_to_owner, make_folder
from agentci.errors import UnreachableError


@contextmanager
def claim(folder: Path, name: str, *, owner: Path | None = None) -> Iterator[None]:
    """Be the only one, among all threads and processes, that holds ``name``; waits for its turn.

    A process that is killed lets go. Where the folder takes no locks, nobody is kept waiting:
    what is written must be whole without them, too.

    Args:
        folder: the cache; made where it is missing.
        name: any text; not claimed again by whoever holds it.
        owner: a path whose owner gets what we make as root.
    """
    descriptor = _locked(folder, f"{sha256(name.encode()).hexdigest()}.lock", owner)
    try:
        yield
    finally:
        if descriptor is not None:
            # Closing would not do where a fork holds the descriptor, too.
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _locked(folder: Path, name: str, owner: Path | None) -> int | None:
    """The descriptor of a lock that is held, None where there can be none."""
    with suppress(OSError, UnreachableError):
        # A cache that we may only read may have a lock all the same.
        found(folder, owner)
        make_folder(folder / LOCKS, owner)
    with suppress(OSError):
        while True:
            descriptor = _open(folder / LOCKS, name, owner)
            if _has_lock(descriptor, folder / LOCKS / name):
                return descriptor
    return None


def _has_lock(descriptor: int, path: Path) -> bool:
    """Wait for the lock; closes what is no lock, for whoever comes next would not find it."""
    held = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        held = _is_current(descriptor, path)
    finally:
        if not held:
            os.close(descriptor)
    return held


def _open(locks: Path, name: str, owner: Path | None) -> int:
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
