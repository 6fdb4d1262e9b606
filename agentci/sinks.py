"""Puts reports where they are read: files, the log, the outputs and the page of a workflow run."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agentci.errors import InputError
from agentci.workspace import Workspace

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
            _give_to_owner(path, workspace)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"--output-dir {given} cannot be written to: {error.strerror}"
        raise InputError.of(message) from None
    return folder


def write_files(folder: Path, texts: Mapping[str, str], workspace: Workspace) -> None:
    """Write each text whole or not at all, owned by the owner of the workspace."""
    for name, text in texts.items():
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        try:
            with open(descriptor, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), FILE_MODE)
                os.fsync(file.fileno())
            _give_to_owner(Path(temporary), workspace)
            Path(temporary).replace(folder / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def append(file: Path, text: str) -> None:
    """Add ``text`` to a file that the runner reads after the step."""
    with file.open("a", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _give_to_owner(path: Path, workspace: Workspace) -> None:
    """Root inside a container must not leave files that later steps cannot touch."""
    if os.geteuid() == 0:
        owner = workspace.root.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
