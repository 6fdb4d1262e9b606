"""Empties a cache: what is ours in it, and nothing that anybody else put there."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentci.store.atomic import TEMPORARY, remove
from agentci.store.founding import ENVIRONMENTS, EVALUATORS, INDEX, OURS, ours
from agentci.store.index import SUFFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
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
    made = ours(folder)
    evaluators = [path for path in _names_in(folder / EVALUATORS / INDEX) if path.endswith(SUFFIX)]
    environments = [
        path
        for path in made
        if path.parent.name == ENVIRONMENTS and not path.name.startswith(TEMPORARY)
    ]
    before = _size_of(folder)
    for path in made:
        remove(path)
    left = ours(folder)
    for name in OURS:
        with suppress(OSError):
            (folder / name).rmdir()
    return Cleared(
        evaluators=len(evaluators),
        environments=len(environments),
        freed_bytes=max(0, before - _size_of(folder)),
        left=tuple(left),
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
