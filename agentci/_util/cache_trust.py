"""Who can write to a cache.

What a cache contains is run and believed, and its checksums show only damage. So a cache is used
only if neither a checkout, whose files a pull request brings, nor another user decides what is in
it: by a folder or a link on its path, or by what is in the folder.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentci._util.cache_folder import CACHE_FILES, ENTRY_PATTERNS
from agentci._util.workspace import Workspace
from agentci.errors import InputError

# A path with more names, those of its links included, has links in a loop.
_MAX_NAMES: Final = 1000
_CHECKOUT_HINT: Final = "name a folder outside of it with --cache-dir"
_OWNER_HINT: Final = "let only its owner write to it, or name another folder with --cache-dir"
_CREATE_HINT: Final = "create it, or name another folder with --cache-dir"


def resolve_cache_folder(folder: Path, workspace: Workspace) -> Path:
    """Resolve the links in the path of a cache, and check who can write to it.

    Args:
        folder: an absolute path; what does not exist yet is not checked.

    Raises:
        InputError: a checkout or another user may have written to it.
    """
    check = _FolderCheck(workspace)
    try:
        path = check.resolve(folder)
        check.check_content(path)
    except _DistrustError as error:
        message = f"the cache {workspace.display_path(folder)} is not used: {error}"
        raise InputError.from_message(message, hint=error.hint) from None
    return path


def find_cache_owner(folder: Path) -> Path:
    """The path whose owner gets what root writes to a cache: the folder, or its first parent.

    In a container action, this lets later steps read, save and remove the cache.
    """
    return next(each for each in (folder, *folder.parents) if os.path.lexists(each))


class _DistrustError(Exception):
    """A folder is not trusted; the message says why, without a full stop."""

    def __init__(self, message: str, *, hint: str) -> None:
        self.hint = hint
        super().__init__(message)


class _FolderCheck:
    """Trusts root, the user and groups of this process, and those of the workspace's owner."""

    def __init__(self, workspace: Workspace) -> None:
        root = workspace.root.stat()
        self._users = {0, os.geteuid(), root.st_uid}
        self._groups = {0, os.getegid(), *os.getgroups(), root.st_gid}
        self._checkouts = [root]
        if workspace.checkout is not None:
            with suppress(OSError):  # it does not exist
                self._checkouts.append(workspace.checkout.stat())

    def resolve(self, folder: Path) -> Path:
        """Resolve a path name by name, as the system does, and check each folder and link on it.

        Raises:
            _DistrustError: one of them is not trusted.
        """
        path, names = Path(folder.anchor), [*reversed(folder.parts[1:])]
        for _ in range(_MAX_NAMES):
            if not names:
                return path
            name = names.pop()
            if name == "..":
                path = path.parent
            elif target := self._check_name(path / name, is_parent=bool(names)):
                names += reversed(target.parts)
            else:
                path /= name
        raise _DistrustError("its path has links in a loop", hint=_OWNER_HINT)

    def check_content(self, folder: Path) -> None:
        """Check that a resolved folder is in no checkout, and what is in it.

        Raises:
            _DistrustError: it is in a checkout, or its content is not trusted.
        """
        if checkout := self._find_checkout(folder):
            raise _DistrustError(
                f"it is in the checkout {checkout}, so a pull request could bring its files",
                hint=_CHECKOUT_HINT,
            )
        for path in (folder, *(folder / name for name in (*ENTRY_PATTERNS, *CACHE_FILES))):
            if self._check_name(path):
                raise _DistrustError(f"{path} is a link", hint="remove the link")

    def _check_name(self, path: Path, *, is_parent: bool = False) -> Path | None:
        """Check a file or folder; returns the target of a link.

        Args:
            is_parent: others may create files in it, but not replace those in it, as in /tmp.

        Raises:
            _DistrustError: it is not trusted.
        """
        try:
            status = path.lstat()
        except OSError:
            self._check_missing(path)
            return None
        if status.st_uid not in self._users:
            raise _DistrustError(f"{path} belongs to another user", hint=_OWNER_HINT)
        if not stat.S_ISLNK(status.st_mode):
            if self._is_writable(status) and not (is_parent and status.st_mode & stat.S_ISVTX):
                raise _DistrustError(f"other users can write to {path}", hint=_OWNER_HINT)
            return None
        if checkout := self._find_checkout(path.parent):
            raise _DistrustError(
                f"{path} is a link in the checkout {checkout}", hint=_CHECKOUT_HINT
            )
        return path.readlink()

    def _check_missing(self, path: Path) -> None:
        """Check that no other user can create a path before this process does."""
        with suppress(OSError):
            if self._is_writable(path.parent.lstat()):
                raise _DistrustError(f"other users can create {path}", hint=_CREATE_HINT)

    def _is_writable(self, status: os.stat_result) -> bool:
        """Whether other users can write to a file or folder."""
        shared = status.st_mode & stat.S_IWGRP and status.st_gid not in self._groups
        return bool(status.st_mode & stat.S_IWOTH or shared)

    def _find_checkout(self, folder: Path) -> Path | None:
        """The workspace, checkout or git repository that a folder is in; None if it is in none.

        Workspace and checkout are recognised by any path to them, such as that of a second mount.
        """
        for each in (folder, *folder.parents):
            if os.path.lexists(each / ".git"):
                return each
            with suppress(OSError):
                status = each.stat()
                if any(os.path.samestat(status, known) for known in self._checkouts):
                    return each
        return None
