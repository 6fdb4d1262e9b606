"""Make and remove the private folder of a program, regardless of its content.

All removal goes through descriptors of opened folders. So it never follows a link, not even one
that a running program puts in place of a folder.
"""

import errno
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from agentci.execution.child.apply_sandbox import SHARED_MEMORY

FOLDERS: Final = (b"home", b"tmp")
# Removal takes about a second, at any depth; on a loaded machine with a slow disk, half a minute.
MAX_REMOVE_SECONDS: Final = 120.0
# Size counted for an empty file, so that the number of files is limited too.
MIN_FILE_BYTES: Final = 4096
# Errors of opening a folder that has been removed or replaced since it was listed.
GONE_ERRORS: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
SEARCHABLE: Final = stat.S_IRUSR | stat.S_IXUSR
OPEN_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_tmpdir(
    path: bytes, user: int | None, home_files: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Make the folder, with folders ``home`` and ``tmp`` in it that only ``user`` may enter.

    Args:
        path: the folder.
        user: the owner of all that is made; None for this process's user.
        home_files: files to write, by their path in ``home``.

    Raises:
        OSError: the folder exists already, or cannot be made.
    """
    os.mkdir(path, 0o700)
    for name in FOLDERS:
        os.mkdir(os.path.join(path, name), 0o700)
    made = [path, *(os.path.join(path, name) for name in FOLDERS)]
    for name, content in home_files:
        file = os.path.join(path, b"home", name)
        for folder in _list_missing_folders(os.path.dirname(file)):
            os.mkdir(folder, 0o700)
            made.append(folder)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write(content)
        made.append(file)
    if user is not None:
        for each in reversed(made):
            os.chown(each, user, user, follow_symlinks=False)


def give_folder(path: bytes, user: int) -> None:
    """Make ``user`` the owner of a folder; never follows a link.

    Raises:
        OSError: it is not a folder, or this process may not change its owner.
    """
    folder = os.open(path, OPEN_FLAGS)
    try:
        os.fchown(folder, user, user)
    finally:
        os.close(folder)


def _list_missing_folders(folder: bytes) -> list[bytes]:
    missing: list[bytes] = []
    while not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def measure_size(folders: Iterable[bytes], enough: int) -> int:
    """Measure the bytes of disk that ``folders`` use; stop at ``enough`` bytes.

    A folder that cannot be read counts as ``enough``, for anything may be in it; one that its owner
    has closed is opened. Works at any depth, unless very many folders on the way have others
    beside them.
    """
    taken, pending = 0, list[tuple[int | None, list[bytes]]]()
    try:
        pending.append((None, list(folders)))
        while pending and taken < enough:
            parent, names = pending[-1]
            if not names:
                _close_last(pending)
                continue
            name = names.pop()
            try:
                folder = open_folder(name, dir_fd=parent)
            except OSError as error:
                if error.errno in GONE_ERRORS:
                    continue
                raise
            if not names:  # before its subfolders, so that a chain needs no descriptor per folder
                _close_last(pending)
            below = list[bytes]()
            pending.append((folder, below))
            taken += _measure_entries(folder, below)
    except OSError:
        return enough
    finally:
        while pending:
            _close_last(pending)
    return taken


def _close_last(pending: list[tuple[int | None, list[bytes]]]) -> None:
    folder, _ = pending.pop()
    if folder is not None:
        os.close(folder)


def _measure_entries(folder: int, below: list[bytes]) -> int:
    """The bytes of disk that the entries of an opened folder use; add its subfolders to ``below``.

    Raises:
        OSError: the folder cannot be listed, or an entry is not accessible.
    """
    _allow_use(folder, SEARCHABLE)
    taken = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                blocks = entry.stat(follow_symlinks=False).st_blocks
                taken += max(blocks * 512, MIN_FILE_BYTES)
                if entry.is_dir(follow_symlinks=False):
                    below.append(os.fsencode(entry.name))
    return taken


def remove_tmpdir(
    path: bytes, *, owner: int | None = None, seconds: float = MAX_REMOVE_SECONDS
) -> bool:
    """Remove the folder within ``seconds``; return whether it is removed.

    Call it when no process can write to the folder any more. It works at any depth: nested folders
    are moved up before they are listed, so that no path grows long.

    Args:
        path: the folder.
        owner: the user that owns it and all folders in it; others are not entered. None for any.
        seconds: time limit.
    """
    deadline = time.monotonic() + seconds
    try:
        top = open_folder(path, owner=owner)
    except OSError:
        return False
    try:
        _empty_folder(top, owner, deadline)
        os.rmdir(path)
    except OSError:  # includes TimeoutError
        return False
    finally:
        os.close(top)
    return True


def clear_shared_memory(user: int) -> None:
    """Remove what ``user``, the user of one program only, has left in shared memory."""
    with suppress(OSError):
        top = os.open(SHARED_MEMORY, OPEN_FLAGS)
        try:
            clear_folder(top, user)
        finally:
            os.close(top)


def clear_folder(top: int, user: int) -> None:
    """Remove the entries of an opened folder that belong to ``user``.

    Folders of other users are not entered, not even those in a folder of ``user``.

    Raises:
        OSError: the folder cannot be listed.
    """
    deadline = time.monotonic() + MAX_REMOVE_SECONDS
    for name in map(os.fsencode, os.listdir(top)):
        with suppress(OSError):
            status = os.stat(name, dir_fd=top, follow_symlinks=False)
            if status.st_uid != user:
                continue
            if not stat.S_ISDIR(status.st_mode):
                os.unlink(name, dir_fd=top)
                continue
            folder = open_folder(name, dir_fd=top, owner=user)
            try:
                _empty_folder(folder, user, deadline)
            finally:
                os.close(folder)
            os.rmdir(name, dir_fd=top)


def open_folder(name: bytes, *, dir_fd: int | None = None, owner: int | None = None) -> int:
    """Open a folder, after giving its owner access to it if necessary; never follows a link.

    Raises:
        OSError: it is not a folder, or not one of ``owner``.
    """
    try:
        folder = os.open(name, OPEN_FLAGS, dir_fd=dir_fd)
    except PermissionError:
        _allow_access(name, dir_fd)
        folder = os.open(name, OPEN_FLAGS, dir_fd=dir_fd)
    if owner is not None and os.fstat(folder).st_uid != owner:
        os.close(folder)
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    return folder


def _allow_access(name: bytes, dir_fd: int | None) -> None:
    """Let this process's user into a closed folder of its own."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, 0o700, dir_fd=dir_fd, follow_symlinks=False)
        return
    # Not by name: a link could take its place. A descriptor without access cannot be changed
    # directly, but through its entry in /proc, which leads to this very folder.
    folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        if os.fstat(folder).st_uid == os.geteuid():
            os.chmod(b"/proc/self/fd/%d" % folder, 0o700)
    finally:
        os.close(folder)


def _allow_use(folder: int, needed: int) -> None:
    """Let this process's user into an opened folder of its own whose mode lacks ``needed`` bits.

    A folder can be open without them: a capability may permit to read what the mode forbids.
    """
    status = os.fstat(folder)
    if status.st_uid == os.geteuid() and status.st_mode & needed != needed:
        os.fchmod(folder, 0o700)


def _empty_folder(top: int, owner: int | None, deadline: float) -> None:
    """Remove all entries of an opened folder.

    Raises:
        OSError: an entry cannot be removed, or ``deadline`` has passed.
    """
    _allow_use(top, stat.S_IRWXU)
    number = 0
    while names := os.listdir(top):
        for name in names:
            if time.monotonic() > deadline:
                raise TimeoutError
            number = _remove_entry(top, os.fsencode(name), number, owner)


def _remove_entry(top: int, name: bytes, number: int, owner: int | None) -> int:
    """Remove one entry of ``top``; move its subfolders to ``top``, named by unused numbers."""
    if _try_unlink(top, name):
        return number
    folder = open_folder(name, dir_fd=top, owner=owner)
    try:
        _allow_use(folder, stat.S_IRWXU)
        for below in map(os.fsencode, os.listdir(folder)):
            if not _try_unlink(folder, below):
                number = _move_up(folder, below, top, number)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return number


def _move_up(folder: int, name: bytes, top: int, number: int) -> int:
    allowed = False
    while True:
        number += 1
        try:
            os.rename(name, b"%d" % number, src_dir_fd=folder, dst_dir_fd=top)
        except PermissionError:  # moving a folder changes its `..`
            if allowed:
                raise
            _allow_access(name, folder)
            allowed = True
        except OSError as error:
            if error.errno not in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}:
                raise
        else:
            return number


def _try_unlink(folder: int, name: bytes) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:  # an empty folder that a rename has replaced
        return True
    except (IsADirectoryError, PermissionError):
        return False
    return True
