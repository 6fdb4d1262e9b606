"""Listings of git trees, as GitHub's API writes them, and the names that git gives to contents."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from msgspec import Struct

from agentci.errors import RefusedError
from agentci.remote.sources.refs import shown
from agentci.remote.sources.source import MAX_FILES

FOLDER: Final = "040000"
EXECUTABLE: Final = "100755"

_LINK: Final = "120000"
_SUBMODULE: Final = "160000"


class Entry(Struct, frozen=True, kw_only=True):
    """One file or folder of a tree.

    Attributes:
        path: from the listed tree, with ``/``.
        mode: as git writes it, six octal digits.
        sha: git's name of its content.
        size: in bytes; 0 for folders.
    """

    path: str
    mode: str
    sha: str
    size: int


class Tree(Struct, frozen=True, kw_only=True):
    """A listing.

    Attributes:
        truncated: it was too long for the server, which left some entries out.
    """

    entries: tuple[Entry, ...]
    truncated: bool


def parse_tree(content: bytes) -> Tree:
    """Read the listing of a tree.

    Raises:
        ValueError: it is none.
    """
    try:
        data = json.loads(content)
        entries = tuple(_entries(data["tree"]))
        return Tree(entries=entries, truncated=bool(data.get("truncated")))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def root_of(commit: str) -> Entry:
    """The root folder of a commit, which has no entry in any listing."""
    return Entry(path="", mode=FOLDER, sha=commit, size=0)


def walk(
    root: Entry, folder: str, list_folder: Callable[[Entry], Sequence[Entry]]
) -> tuple[Entry, ...]:
    """List ``folder`` and all below it, and what lies on the way there; of the root itself alone.

    For repositories that are too large to be listed at once.

    Raises:
        RefusedError: there is too much below it.
    """
    here = list_folder(root)
    found = list(here)
    if not folder:
        return tuple(found)
    for step in (*reversed(PurePosixPath(folder).parents), PurePosixPath(folder))[1:]:
        way = [entry for entry in here if entry.path == step.as_posix() and entry.mode == FOLDER]
        here = list_folder(way[0]) if way else ()
        found += here
    left = [entry for entry in here if entry.mode == FOLDER]
    walked = 0
    while left:
        walked += 1
        if walked > MAX_FILES:
            raise RefusedError(f"{shown(folder)} holds more than {MAX_FILES} folders")
        here = list_folder(left.pop())
        found += here
        left += [entry for entry in here if entry.mode == FOLDER]
    return tuple(found)


def check_kind(entry: Entry) -> None:
    """Refuse what is no plain file: it would stand for something that lies elsewhere.

    Raises:
        RefusedError: it is not.
    """
    if entry.mode == _LINK:
        message = f"{shown(entry.path)} is a symbolic link"
        raise RefusedError(message, hint="keep the file itself in the program's folder")
    if entry.mode == _SUBMODULE:
        message = f"{shown(entry.path)} is a submodule"
        raise RefusedError(message, hint="keep its files in the program's folder")


def blob_sha(content: bytes) -> str:
    """Git's name of a file's content."""
    named = b"blob %d\0%b" % (len(content), content)
    return hashlib.sha1(named, usedforsecurity=False).hexdigest()


def _entries(data: Any) -> Iterator[Entry]:
    for each in data:
        entry = Entry(
            path=each["path"], mode=each["mode"], sha=each["sha"], size=each.get("size") or 0
        )
        if not all(isinstance(text, str) for text in (entry.path, entry.mode, entry.sha)):
            raise TypeError("a path, mode or sha is no text")
        if type(entry.size) is not int or entry.size < 0:
            raise TypeError("a size is no number of bytes")
        yield entry
