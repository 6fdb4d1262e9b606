"""Makes a folder a cache of ours, and tells one from any other folder.

Backups leave out what carries the tag (https://bford.info/cachedir/), git what is ignored.
"""

import os
import re
from pathlib import Path
from typing import Final

from agentci._util.atomic import TEMPORARY, place_file, temporaries
from agentci._util.ownership import make_folder
from agentci.errors import UnreachableError

EVALUATORS: Final = "evaluators"
INDEX: Final = "index"
TREES: Final = "trees"
ENVIRONMENTS: Final = "environments"
LOCKS: Final = "locks"
BASELINES: Final = "baselines"
REPLIES: Final = "replies.sqlite3"
JOURNAL: Final = f"{REPLIES}-journal"
TAG: Final = "CACHEDIR.TAG"
IGNORE: Final = ".gitignore"

# What we make in each folder of ours; by anything else one tells a folder of somebody else's.
OURS: Final = {
    EVALUATORS: re.compile(f"{INDEX}|{TREES}"),
    ENVIRONMENTS: re.compile(r"[0-9a-f]{64}"),
    BASELINES: re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?-[0-9a-f]{16}\.zip"),
    LOCKS: re.compile(r"[0-9a-f]{64}\.lock"),
}

TAG_TEXT: Final = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n"
    b"# This folder is a cache of agentci. All in it can be fetched again.\n"
)
IGNORE_TEXT: Final = b"*\n"

# And the files that we make beside them.
FILES: Final = (REPLIES, JOURNAL)

# What stands for an empty folder in git, and on a disk of its own.
_EMPTY: Final = frozenset({TAG, IGNORE, ".gitkeep", "lost+found"})


def found(folder: Path, owner: Path | None) -> None:
    """Make ``folder`` a cache, where it is none yet.

    Raises:
        OSError: it cannot be made or written to.
        UnreachableError: it is used for something else.
    """
    if is_cache(folder):
        return
    make_folder(folder, owner)
    if not is_free(folder):
        raise UnreachableError(
            f"{folder} is no cache of agentci, and holds other things",
            hint="name a folder of its own with --cache-dir",
        )
    if not (folder / IGNORE).exists():
        place_file(folder / IGNORE, IGNORE_TEXT, owner=owner)
    place_file(folder / TAG, TAG_TEXT, owner=owner)


def is_cache(folder: Path) -> bool:
    """Whether the folder carries our tag."""
    tag = folder / TAG
    try:
        return tag.stat().st_size == len(TAG_TEXT) and tag.read_bytes() == TAG_TEXT
    except OSError:
        return False


def is_free(folder: Path) -> bool:
    """Whether a folder that is there may become a cache: it is empty, or part of one came back.

    Raises:
        OSError: it cannot be read.
    """
    return all(path.name in _EMPTY or _is_ours(path) for path in folder.iterdir())


def ours(folder: Path) -> list[Path]:
    """All that we made in a cache, but for the tag and what tells git to look away.

    Raises:
        OSError: it cannot be read.
    """
    made = [*temporaries(folder), *(folder / name for name in FILES if _is_file(folder / name))]
    for name, pattern in OURS.items():
        inner = folder / name
        if _is_real_folder(inner):
            made += [path for path in sorted(inner.iterdir()) if _matches(path, pattern)]
    return made


def _is_ours(path: Path) -> bool:
    if path.name.startswith(TEMPORARY) or (path.name in FILES and _is_file(path)):
        return True
    pattern = OURS.get(path.name)
    if pattern is None or not _is_real_folder(path):
        return False
    return all(_matches(each, pattern) for each in path.iterdir())


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_file(path: Path) -> bool:
    return os.path.lexists(path) and not _is_real_folder(path)


def _matches(path: Path, pattern: re.Pattern[str]) -> bool:
    return path.name.startswith(TEMPORARY) or bool(pattern.fullmatch(path.name))
