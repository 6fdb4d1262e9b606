"""Files: ownership, atomic writes, temporary data, and output of reports."""

import io
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, TextIO, cast

from agentci._util.text.secrets import Redactor
from agentci._util.workspace import ResolvedPath, Workspace
from agentci.errors import InputError
from agentci.model.values import COMMAND_LINE

FILE_MODE: Final = 0o644
PROGRAM_MODE: Final = 0o755
FOLDER_MODE: Final = 0o755


def give_to_owner(path: Path, owner: Path | None) -> None:
    """Change the owner of a path, so that later steps can change what root in a container created.

    If root may not change owners, or the file system has none, the path stays owned by root.

    Args:
        path: the created path; a link itself, not its target.
        owner: path whose owner is used; None changes nothing.
    """
    if owner is not None and os.geteuid() == 0:
        status = owner.stat()
        with suppress(OSError):
            os.chown(path, status.st_uid, status.st_gid, follow_symlinks=False)


def make_folder(folder: Path, owner: Path | None) -> None:
    """Create ``folder`` and missing parents; the created ones get the owner.

    Raises:
        OSError: it cannot be created, or is not a folder.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        set_mode(path, FOLDER_MODE)
        give_to_owner(path, owner)


def set_mode(path: Path, mode: int) -> None:
    """Set the mode of a file or folder; never follows a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


TEMPORARY_PREFIX: Final = ".tmp-"

# No write takes this long: the process that started it was killed.
STALE_SECONDS: Final = 3600.0


def write_file_atomically(path: Path, content: bytes, *, owner: Path | None) -> None:
    """Write a file atomically: it is complete and on disk before it replaces an older one.

    Raises:
        OSError: it cannot be written; an older file is unchanged.
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
    """Flush a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_path(path: Path) -> bool:
    """Remove a file, a link or a folder, as far as permitted; return whether it is gone.

    A folder is renamed first, so that its name is never a partly removed folder.
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
    """Remove temporary files that killed processes left in ``folder``."""
    with suppress(OSError):
        for path in list_temporaries(folder):
            with suppress(OSError):
                if path.lstat().st_mtime < time.time() - STALE_SECONDS:
                    remove_path(path)


def list_temporaries(folder: Path) -> list[Path]:
    """List the temporary files and folders in ``folder``.

    Raises:
        OSError: it cannot be read.
    """
    return [path for path in folder.iterdir() if path.name.startswith(TEMPORARY_PREFIX)]


# Most runs stay below this and need no file.
MEMORY_BYTES: Final = 8 * 1024**2

_SIZE_BITS: Final = 40
_NO_ROOM: Final = "free disk space there, or set TMPDIR to a folder with more space"


class SpooledChunks:
    """Chunks of bytes in memory and, beyond a size, in an unnamed temporary file.

    Several threads may read at the same time, once all chunks are appended.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._file: IO[bytes] | None = None
        self._filed = 0
        self._recent = bytearray()

    def append(self, chunk: bytes) -> int:
        """Store ``chunk`` and return the number to read it by.

        Raises:
            InputError: the disk is full.
        """
        if len(self._recent) + len(chunk) > self._memory_bytes:
            try:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(prefix="agentci-")  # noqa: SIM115 (see finalize)
                    weakref.finalize(self, self._file.close)
                moved, left = self._filed, memoryview(self._recent)
                while left:
                    written = os.pwrite(self._file.fileno(), left, moved)
                    moved, left = moved + written, left[written:]
                self._filed, self._recent = moved, bytearray()
            except OSError as error:
                message = f"not enough disk space for the traces: {error.strerror or error}"
                raise InputError.from_message(message, hint=_NO_ROOM) from None
        offset = self._filed + len(self._recent)
        self._recent += chunk
        return offset << _SIZE_BITS | len(chunk)

    def read(self, number: int) -> bytes:
        """Return the chunk of a number; it stays stored."""
        offset, size = number >> _SIZE_BITS, self.get_size(number)
        if self._file is None or offset >= self._filed:
            start = offset - self._filed
            return bytes(self._recent[start : start + size])
        return os.pread(self._file.fileno(), size, offset)

    @staticmethod
    def get_size(number: int) -> int:
        """Return the bytes of the chunk of a number."""
        return number & (1 << _SIZE_BITS) - 1


OUTPUT_FILE_MODE = 0o644


def prepare_output_folder(given: str, workspace: Workspace) -> ResolvedPath:
    """Create the folder for reports, before the evaluation starts.

    Raises:
        InputError: it cannot be created or written to, or a link leads out of the workspace.
    """
    named = f"--output-dir {given}"
    found = workspace.resolve_given(Path(given), named=named, place=COMMAND_LINE)
    folder = found.path
    if not Path(given).is_absolute() and not folder.is_relative_to(workspace.root):
        hint = "name a folder in it, or an absolute path"
        raise InputError.from_message(f"{named} is outside the workspace", hint=hint)
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for path in missing:
            give_to_owner(path, workspace.root)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"--output-dir {given} is not writable: {error.strerror}"
        raise InputError.from_message(message) from None
    return found


def write_output_files(
    folder: ResolvedPath, files: Mapping[str, Iterable[str]], workspace: Workspace
) -> dict[str, str]:
    """Write files with the owner of the workspace; each is whole or missing.

    All are written under temporary names first. Then the old files of these names, which are from
    another run, are removed, before the first new one gets its name: files of two runs are never
    mixed.

    Args:
        files: pieces of text by file name.

    Returns:
        By name, why a file could not be written; the others are written.
    """
    errors: dict[str, str] = {}
    temporaries: dict[str, Path] = {}
    try:
        for name, pieces in files.items():
            try:
                temporaries[name] = _write_temporary(folder.path / name, pieces, workspace)
            except OSError as error:
                errors[name] = error.strerror or str(error)
        for name in files:
            with suppress(OSError):
                (folder.path / name).unlink()
        for name in [*temporaries]:
            try:
                temporaries[name].replace(folder.path / name)
                del temporaries[name]
            except OSError as error:
                errors[name] = error.strerror or str(error)
    finally:
        for path in temporaries.values():
            path.unlink(missing_ok=True)
    return errors


def append_text(file: Path, text: str) -> str | None:
    """Append ``text`` to a file that the runner reads after the step; return the error, if any."""
    try:
        with file.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        return error.strerror or str(error)
    return None


def get_file_size(file: Path) -> int:
    """Return the size of a file in bytes; 0 if it does not exist."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


class _RedactedStream(io.TextIOBase):
    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor

    def write(self, text: str) -> int:
        return self._stream.write(self._redactor.redact(text))

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def redact_stream(stream: TextIO, redactor: Redactor) -> TextIO:
    """Return a stream that writes to ``stream`` without the secrets of the run."""
    return cast("TextIO", _RedactedStream(stream, redactor))


def write_to_stream(text: str, stream: TextIO) -> None:
    """Print and flush; after a write error, further output is discarded.

    A closed stdout does not change the result.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _write_temporary(path: Path, pieces: Iterable[str], workspace: Workspace) -> Path:
    """Write a file under a temporary name next to ``path``; return its path."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
            file.writelines(pieces)
            file.flush()
            os.fchmod(file.fileno(), OUTPUT_FILE_MODE)
            os.fsync(file.fileno())
        give_to_owner(Path(temporary), workspace.root)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return Path(temporary)
