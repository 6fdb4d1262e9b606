"""Finds installed environments, and verifies their files against the manifest.

The manifest finds what was cut short, restored in part or changed by accident or by a program. It
does not protect against somebody who can write to the cache: the manifest lies there, too.
"""

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from agentci._util.text import truncate
from agentci.execution.environments.installers import find_python

MANIFEST: Final = "manifest.json"

# From here on hashing takes longer than handing it to another thread.
LARGE_BYTES: Final = 256 * 1024
THREADS: Final = 4


def hash_files(folder: Path) -> dict[str, str]:
    """What lies in ``folder``, by relative path: the digest of a file, the target of a link.

    Raises:
        OSError: something cannot be read.
    """
    found: dict[str, str] = {}
    large: list[str] = []
    for entry in _list_entries(str(folder)):
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
            digests = pool.map(lambda name: _hash_file(folder / name), large)
            found.update(zip(large, digests, strict=True))
    return found


def format_manifest(folder: Path) -> bytes:
    """Write the manifest of ``folder``, an environment that is complete.

    Raises:
        OSError: something in it cannot be read.
    """
    facts = {"folder": folder.name, "files": dict(sorted(hash_files(folder).items()))}
    return json.dumps(facts, indent=0).encode()


def find_differences(folder: Path, files: Mapping[str, str]) -> list[str]:
    """The names of what is not as a manifest says: changed, missing, or new.

    Raises:
        OSError: something cannot be read.
    """
    found = hash_files(folder)
    return sorted(
        name for name in found.keys() | files.keys() if found.get(name) != files.get(name)
    )


def _list_entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _list_entries(entry.path)
            else:
                yield entry


def _hash_file(file: Path) -> str:
    with file.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


# What cannot be read for one of these may be whole all the same.
RESOURCE_ERRORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
MAX_NAMES: Final = 3


class DamagedEnvironmentError(Exception):
    """What is there cannot be used; says why, as the end of a sentence."""


def find_environment(home: Path) -> Path | None:
    """The verified environment in ``home``, None where none was completed.

    Raises:
        DamagedError: one was, and is not what it was.
        OSError: the machine is short of something.
    """
    try:
        content = (home / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _make_read_error(error, f"{MANIFEST} cannot be read") from None
    try:
        manifest = json.loads(content)
        folder = home / Path(manifest["folder"]).name
        _verify(folder, manifest["files"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DamagedEnvironmentError(f"{MANIFEST} is not as it was written") from None
    except OSError as error:
        raise _make_read_error(error, f"{error.filename} cannot be read") from None
    return folder


def _verify(folder: Path, files: Mapping[str, str]) -> None:
    changed = find_differences(folder, files)
    if changed:
        raise DamagedEnvironmentError(
            f"changed since: {', '.join(truncate.truncate_list(changed, MAX_NAMES))}"
        )
    if not os.access(find_python(folder), os.X_OK):
        raise DamagedEnvironmentError(f"its Python is gone: {find_python(folder).resolve()}")


def _make_read_error(error: OSError, what: str) -> Exception:
    return (
        error
        if error.errno in RESOURCE_ERRORS
        else DamagedEnvironmentError(f"{what}: {error.strerror}")
    )
