"""Find installed environments, and verify their files against the manifest.

The manifest detects environments that are incomplete, restored in part, or changed by accident or
by a program. It does not protect against an attacker who can write to the cache, because the
manifest is in the cache too.
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

# From this size on, hashing a file takes longer than passing it to another thread.
LARGE_BYTES: Final = 256 * 1024
THREADS: Final = 4


def hash_files(folder: Path) -> dict[str, str]:
    """Return the digest of each file and the target of each link, by relative path.

    Raises:
        OSError: a file cannot be read.
    """
    found: dict[str, str] = {}
    large: list[str] = []
    for entry in _list_entries(str(folder)):
        name = os.path.relpath(entry.path, folder)
        if entry.is_symlink():
            found[name] = f"link:{os.readlink(entry.path)}"  # noqa: PTH115 (the target as stored)
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
    """Format the manifest of ``folder``, a complete environment.

    Raises:
        OSError: a file cannot be read.
    """
    facts = {"folder": folder.name, "files": dict(sorted(hash_files(folder).items()))}
    return json.dumps(facts, indent=0).encode()


def find_differences(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Return the names of changed, missing and new files, compared with a manifest.

    Raises:
        OSError: a file cannot be read.
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


# Errors that do not show that the environment itself is damaged.
RESOURCE_ERRORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
MAX_NAMES: Final = 3


class DamagedEnvironmentError(Exception):
    """The environment is damaged; the message completes a sentence with the reason."""


def find_environment(home: Path) -> Path | None:
    """Return the verified environment in ``home``; None if none was completed.

    Raises:
        DamagedEnvironmentError: a completed environment has changed.
        OSError: the machine lacks memory or file descriptors.
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
