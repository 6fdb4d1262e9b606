"""Digests of the files and folders that a cached response depends on."""

import hashlib
import os
import stat
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

# A folder that takes longer to read than most programs take to run is not cached.
MAX_FILES: Final = 10_000
MAX_BYTES: Final = 256 * 1024**2
CHUNK_BYTES: Final = 256 * 1024
# Python rewrites the first by itself, and Git the second.
IGNORED_FOLDERS: Final = frozenset({"__pycache__", ".git"})


class ContentDigests:
    """Digests of files and folders, each computed once; safe to share between threads.

    Args:
        root: real path of the workspace; what is beyond a link out of it is never read.
        excluded: real paths of files and folders to leave out, such as a run's own reports.
    """

    def __init__(self, root: Path, excluded: Collection[str] = ()) -> None:
        self._root = root
        self._excluded = frozenset(excluded)
        self._lock = threading.Lock()
        self._known: dict[Path, str] = {}

    def compute(self, path: Path) -> str:
        """The digest of a file, or of the names and contents of all files below a folder.

        Raises:
            OSError: something in it cannot be read or is a link out of the workspace, or it is too
                large.
        """
        with self._lock:
            if path not in self._known:
                self._known[path] = self._compute(path)
            return self._known[path]

    def find_changed(self) -> set[Path]:
        """All paths whose content is not what it was when its digest was computed."""
        with self._lock:
            return {path for path, digest in self._known.items() if self._differs(path, digest)}

    def _differs(self, path: Path, digest: str) -> bool:
        try:
            return self._compute(path) != digest
        except OSError:
            return True

    def _compute(self, path: Path) -> str:
        real = os.path.realpath(path)
        if path.is_relative_to(self._root):
            self._check_inside(path, real, self._root)
        if not Path(real).is_dir():
            return _read_file(real, MAX_BYTES)[0]
        digest, size = hashlib.sha256(), 0
        for count, (name, file, link) in enumerate(self._list_files(real), 1):
            if count > MAX_FILES:
                raise OSError(f"{path} has more than {MAX_FILES:,} files")
            content, length = ("", 0) if file is None else _read_file(file, MAX_BYTES - size)
            size += length
            digest.update(os.fsencode(f"{name}\0{link}\0{content}\0"))
        return digest.hexdigest()

    def _list_files(self, folder: str) -> Iterator[tuple[str, str | None, str]]:
        """Name, real path and link target of each file below; of other links no real path.

        Links to folders are followed, each folder once.

        Raises:
            OSError: a folder cannot be listed, or a link leads out of it and of the workspace.
        """
        pending, seen = [("", folder)], set[str]()
        while pending:
            prefix, current = pending.pop()
            if current in self._excluded or current in seen:
                continue
            seen.add(current)
            with os.scandir(current) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            for entry in entries:
                name, real, link = f"{prefix}{entry.name}", entry.path, ""
                if entry.is_symlink():
                    real, link = os.path.realpath(entry.path), str(Path(entry.path).readlink())
                    self._check_inside(entry.path, real, folder)
                if entry.is_dir() and entry.name not in IGNORED_FOLDERS:
                    pending.append((f"{name}/", real))
                is_file = entry.is_file() and real not in self._excluded
                if is_file or link:
                    yield name, real if is_file else None, link

    def _check_inside(self, path: str | Path, real: str, folder: str | Path) -> None:
        if not any(map(Path(real).is_relative_to, (self._root, folder))):
            raise OSError(f"{path} is a link out of the workspace")


def _read_file(path: str, limit: int) -> tuple[str, int]:
    """The digest of a regular file with its permission to be executed, and its size in bytes.

    Raises:
        OSError: it cannot be read, is not a regular file, or has more than ``limit`` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        digest, size = hashlib.sha256(), 0
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)  # not `st_size`: some files of the system have more than it says
            if size > limit:
                raise OSError(f"the folder of {path} has more than {MAX_BYTES // 1024**2} MiB")
    executable = "x" if status.st_mode & stat.S_IXUSR else "-"
    return f"{executable} {digest.hexdigest()}", size
