"""Every file of an environment with its digest: what tells a whole one from a damaged one.

It finds what was cut short, restored in part or changed by chance or by a program. It does not
hold against somebody who can write to the cache: the manifest lies there, too.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

MANIFEST: Final = "manifest.json"

# From here on hashing takes longer than handing it to another thread.
LARGE_BYTES: Final = 256 * 1024
THREADS: Final = 4


def survey(folder: Path) -> dict[str, str]:
    """What lies in ``folder``, by relative path: the digest of a file, the target of a link.

    Raises:
        OSError: something cannot be read.
    """
    found: dict[str, str] = {}
    large: list[str] = []
    for entry in _entries(str(folder)):
        name = os.path.relpath(entry.path, folder)
        if entry.is_symlink():
            found[name] = f"link:{os.readlink(entry.path)}"  # noqa: PTH115 (as it is written)
        elif not entry.is_file():
            found[name] = "neither file nor folder"
        elif entry.stat().st_size >= LARGE_BYTES:
            large.append(name)
        else:
            found[name] = f"sha256:{hashlib.sha256(Path(entry.path).read_bytes()).hexdigest()}"
    if large:
        with ThreadPoolExecutor(THREADS) as pool:
            digests = pool.map(lambda name: _digest(folder / name), large)
            found.update(zip(large, digests, strict=True))
    return found


def render(folder: Path) -> bytes:
    """Write the manifest of ``folder``, an environment that is complete.

    Raises:
        OSError: something in it cannot be read.
    """
    facts = {"folder": folder.name, "files": dict(sorted(survey(folder).items()))}
    return json.dumps(facts, indent=0).encode()


def differences(folder: Path, files: Mapping[str, str]) -> list[str]:
    """The names of what is not as a manifest says: changed, missing, or new.

    Raises:
        OSError: something cannot be read.
    """
    found = survey(folder)
    return sorted(
        name for name in found.keys() | files.keys() if found.get(name) != files.get(name)
    )


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path)
            else:
                yield entry


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
