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
# Python rewrites the first by itself, and Git the second.
IGNORED_FOLDERS: Final = frozenset({"__pycache__", ".git"})


class ContentDigests:
    """Digests of files and folders, each computed once; safe to share between threads.

    Args:
        excluded: real paths of files and folders to leave out, such as a run's own reports.
    """

    def __init__(self, excluded: Collection[str] = ()) -> None:
        self._excluded = frozenset(excluded)
        self._lock = threading.Lock()
        self._known: dict[Path, str] = {}

    def compute(self, path: Path) -> str:
        """The digest of a file, or of the names and contents of all files below a folder.

        Raises:
            OSError: something in it cannot be read, or it is too large.
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
        if not Path(real).is_dir():
            return _read_file(real)[0]
        digest, count, size = hashlib.sha256(), 0, 0
        for name, file, link in self._list_files(real):
            content, length = ("", 0) if file is None else _read_file(file)
            count, size = count + 1, size + length
            if count > MAX_FILES or size > MAX_BYTES:
                raise OSError(
                    f"{path} has more than {MAX_FILES:,} files or {MAX_BYTES // 1024**2} MiB"
                )
            digest.update(os.fsencode(f"{name}\0{link}\0{content}\0"))
        return digest.hexdigest()

    def _list_files(self, folder: str) -> Iterator[tuple[str, str | None, str]]:
        """Name, real path and link target of each file below; of other links no real path.

        Links to folders are followed, each folder once.
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
                if entry.is_dir() and entry.name not in IGNORED_FOLDERS:
                    pending.append((f"{name}/", real))
                is_file = entry.is_file() and real not in self._excluded
                if is_file or link:
                    yield name, real if is_file else None, link


def _read_file(path: str) -> tuple[str, int]:
    """The digest of a regular file with its permission to be executed, and its size in bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        if status.st_size > MAX_BYTES:
            raise OSError(f"{path} has more than {MAX_BYTES // 1024**2} MiB")
        content = hashlib.file_digest(file, "sha256").hexdigest()
    executable = "x" if status.st_mode & stat.S_IXUSR else "-"
    return f"{executable} {content}", status.st_size
