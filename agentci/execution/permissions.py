"""Whether somebody else than us could read a file: what decides who a program can run as."""

import stat
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path


def first_closed(paths: Iterable[str | Path]) -> str | None:
    """The first of ``paths`` that is not open to everybody, None where all are.

    What is not there counts as open: whoever starts it finds that out.
    """
    return next((str(path) for path in paths if not _is_open(str(path))), None)


@lru_cache(maxsize=1024)
def _is_open(path: str) -> bool:
    # A link is followed by whoever uses it, and has to be found first.
    named = Path(path).absolute()
    try:
        ways = {named, named.resolve()}
        return all(_is_readable(way) and all(map(_is_enterable, way.parents)) for way in ways)
    except (OSError, RuntimeError):  # a loop of links, to Python 3.12
        return True


def _is_readable(path: Path) -> bool:
    mode = path.stat().st_mode
    return bool(mode & stat.S_IROTH) and (not stat.S_ISDIR(mode) or bool(mode & stat.S_IXOTH))


@lru_cache(maxsize=1024)
def _is_enterable(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)
