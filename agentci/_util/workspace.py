"""The user's files: lookup, display names, reading, decoding, and the workspace boundary."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci.errors import InputError
from agentci.model.problem import Place

# UTF-16 and UTF-32 files start with one of these marks, or with ASCII between NULs.
_WIDE_MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_WIDE_ASCII: Final = re.compile(
    rb"\A(?:[\t\n\r -~]\0{1,3}|\0{1,3}[\t\n\r -~])(?:.?\0|\0)", re.DOTALL
)
_SAVE_AS_UTF8: Final = "save it as UTF-8"


def decode_utf8(data: bytes, *, file: str) -> str:
    """Decode UTF-8, with or without a byte order mark.

    Raises:
        InputError: the file has another encoding, or is not text.
    """
    if data.startswith(_WIDE_MARKS) or _WIDE_ASCII.match(data):
        message = "the file is UTF-16 or UTF-32, not UTF-8"
        raise InputError.from_message(message, place=Place(file=file), hint=_SAVE_AS_UTF8)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = find_place_after(data[: error.start].decode("utf-8", "replace"), file=file)
        if b"\0" in data:
            raise InputError.from_message("the file is binary, not text", place=place) from None
        message = f"the byte 0x{data[error.start]:02X} is not UTF-8"
        raise InputError.from_message(
            message, place=place, hint=_suggest_encoding(data) or _SAVE_AS_UTF8
        ) from None
    if "\0" in text:
        place = find_place_after(text[: text.index("\0")], file=file)
        raise InputError.from_message(
            "the file is binary, not text: it contains a NUL byte", place=place
        )
    return text


def find_place_after(before: str, *, file: str) -> Place:
    """Return the place of the character after ``before``."""
    lines = before.split("\n")
    return Place(file=file, line=len(lines), column=len(lines[-1]) + 1)


def _suggest_encoding(data: bytes) -> str | None:
    """Suggest the encoding of text that looks Western European."""
    # Latin-1 has no characters from 0x80 to 0x9F; damaged UTF-8 has many bytes in that range.
    if re.search(rb"[\x80-\x9f]", data):
        return None
    return f"it looks like Latin-1; {_SAVE_AS_UTF8}"


CHUNK_BYTES: Final = 64 * 1024


class Workspace(Struct, frozen=True, kw_only=True):
    """The folder in which configs may name files.

    Attributes:
        root: real path of the repository, or of the working directory outside a repository.
        cwd: real path of the working directory.
    """

    root: Path
    cwd: Path

    def display_path(self, path: Path) -> str:
        """Format ``path`` for messages: relative to the root if inside it, with ``/``."""
        absolute = Path(os.path.normpath(self.cwd / path))
        if absolute.is_relative_to(self.root):
            return absolute.relative_to(self.root).as_posix()
        return absolute.as_posix()

    def contains(self, path: Path) -> bool:
        """Whether ``path`` is inside after resolving all symbolic links."""
        return resolve_path(path).is_relative_to(self.root)


def find_workspace(cwd: Path, *, root: Path | None = None) -> Workspace:
    """Find the workspace of ``cwd``: ``root`` if given, else the git repository."""
    here = resolve_path(cwd)
    if root is not None and here.is_relative_to(resolve_path(root)):
        return Workspace(root=resolve_path(root), cwd=here)
    for folder in (here, *here.parents):
        if _read_mode(folder / ".git"):
            return Workspace(root=folder, cwd=here)
    return Workspace(root=here, cwd=here)


def resolve_path(path: Path) -> Path:
    """Resolve all symbolic links in ``path``; stops at a loop."""
    return Path(os.path.realpath(path))


def is_folder(path: Path) -> bool:
    """Whether ``path`` is a folder; unlike pathlib, never raises for odd names or permissions."""
    return stat.S_ISDIR(_read_mode(path))


def is_file(path: Path) -> bool:
    """Whether ``path`` is a regular file; never raises, like ``is_folder``."""
    return stat.S_ISREG(_read_mode(path))


def read_file(path: Path, *, name: str, limit_bytes: int, place: Place | None = None) -> bytes:
    """Read a file that the user names.

    Args:
        path: the file.
        name: for messages.
        limit_bytes: maximum size.
        place: where the file was named; by default problems are placed in the file itself.

    Raises:
        InputError: it is missing, a folder, too large, or not readable.
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
    """Read a file like ``read_file``, one chunk at a time."""
    place = place or Place(file=name)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError.from_message(f"{name} is a folder, not a file", place=place)
        if not stat.S_ISREG(status.st_mode):
            raise InputError.from_message(f"{name} is not a regular file", place=place)
        if status.st_size > limit_bytes:
            message = f"{name} is larger than {limit_bytes // 1024**2} MiB"
            raise InputError.from_message(message, place=place, hint="split it into several files")
        step = min(chunk_bytes, status.st_size + 1)  # a larger buffer takes time to allocate
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(step):
                yield chunk
    except FileNotFoundError:
        raise InputError.from_message(f"{name} does not exist", place=place) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError.from_message(f"{name} cannot be read: {reason}", place=place) from None


def _read_mode(path: Path) -> int:
    """Return the ``st_mode`` of the file that ``path`` leads to; 0 if it cannot be read."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0
