"""What a program takes along into its container: its folder, as an archive made in memory."""

import io
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError
from agentci.execution.child_process.pipes import MEBIBYTE

# Enough for programs with their data; a whole repository is no folder of a program.
MAX_BYTES: Final = 64 * MEBIBYTE
MAX_FILES: Final = 10_000

LEFT_BEHIND: Final = frozenset({"__pycache__"})
FOLDER_MODE: Final = 0o755
FILE_MODE: Final = 0o644
OWN_FOLDER: Final = "give the program a folder of its own"


class Luggage:
    """The folders of one run, each packed once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._packed: dict[Path, bytes] = {}

    def pack(self, folder: Path) -> bytes:
        """The archive of ``folder``: what is hidden stays behind, and links are not followed.

        It holds the same bytes for the same files, which belong to root and can be read by all.

        Raises:
            EvaluatorError: it holds too much, or something that cannot be read.
        """
        with self._lock:
            if folder not in self._packed:
                try:
                    self._packed[folder] = _pack(folder)
                except OSError as error:
                    problem = f"could not be copied into a container: {error}"
                    raise EvaluatorError(problem) from error
            return self._packed[folder]


def _pack(folder: Path) -> bytes:
    buffer = io.BytesIO()
    size = 0
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for count, path in enumerate(_paths(folder), start=1):
            entry = _entry(path, folder)
            size += entry.size
            if size > MAX_BYTES or count > MAX_FILES:
                raise EvaluatorError(
                    f"could not be copied into a container: {folder} holds more than"
                    f" {MAX_BYTES // MEBIBYTE} MiB or {MAX_FILES} files; {OWN_FOLDER}"
                )
            if entry.isreg():
                content = path.read_bytes()
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
            else:
                archive.addfile(entry)
    return buffer.getvalue()


def _paths(folder: Path) -> Iterator[Path]:
    """All that goes along, folders before what is in them, in the same order on every machine."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith(".") or entry.name in LEFT_BEHIND:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield path
            yield from _paths(path)
        elif entry.is_symlink() or entry.is_file():
            yield path


def _entry(path: Path, folder: Path) -> tarfile.TarInfo:
    status = path.lstat()
    entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
    if path.is_symlink():
        entry.type = tarfile.SYMTYPE
        entry.linkname = os.fsdecode(path.readlink())
    elif path.is_dir():
        entry.type = tarfile.DIRTYPE
        entry.mode = FOLDER_MODE
    else:
        entry.size = status.st_size
        entry.mode = FOLDER_MODE if status.st_mode & 0o111 else FILE_MODE
    return entry
