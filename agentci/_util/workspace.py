"""The user's files: how they are named in messages, found and read, and what keeps them inside."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci.errors import InputError
from agentci.model.place import Place

CHUNK_BYTES: Final = 64 * 1024


class Workspace(Struct, frozen=True, kw_only=True):
    """The folder that configs may name files in.

    Attributes:
        root: real path of the repository, or of the working directory outside of one.
        cwd: real path of the working directory.
    """

    root: Path
    cwd: Path

    def name_of(self, path: Path) -> str:
        """``path`` as it is shown: relative to the root where it lies inside, with ``/``."""
        absolute = Path(os.path.normpath(self.cwd / path))
        if absolute.is_relative_to(self.root):
            return absolute.relative_to(self.root).as_posix()
        return absolute.as_posix()

    def holds(self, path: Path) -> bool:
        """Whether ``path`` lies inside after all symbolic links are followed."""
        return real(path).is_relative_to(self.root)


def workspace_of(cwd: Path, *, root: Path | None = None) -> Workspace:
    """The workspace around ``cwd``: ``root`` where given, else the git repository."""
    here = real(cwd)
    if root is not None and here.is_relative_to(real(root)):
        return Workspace(root=real(root), cwd=here)
    for folder in (here, *here.parents):
        if _mode(folder / ".git"):
            return Workspace(root=folder, cwd=here)
    return Workspace(root=here, cwd=here)


def real(path: Path) -> Path:
    """``path`` after all symbolic links; as far as they go, where they lead in a circle."""
    return Path(os.path.realpath(path))


def is_folder(path: Path) -> bool:
    """Whether ``path`` leads to a folder; unlike pathlib, no name and no permission is too odd."""
    return stat.S_ISDIR(_mode(path))


def is_file(path: Path) -> bool:
    """Whether ``path`` leads to a regular file; as ``is_folder``."""
    return stat.S_ISREG(_mode(path))


def read_file(path: Path, *, name: str, limit_bytes: int, place: Place | None = None) -> bytes:
    """The content of a file that the user names.

    Args:
        path: the file.
        name: how messages call it.
        limit_bytes: the largest content that is accepted.
        place: where the file was named; by default problems are placed in the file itself.

    Raises:
        InputError: it is missing, a folder, too large, or may not be read.
    """
    return b"".join(
        read_chunks(path, name=name, limit_bytes=limit_bytes, place=place, chunk_bytes=-1)
    )


def read_chunks(
    path: Path,
    *,
    name: str,
    limit_bytes: int,
    place: Place | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[bytes]:
    """As ``read_file``, a chunk at a time."""
    place = place or Place(file=name)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError.of(f"{name} is a folder, not a file", place=place)
        if not stat.S_ISREG(status.st_mode):
            raise InputError.of(f"{name} is not a regular file", place=place)
        if status.st_size > limit_bytes:
            message = f"{name} is larger than {limit_bytes // 1024**2} MiB"
            raise InputError.of(message, place=place, hint="split it into several files")
        step = min(chunk_bytes, status.st_size + 1)  # room that is not needed takes time to make
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(step):
                yield chunk
    except FileNotFoundError:
        raise InputError.of(f"{name} does not exist", place=place) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError.of(f"{name} cannot be read: {reason}", place=place) from None


def _mode(path: Path) -> int:
    """What ``path`` leads to, as ``stat`` says it; 0 where it leads nowhere that we may see."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0
