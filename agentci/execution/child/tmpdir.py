"""Make and remove the private folder of a program, regardless of its content."""

import errno
import os
import stat
import time
from contextlib import suppress
from typing import Final

FOLDERS: Final = (b"home", b"tmp")
# Removal takes about a second on a machine that is not overloaded, at any depth.
MAX_REMOVE_SECONDS: Final = 20.0
SHARED_MEMORY: Final = b"/dev/shm"
# Size counted for an empty file, so that the number of files is limited too.
MIN_FILE_BYTES: Final = 4096
OPEN_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_tmpdir(path: bytes, user: int | None) -> None:
    """Make the folder, with folders ``home`` and ``tmp`` in it that only ``user`` may enter.

    Raises:
        OSError: the folder exists already, or cannot be made.
    """
    os.mkdir(path, 0o700)
    for name in FOLDERS:
        os.mkdir(os.path.join(path, name), 0o700)
    if user is not None:
        for folder in (path, *(os.path.join(path, name) for name in FOLDERS)):
            os.chown(folder, user, user)


def measure_size(path: bytes, enough: int) -> int:
    """Measure the bytes of disk that a folder uses; stop at ``enough`` bytes."""
    taken, unseen = 0, [path]
    while unseen and taken < enough:
        with suppress(OSError), os.scandir(unseen.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    blocks = entry.stat(follow_symlinks=False).st_blocks
                    taken += max(blocks * 512, MIN_FILE_BYTES)
                    if entry.is_dir(follow_symlinks=False):
                        unseen.append(entry.path)
    return taken


def remove_tmpdir(path: bytes, *, seconds: float = MAX_REMOVE_SECONDS) -> bool:
    """Remove the folder within ``seconds``; return whether it is removed.

    Call it when no process can write to the folder any more. It works at any depth: nested folders
    are moved up before they are listed, so that no path grows long.
    """
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            os.chmod(path, 0o700)
        top = os.open(path, OPEN_FLAGS)
    except OSError:
        return False
    deadline, number = time.monotonic() + seconds, 0
    try:
        while names := os.listdir(top):
            for name in names:
                if time.monotonic() > deadline:
                    return False
                number = _remove_entry(top, os.fsencode(name), number)
        os.rmdir(path)
    except OSError:
        return False
    finally:
        os.close(top)
    return True


def clear_shared_memory(user: int) -> None:
    """Remove what ``user``, the user of one program only, has left in shared memory."""
    with suppress(OSError), os.scandir(SHARED_MEMORY) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == user:
                    if entry.is_dir(follow_symlinks=False):
                        remove_tmpdir(entry.path)
                    else:
                        os.unlink(entry.path)


def _remove_entry(top: int, name: bytes, number: int) -> int:
    """Remove one entry of ``top``; move its subfolders to ``top``, named by unused numbers."""
    if _try_unlink(top, name):
        return number
    os.chmod(name, 0o700, dir_fd=top)
    folder = os.open(name, OPEN_FLAGS, dir_fd=top)
    try:
        for below in map(os.fsencode, os.listdir(folder)):
            if not _try_unlink(folder, below):
                os.chmod(below, 0o700, dir_fd=folder)
                number = _move_up(folder, below, top, number)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return number


def _move_up(folder: int, name: bytes, top: int, number: int) -> int:
    while True:
        number += 1
        try:
            os.rename(name, b"%d" % number, src_dir_fd=folder, dst_dir_fd=top)
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
