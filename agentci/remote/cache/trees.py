"""Folders of cached evaluators: written atomically, verified byte by byte before each use."""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agentci._util.cache_folder import CorruptionError, detect_corruption
from agentci._util.files import (
    FILE_MODE,
    FOLDER_MODE,
    PROGRAM_MODE,
    TEMPORARY_PREFIX,
    fsync_path,
    give_to_owner,
    remove_path,
    set_mode,
)
from agentci.model.program import ProgramFile
from agentci.remote.cache.index import MAX_BYTES, FileDigest, find_parent_folders

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def verify_tree(tree: Path, files: Mapping[str, FileDigest]) -> int:
    """Check that ``tree`` holds exactly ``files``, byte for byte.

    Returns:
        The size of all files in bytes.

    Raises:
        CorruptionError: if a file is missing, unexpected or different.
        UnreachableError: if too many files are open or memory runs out.
    """
    size = 0
    missing = set(files)
    with detect_corruption(tree, "its folder"):
        if not stat.S_ISDIR(tree.lstat().st_mode):
            raise CorruptionError("its folder is not a folder", tree)
        for name, path in _list_files(tree, find_parent_folders(files)):
            if name not in missing:
                raise CorruptionError(f"{name} is not part of it", tree)
            missing.remove(name)
            with detect_corruption(tree, name):
                size += _verify_file(tree, name, path, files[name], MAX_BYTES - size)
    if missing:
        raise CorruptionError(f"{min(missing)} is missing", tree)
    return size


def is_intact(tree: Path, files: Mapping[str, FileDigest]) -> bool:
    """Whether ``tree`` holds exactly ``files``, as checked by :func:`verify_tree`."""
    try:
        verify_tree(tree, files)
    except CorruptionError:
        return False
    return True


def write_tree(trees: Path, files: Mapping[str, ProgramFile], *, owner: Path | None) -> Path:
    """Write ``files`` to a new folder in ``trees`` under a temporary name, and sync it to disk.

    Raises:
        OSError: if writing fails; the folder is removed.
    """
    made = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=trees))
    try:
        folders = [made, *(made / folder for folder in sorted(find_parent_folders(files)))]
        for folder in folders:
            folder.mkdir(exist_ok=True)
            set_mode(folder, FOLDER_MODE)
            give_to_owner(folder, owner)
        for name, file in files.items():
            path = made / name
            path.write_bytes(file.content)
            set_mode(path, PROGRAM_MODE if file.executable else FILE_MODE)
            give_to_owner(path, owner)
        # Sync after all writes: the first call waits for the disk, later ones mostly find their
        # data written.
        for path in (*(made / name for name in files), *reversed(folders)):
            fsync_path(path)
    except BaseException:
        remove_path(made)
        raise
    return made


def install_tree(made: Path, tree: Path, files: Mapping[str, FileDigest]) -> None:
    """Rename the folder ``made`` to ``tree``, unless an intact copy already exists.

    Raises:
        OSError: if another file or folder there cannot be removed.
    """
    try:
        if is_intact(tree, files):
            return
        remove_path(tree)
        try:
            made.rename(tree)
        except OSError:
            # On file systems without locks, another process may have been faster.
            if not is_intact(tree, files):
                raise
        fsync_path(tree.parent)
    finally:
        remove_path(made)


def _list_files(tree: Path, folders: set[str]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield every entry below ``tree`` except ``folders``, with its relative path."""
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


def _verify_file(
    tree: Path, name: str, found: os.DirEntry[str], digest: FileDigest, limit_bytes: int
) -> int:
    """Check one file and return its size in bytes."""
    if not found.is_file(follow_symlinks=False):
        raise CorruptionError(f"{name} is not a regular file", tree)
    with open(os.open(found.path, _READ), "rb") as file:  # noqa: PTH123 (opens a file descriptor)
        mode = os.fstat(file.fileno()).st_mode
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise CorruptionError(f"{name} is too large", tree)
    if hashlib.sha256(content).hexdigest() != digest.sha256:
        raise CorruptionError(f"{name} has unexpected content", tree)
    if digest.executable and not mode & stat.S_IXUSR:
        raise CorruptionError(f"{name} is not executable", tree)
    return len(content)
