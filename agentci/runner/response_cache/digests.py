"""What lies on disk now, as short texts that are the same where it is the same."""

import hashlib
import os
import stat
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Final

# What takes longer to read than most programs to run.
MAX_FILE_BYTES: Final = 256 * 1024**2

FILE, FOLDER, LINK = "file ", "folder ", "link "


class Digests:
    """Digests of files, of the names in folders, and of links; each is taken once.

    Args:
        own: paths that count as not there: what a run itself writes.
    """

    def __init__(self, own: Collection[str]) -> None:
        self._own = own
        self._lock = threading.Lock()
        self._known: dict[str, str | None] = {}

    def of(self, path: str) -> str | None:
        """What ``path`` is now; None where it is not there, or has no content of its own.

        A folder is the names in it, which of them are folders, and where the links among them lead.
        """
        with self._lock:
            if path not in self._known:
                try:
                    self._known[path] = self._taken(path)
                except (OSError, ValueError):
                    self._known[path] = None
            return self._known[path]

    def forget(self) -> None:
        """Take all anew from now on."""
        with self._lock:
            self._known.clear()

    def _taken(self, path: str) -> str | None:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return LINK + _sha256(os.fsencode(Path(path).readlink()))
        if stat.S_ISDIR(mode):
            return FOLDER + _sha256(b"\0".join(self._names(path)))
        if not stat.S_ISREG(mode):
            return None
        digest = _content(path)
        return None if digest is None else FILE + digest

    def _names(self, folder: str) -> list[bytes]:
        with os.scandir(folder) as entries:
            return sorted(
                os.fsencode(f"{_kind(entry)}/{entry.name}")
                for entry in entries
                if entry.path not in self._own
            )


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return f"{LINK}{Path(entry.path).readlink()}"
    return FOLDER if entry.is_dir() else FILE


def _content(path: str) -> str | None:
    """The sha256 of a regular file that is not too large."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
