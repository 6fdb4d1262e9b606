"""The folders of evaluators in the cache: written whole, and read byte by byte before each use."""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agentci._util.atomic import TEMPORARY, remove, settle
from agentci._util.cache.corruption import DamageError, damage_in
from agentci._util.ownership import FILE_MODE, FOLDER_MODE, PROGRAM_MODE, give_to_owner, set_mode
from agentci.model.program import ProgramFile
from agentci.remote.cache.manifest import MAX_BYTES, Mark, folders_of

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def check(tree: Path, files: Mapping[str, Mark]) -> int:
    """See to it that ``tree`` holds ``files``, to the byte, and nothing else.

    Returns:
        the size of all files, in bytes.

    Raises:
        DamageError: it does not.
        UnreachableError: too much is open, or memory is short.
    """
    size = 0
    missing = set(files)
    with damage_in(tree, "its folder"):
        if not stat.S_ISDIR(tree.lstat().st_mode):
            raise DamageError("its folder is none", tree)
        for name, path in _found(tree, folders_of(files)):
            if name not in missing:
                raise DamageError(f"{name} does not belong to it", tree)
            missing.remove(name)
            with damage_in(tree, name):
                size += _check_file(tree, name, path, files[name], MAX_BYTES - size)
    if missing:
        raise DamageError(f"{min(missing)} is missing", tree)
    return size


def is_sound(tree: Path, files: Mapping[str, Mark]) -> bool:
    """Whether ``check`` would find nothing wrong."""
    try:
        check(tree, files)
    except DamageError:
        return False
    return True


def write(trees: Path, files: Mapping[str, ProgramFile], *, owner: Path | None) -> Path:
    """Make a folder in ``trees`` that holds ``files``, on disk, under a temporary name.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    made = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=trees))
    try:
        folders = [made, *(made / folder for folder in sorted(folders_of(files)))]
        for folder in folders:
            folder.mkdir(exist_ok=True)
            set_mode(folder, FOLDER_MODE)
            give_to_owner(folder, owner)
        for name, file in files.items():
            path = made / name
            path.write_bytes(file.content)
            set_mode(path, PROGRAM_MODE if file.executable else FILE_MODE)
            give_to_owner(path, owner)
        # At once for all: the first waits for the disk, the others find it done.
        for path in (*(made / name for name in files), *reversed(folders)):
            settle(path)
    except BaseException:
        remove(made)
        raise
    return made


def install(made: Path, tree: Path, files: Mapping[str, Mark]) -> None:
    """Give what was written its name, unless the same is there.

    Raises:
        OSError: something else is there and cannot be removed.
    """
    try:
        if is_sound(tree, files):
            return
        remove(tree)
        try:
            made.rename(tree)
        except OSError:
            # Where there are no locks, another process may have been faster.
            if not is_sound(tree, files):
                raise
        settle(tree.parent)
    finally:
        remove(made)


def _found(tree: Path, folders: set[str]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All below ``tree`` that is none of ``folders``, by its path in it."""
    waiting = [(str(tree), "")]
    while waiting:
        folder, prefix = waiting.pop()
        with os.scandir(folder) as found:
            for each in found:
                name = f"{prefix}{each.name}"
                if name in folders and each.is_dir(follow_symlinks=False):
                    waiting.append((each.path, f"{name}/"))
                else:
                    yield name, each


def _check_file(
    tree: Path, name: str, found: os.DirEntry[str], mark: Mark, limit_bytes: int
) -> int:
    """See to it that a file is what it has to be; its size in bytes."""
    if not found.is_file(follow_symlinks=False):
        raise DamageError(f"{name} is not a regular file", tree)
    with open(os.open(found.path, _READ), "rb") as file:  # noqa: PTH123 (as elsewhere)
        mode = os.fstat(file.fileno()).st_mode
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise DamageError(f"{name} is too large", tree)
    if hashlib.sha256(content).hexdigest() != mark.sha256:
        raise DamageError(f"{name} has another content", tree)
    if mark.executable and not mode & stat.S_IXUSR:
        raise DamageError(f"{name} is not executable", tree)
    return len(content)
