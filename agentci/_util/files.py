"""Puts reports where they are read: files, the log, the outputs and the page of a workflow run."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from agentci._util.ownership import give_to_owner
from agentci._util.workspace import Workspace
from agentci.errors import InputError

FILE_MODE = 0o644


def open_folder(given: str, workspace: Workspace) -> Path:
    """Make the folder for reports, before anything is judged in vain.

    Raises:
        InputError: it cannot be made or written to, or a link leads it out of the workspace.
    """
    folder = workspace.cwd / given
    if not Path(given).is_absolute() and not workspace.holds(folder):
        raise InputError.of(f"--output-dir {given} leads out of the workspace")
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for path in missing:
            give_to_owner(path, workspace.root)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"--output-dir {given} cannot be written to: {error.strerror}"
        raise InputError.of(message) from None
    return folder


def write_files(
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
            _write(folder / name, pieces, workspace)
        except OSError as error:
            refused[name] = error.strerror or str(error)
            with suppress(OSError):
                (folder / name).unlink()
    return refused


def append(file: Path, text: str) -> str | None:
    """Add ``text`` to a file that the runner reads after the step, or say why that cannot be."""
    try:
        with file.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        return error.strerror or str(error)
    return None


def size_of(file: Path) -> int:
    """Bytes that others, or an earlier command of the step, wrote there; 0 where it is not."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def say(text: str, stream: TextIO) -> None:
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


def _write(path: Path, pieces: Iterable[str], workspace: Workspace) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
            file.writelines(pieces)
            file.flush()
            os.fchmod(file.fileno(), FILE_MODE)
            os.fsync(file.fileno())
        give_to_owner(Path(temporary), workspace.root)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
