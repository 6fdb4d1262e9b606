"""Files: ownership, atomic writes, temporary data, and output of reports."""

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, TextIO

from agentci._util.workspace import Workspace
from agentci.errors import InputError

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


TEMPORARY_PREFIX: Final = ".tmp-"

# No writing takes that long: whoever began it was killed.
STALE_SECONDS: Final = 3600.0


def write_file_atomically(path: Path, content: bytes, *, owner: Path | None) -> None:
    """Write a file that is on disk, whole, before it gets its name; in place of an older one.

    Raises:
        OSError: it cannot be written; an older one is still there.
    """
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
            file.write(content)
        set_mode(Path(name), FILE_MODE)
        give_to_owner(Path(name), owner)
        fsync_path(Path(name))
        Path(name).replace(path)
    except BaseException:
        remove_path(Path(name))
        raise
    fsync_path(path.parent)


def fsync_path(path: Path) -> None:
    """Wait until a file or a folder's list of names is on disk, as far as the disk can tell."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_path(path: Path) -> bool:
    """Remove a file, a link or a whole folder, as far as we may; whether it is gone.

    A folder is gone at once: nobody finds the half of it.
    """
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            aside = path.with_name(f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}")
            path.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
    return not os.path.lexists(path)


def remove_stale_temporaries(folder: Path) -> None:
    """Remove what processes left half made in ``folder`` when they were killed."""
    with suppress(OSError):
        for path in list_temporaries(folder):
            with suppress(OSError):
                if path.lstat().st_mtime < time.time() - STALE_SECONDS:
                    remove_path(path)


def list_temporaries(folder: Path) -> list[Path]:
    """All that is being made in ``folder``, or was left half made.

    Raises:
        OSError: it cannot be read.
    """
    return [path for path in folder.iterdir() if path.name.startswith(TEMPORARY_PREFIX)]


# Most runs never come to need a file.
MEMORY_BYTES: Final = 8 * 1024**2

_SIZE_BITS: Final = 40
_NO_ROOM: Final = "make room there, or let TMPDIR name a folder that has some"


class SpooledChunks:
    """Chunks of bytes, of any number and size, in a file without a name that goes with the spool.

    Chunks may be taken by several threads at a time, once all are put.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._file: IO[bytes] | None = None
        self._filed = 0
        self._recent = bytearray()

    def append(self, chunk: bytes) -> int:
        """Keep ``chunk``; the number is what it is taken by.

        Raises:
            InputError: there is no room for it.
        """
        if len(self._recent) + len(chunk) > self._memory_bytes:
            try:
                self._move_to_file()
            except OSError as error:
                message = f"the recordings need more room than there is: {error.strerror or error}"
                raise InputError.from_message(message, hint=_NO_ROOM) from None
        offset = self._filed + len(self._recent)
        self._recent += chunk
        return offset << _SIZE_BITS | len(chunk)

    def read(self, number: int) -> bytes:
        """The chunk that was put; it stays."""
        offset, size = number >> _SIZE_BITS, number & (1 << _SIZE_BITS) - 1
        if self._file is None or offset >= self._filed:
            start = offset - self._filed
            return bytes(self._recent[start : start + size])
        return os.pread(self._file.fileno(), size, offset)

    def _move_to_file(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="agentci-")  # noqa: SIM115 (see finalize)
            weakref.finalize(self, self._file.close)
        moved, left = self._filed, memoryview(self._recent)
        while left:
            written = os.pwrite(self._file.fileno(), left, moved)
            moved, left = moved + written, left[written:]
        self._filed, self._recent = moved, bytearray()


OUTPUT_FILE_MODE = 0o644


def prepare_output_folder(given: str, workspace: Workspace) -> Path:
    """Make the folder for reports, before anything is judged in vain.

    Raises:
        InputError: it cannot be made or written to, or a link leads it out of the workspace.
    """
    folder = workspace.cwd / given
    if not Path(given).is_absolute() and not workspace.contains(folder):
        raise InputError.from_message(f"--output-dir {given} leads out of the workspace")
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for path in missing:
            give_to_owner(path, workspace.root)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"--output-dir {given} cannot be written to: {error.strerror}"
        raise InputError.from_message(message) from None
    return folder


def write_output_files(
    folder: Path, files: Mapping[str, Iterable[str]], workspace: Workspace
) -> dict[str, str]:
    """Write each file whole or not at all, owned by the owner of the workspace.

    Args:
        files: pieces of text, by name.

    Returns:
        By name, why a file could not be written; the others are. Nor is an old one of that name
        left, which would speak of another run.
    """
    refused: dict[str, str] = {}
    for name, pieces in files.items():
        try:
            _write_output_file(folder / name, pieces, workspace)
        except OSError as error:
            refused[name] = error.strerror or str(error)
            with suppress(OSError):
                (folder / name).unlink()
    return refused


def append_text(file: Path, text: str) -> str | None:
    """Add ``text`` to a file that the runner reads after the step, or say why that cannot be."""
    try:
        with file.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        return error.strerror or str(error)
    return None


def get_file_size(file: Path) -> int:
    """Bytes that others, or an earlier command of the step, wrote there; 0 where it is not."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def write_to_stream(text: str, stream: TextIO) -> None:
    """Print at once; once a stream takes nothing any more, the rest of the run goes on in silence.

    The verdict does not hang on who listens.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _write_output_file(path: Path, pieces: Iterable[str], workspace: Workspace) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
            file.writelines(pieces)
            file.flush()
            os.fchmod(file.fileno(), OUTPUT_FILE_MODE)
            os.fsync(file.fileno())
        give_to_owner(Path(temporary), workspace.root)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
