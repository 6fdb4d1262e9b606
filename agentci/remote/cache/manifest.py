"""What the cache says of an evaluator: the files that belong to it, and what is in each."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from agentci.model.json import Json
from agentci.model.program import Snapshot
from agentci.remote.cache.entry import Key

# More than any source gives; what claims to have more does not come from us.
MAX_FILES: Final = 2000
MAX_BYTES: Final = 64 * 1024**2

_MAX_PATH_BYTES: Final = 1024
_MAX_NAME_BYTES: Final = 255


class Mark(Struct, frozen=True, kw_only=True):
    """What a file has to be; ``sha256`` in hexadecimal."""

    sha256: str
    executable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """One evaluator, without its content.

    Attributes:
        entry: the program's own file, one of ``files``.
        files: by path relative to the folder, in the order of the paths.
    """

    key: Key
    entry: str
    files: Mapping[str, Mark] = field(repr=False)

    @property
    def digest(self) -> str:
        """Of all the files; the same for evaluators that differ in nothing but where they lie."""
        listed: list[Json] = [
            [path, mark.sha256, mark.executable] for path, mark in self.files.items()
        ]
        return _sha256_of(listed)


def inventory_of(key: Key, snapshot: Snapshot) -> Inventory:
    """List what ``snapshot`` holds."""
    files = {
        path: Mark(sha256=hashlib.sha256(file.content).hexdigest(), executable=file.executable)
        for path, file in sorted(snapshot.files.items())
    }
    return Inventory(key=key, entry=snapshot.entry, files=files)


def digest_of(key: Key) -> str:
    """The sha256 that stands for ``key`` in names of files."""
    return _sha256_of([key.source, key.repository, key.commit, key.ref])


def why_unfit(entry: str, paths: Collection[str]) -> str | None:
    """Say what keeps ``paths`` from being the files of one folder, None where nothing does."""
    if len(paths) > MAX_FILES:
        return f"there are more than {MAX_FILES:,} files"
    odd = next(filter(_is_odd, paths), None)
    if odd is not None:
        return f"{odd!r} is no path inside a folder"
    both = next((path for path in sorted(folders_of(paths)) if path in paths), None)
    if both is not None:
        return f"{both!r} is both a file and a folder"
    if entry not in paths:
        return f"the program {entry!r} is not among the files"
    return None


def folders_of(paths: Iterable[str]) -> set[str]:
    """All folders that ``paths`` lie in, below the one that they are relative to."""
    folders = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    return folders


def _is_odd(path: str) -> bool:
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return True
    if len(encoded) > _MAX_PATH_BYTES or b"\\" in encoded or b"\0" in encoded:
        return True
    names = encoded.split(b"/")
    return any(name in {b"", b".", b".."} or len(name) > _MAX_NAME_BYTES for name in names)


def _sha256_of(value: Sequence[Json]) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()
