"""Puts files where others read them at the same time: whole, or not at all, whatever happens.

What is half made has a name of its own, by which it is known for what it is and swept later.
"""

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentci._util.ownership import FILE_MODE, give_to_owner, set_mode

TEMPORARY: Final = ".tmp-"

# No writing takes that long: whoever began it was killed.
STALE_SECONDS: Final = 3600.0


def place_file(path: Path, content: bytes, *, owner: Path | None) -> None:
    """Write a file that is on disk, whole, before it gets its name; in place of an older one.

    Raises:
        OSError: it cannot be written; an older one is still there.
    """
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
            file.write(content)
        set_mode(Path(name), FILE_MODE)
        give_to_owner(Path(name), owner)
        settle(Path(name))
        Path(name).replace(path)
    except BaseException:
        remove(Path(name))
        raise
    settle(path.parent)


def settle(path: Path) -> None:
    """Wait until a file or a folder's list of names is on disk, as far as the disk can tell."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> bool:
    """Remove a file, a link or a whole folder, as far as we may; whether it is gone.

    A folder is gone at once: nobody finds the half of it.
    """
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            aside = path.with_name(f"{TEMPORARY}{os.urandom(8).hex()}")
            path.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
    return not os.path.lexists(path)


def sweep(folder: Path) -> None:
    """Remove what processes left half made in ``folder`` when they were killed."""
    with suppress(OSError):
        for path in temporaries(folder):
            with suppress(OSError):
                if path.lstat().st_mtime < time.time() - STALE_SECONDS:
                    remove(path)


def temporaries(folder: Path) -> list[Path]:
    """All that is being made in ``folder``, or was left half made.

    Raises:
        OSError: it cannot be read.
    """
    return [path for path in folder.iterdir() if path.name.startswith(TEMPORARY)]
