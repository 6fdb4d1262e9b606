"""Makes a folder a cache of ours, and tells one from any other folder.

Backups leave out what carries the tag (https://bford.info/cachedir/), git what is ignored.
"""

from pathlib import Path
from typing import Final

from agentci.errors import UnreachableError
from agentci.store.atomic import TEMPORARY, place_file
from agentci.store.owner import make_folder

EVALUATORS: Final = "evaluators"
ENVIRONMENTS: Final = "environments"
LOCKS: Final = "locks"
TAG: Final = "CACHEDIR.TAG"
IGNORE: Final = ".gitignore"

TAG_TEXT: Final = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n"
    b"# This folder is a cache of agentci. All in it can be fetched again.\n"
)
IGNORE_TEXT: Final = b"*\n"

# With nothing else in it a folder may become a cache: what we make ourselves, and what stands
# for an empty folder in git or on a disk of its own.
HARMLESS: Final = frozenset(
    {EVALUATORS, ENVIRONMENTS, LOCKS, TAG, IGNORE, ".gitkeep", "lost+found"}
)


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
    """Whether a folder that is there may become a cache.

    Raises:
        OSError: it cannot be read.
    """
    names = (path.name for path in folder.iterdir())
    return all(name in HARMLESS or name.startswith(TEMPORARY) for name in names)
