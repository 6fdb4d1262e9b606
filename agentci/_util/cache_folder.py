"""Cache folders: creation, locks, detection of corrupt files, and who can write to them.

The content of a cache is executed and trusted, and its checksums detect only damage. So a cache is
used only if neither a checkout, whose files come from a pull request, nor another user controls
what is in it: by a folder or a link on its path, or by files in the folder.
"""

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
from agentci._util.workspace import Workspace
from agentci.errors import InputError, UnreachableError

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
            # Closing alone would not release the lock if a fork also holds the descriptor.
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


# A path with more names, those of its links included, has links in a loop.
_MAX_NAMES: Final = 1000
_CHECKOUT_HINT: Final = "name a folder outside it with --cache-dir"
_OWNER_HINT: Final = "let only its owner write to it, or name another folder with --cache-dir"
_CREATE_HINT: Final = "create it, or name another folder with --cache-dir"


def resolve_cache_folder(folder: Path, workspace: Workspace) -> Path:
    """Resolve the links in the path of a cache, and check who can write to it.

    Args:
        folder: an absolute path; what does not exist yet is not checked.

    Raises:
        InputError: a checkout or another user may have written to it.
    """
    check = _FolderCheck(workspace)
    try:
        path = check.resolve(folder)
        check.check_content(path)
    except _DistrustError as error:
        message = f"the cache {workspace.display_path(folder)} is not used: {error}"
        raise InputError.from_message(message, hint=error.hint) from None
    return path


def find_cache_owner(folder: Path) -> Path:
    """The path whose owner gets what root writes to a cache: the folder, or its nearest parent.

    In a container action, this lets later steps read, save and remove the cache.
    """
    return next(each for each in (folder, *folder.parents) if os.path.lexists(each))


class _DistrustError(Exception):
    """A folder is not trusted; the message says why, without a full stop."""

    def __init__(self, message: str, *, hint: str) -> None:
        self.hint = hint
        super().__init__(message)


class _FolderCheck:
    """Trusts root, the user and groups of this process, and those of the workspace's owner."""

    def __init__(self, workspace: Workspace) -> None:
        root = workspace.root.stat()
        self._users = {0, os.geteuid(), root.st_uid}
        self._groups = {0, os.getegid(), *os.getgroups(), root.st_gid}
        self._checkouts = [root]
        if workspace.checkout is not None:
            with suppress(OSError):  # it does not exist
                self._checkouts.append(workspace.checkout.stat())

    def resolve(self, folder: Path) -> Path:
        """Resolve a path name by name, as the system does, and check each folder and link on it.

        Raises:
            _DistrustError: one of them is not trusted.
        """
        path, names = Path(folder.anchor), [*reversed(folder.parts[1:])]
        for _ in range(_MAX_NAMES):
            if not names:
                return path
            name = names.pop()
            if name == "..":
                path = path.parent
            elif target := self._check_name(path / name, is_parent=bool(names)):
                names += reversed(target.parts)
            else:
                path /= name
        raise _DistrustError("its path has links in a loop", hint=_OWNER_HINT)

    def check_content(self, folder: Path) -> None:
        """Check that a resolved folder is in no checkout, and what is in it.

        Raises:
            _DistrustError: it is in a checkout, or its content is not trusted.
        """
        if checkout := self._find_checkout(folder):
            raise _DistrustError(
                f"it is in the checkout {checkout}, so a pull request could bring its files",
                hint=_CHECKOUT_HINT,
            )
        for path in (folder, *(folder / name for name in (*ENTRY_PATTERNS, *CACHE_FILES))):
            if self._check_name(path):
                raise _DistrustError(f"{path} is a link", hint="remove the link")

    def _check_name(self, path: Path, *, is_parent: bool = False) -> Path | None:
        """Check a file or folder; returns the target of a link.

        Args:
            is_parent: others may create files in it, but not replace those in it, as in /tmp.

        Raises:
            _DistrustError: it is not trusted.
        """
        try:
            status = path.lstat()
        except OSError:
            self._check_missing(path)
            return None
        if status.st_uid not in self._users:
            raise _DistrustError(f"{path} belongs to another user", hint=_OWNER_HINT)
        if not stat.S_ISLNK(status.st_mode):
            if self._is_writable(status) and not (is_parent and status.st_mode & stat.S_ISVTX):
                raise _DistrustError(f"other users can write to {path}", hint=_OWNER_HINT)
            return None
        if checkout := self._find_checkout(path.parent):
            raise _DistrustError(
                f"{path} is a link in the checkout {checkout}", hint=_CHECKOUT_HINT
            )
        return path.readlink()

    def _check_missing(self, path: Path) -> None:
        """Check that no other user can create a path before this process does."""
        with suppress(OSError):
            if self._is_writable(path.parent.lstat()):
                raise _DistrustError(f"other users can create {path}", hint=_CREATE_HINT)

    def _is_writable(self, status: os.stat_result) -> bool:
        """Whether other users can write to a file or folder."""
        shared = status.st_mode & stat.S_IWGRP and status.st_gid not in self._groups
        return bool(status.st_mode & stat.S_IWOTH or shared)

    def _find_checkout(self, folder: Path) -> Path | None:
        """The workspace, checkout or git repository that a folder is in; None if it is in none.

        Workspace and checkout are recognised by any path to them, such as that of a second mount.
        """
        for each in (folder, *folder.parents):
            if os.path.lexists(each / ".git"):
                return each
            with suppress(OSError):
                status = each.stat()
                if any(os.path.samestat(status, known) for known in self._checkouts):
                    return each
        return None
