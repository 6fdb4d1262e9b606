"""Gives what we make to whom it should belong, with a mode that does not hang on the umask."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o644
PROGRAM_MODE: Final = 0o755
FOLDER_MODE: Final = 0o755


def give_to_owner(path: Path, owner: Path | None) -> None:
    """Root inside a container must not leave files that later steps cannot touch.

    Where root has no right to give files away, or the file system knows no owners, they stay its
    own: to keep nothing at all would help nobody.

    Args:
        path: what we made; a link itself, not what it leads to.
        owner: a path whose owner gets it; None leaves it as it is.
    """
    if owner is not None and os.geteuid() == 0:
        status = owner.stat()
        with suppress(OSError):
            os.chown(path, status.st_uid, status.st_gid, follow_symlinks=False)


def make_folder(folder: Path, owner: Path | None) -> None:
    """Have ``folder`` and those above it; the ones that were missing go to the owner.

    Raises:
        OSError: it cannot be made, or is something else.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        set_mode(path, FOLDER_MODE)
        give_to_owner(path, owner)


def set_mode(path: Path, mode: int) -> None:
    """Set the mode of a file or folder of ours; never of what a link leads to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
