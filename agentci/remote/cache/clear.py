"""Empties a cache: what is ours in it, and nothing that anybody else put there."""

import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agentci._util.atomic import remove
from agentci._util.cache.init import ENVIRONMENTS, EVALUATORS, INDEX, OURS, ours
from agentci.remote.cache.index import SUFFIX


class Cleared(Struct, frozen=True, kw_only=True):
    """What is no longer there.

    Attributes:
        left: what could not be removed.
    """

    evaluators: int
    environments: int
    freed_bytes: int
    left: tuple[Path, ...]


def clear(folder: Path) -> Cleared:
    """Empty a cache; its tag stays, by which it is known the next time.

    Raises:
        OSError: it cannot be read.
    """
    evaluators, environments = _counts(folder)
    size = _size_of(folder)
    for path in ours(folder):
        remove(path)
    left = ours(folder)
    for name in OURS:
        with suppress(OSError):
            (folder / name).rmdir()
    evaluators_left, environments_left = _counts(folder)
    return Cleared(
        evaluators=evaluators - evaluators_left,
        environments=environments - environments_left,
        freed_bytes=size - _size_of(folder),
        left=tuple(left),
    )


def _counts(folder: Path) -> tuple[int, int]:
    """How many evaluators and environments there are, as far as they can be seen."""
    names = OURS[ENVIRONMENTS]
    return (
        sum(name.endswith(SUFFIX) for name in _names_in(folder / EVALUATORS / INDEX)),
        sum(bool(names.fullmatch(name)) for name in _names_in(folder / ENVIRONMENTS)),
    )


def _names_in(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _size_of(folder: Path) -> int:
    """Of all files below ``folder``, in bytes, as far as they can be seen."""
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{path}/{name}").st_size
    return size
