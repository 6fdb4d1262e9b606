"""The cache of remote evaluators: what it gives is what was put there, to the byte, or nothing.

Nothing in the folder is believed: an older process may have been killed, a disk may have lied, and
a cache that a workflow restores may come from anybody. It says that nothing changed since it was
written; who wrote it, only a lock file can tell.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.atomic import TEMPORARY, place_file, remove, sweep
from agentci._util.cache.corruption import DamageError, damage_in
from agentci._util.cache.init import EVALUATORS, INDEX, TREES, found
from agentci._util.cache.lock import claim
from agentci._util.ownership import make_folder
from agentci.errors import RefusedError, UnreachableError
from agentci.model.program import Snapshot
from agentci.remote.cache.entry import Key, Stored
from agentci.remote.cache.index import name_of, read_index, reads_back, render
from agentci.remote.cache.manifest import MAX_BYTES, Inventory, digest_of, inventory_of, why_unfit
from agentci.remote.cache.trees import check, install, is_sound, write

# Held by whoever puts something in its place, or removes it.
_PLACING: Final = "evaluators"


class Entry(Struct, frozen=True, kw_only=True):
    """One entry of the cache, for people who look after it.

    Attributes:
        name: of its file in the index.
        key: None where it cannot be told.
        stored: None where it is damaged.
        size_bytes: of all its files; 0 where it is damaged.
        damage: what is wrong with it; None where all is well.
    """

    name: str
    key: Key | None = None
    stored: Stored | None = None
    size_bytes: int = 0
    damage: str | None = None


class EvaluatorStore:
    """Keeps remote evaluators in a folder, for any number of threads and processes at once.

    Attributes:
        folder: absolute path of the cache; made when something is put there.
    """

    def __init__(self, folder: Path, *, owner: Path | None = None) -> None:
        """Keep evaluators in ``folder``; as root, give them to who owns the path ``owner``."""
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay as they are)
        self._owner = owner
        self._index = self.folder / EVALUATORS / INDEX
        self._trees = self.folder / EVALUATORS / TREES

    def find(self, key: Key) -> Stored | None:
        """The evaluator, every byte of it verified; None where it is to be fetched.

        What is damaged is removed, as far as we may.

        Raises:
            UnreachableError: too much is open, or memory is short.
        """
        path = self._index / name_of(key)
        try:
            return self._stored(path)
        except DamageError:
            pass
        with claim(self.folder, _PLACING, owner=self._owner):
            try:
                return self._stored(path)  # another process may have put it there anew
            except DamageError as damage:
                if damage.path.parent == self._trees:
                    remove(path)
                remove(damage.path)
        return None

    def put(self, key: Key, snapshot: Snapshot) -> Stored:
        """Keep an evaluator, in place of what was kept under ``key``.

        Raises:
            RefusedError: it cannot be kept in one folder.
            UnreachableError: the disk does not take it; nothing is left of it.
        """
        inventory = _checked(key, snapshot)
        try:
            self._prepare()
            tree = self._trees / inventory.digest
            made = None
            if not is_sound(tree, inventory.files):
                made = write(self._trees, snapshot.files, owner=self._owner)
            with claim(self.folder, _PLACING, owner=self._owner):
                if made is not None:
                    install(made, tree, inventory.files)
                self._list(inventory)
        except OSError as error:
            raise UnreachableError(
                f"the cache {self.folder} cannot be written to: {error.strerror or error}",
                hint="make room or let it be written to, or name another folder with --cache-dir",
            ) from None
        return self._as_stored(inventory)

    def claim(self, key: Key) -> AbstractContextManager[None]:
        """Be the only one, among all threads and processes, that fetches ``key``."""
        return claim(self.folder, f"evaluator {digest_of(key)}", owner=self._owner)

    def entries(self) -> Iterator[Entry]:
        """Verify all that the cache holds, and remove nothing."""
        try:
            with damage_in(self._index, "the index"):
                self._check_folders()
                names = sorted(_names(self._index))
        except DamageError as damage:
            yield Entry(name=damage.path.name, damage=str(damage))
            return
        for name in names:
            yield self._entry(self._index / name)

    def _entry(self, path: Path) -> Entry:
        key = None
        try:
            inventory = read_index(path)
            if inventory is None:
                return Entry(name=path.name, damage="it was removed just now")
            key = inventory.key
            size = check(self._trees / inventory.digest, inventory.files)
        except DamageError as damage:
            return Entry(name=path.name, key=key, damage=str(damage))
        return Entry(name=path.name, key=key, stored=self._as_stored(inventory), size_bytes=size)

    def _stored(self, path: Path) -> Stored | None:
        """What a file of the index leads to, verified; None where there is no such file.

        Raises:
            DamageError: something is not as it was written.
        """
        self._check_folders()
        inventory = read_index(path)
        if inventory is None:
            return None
        check(self._trees / inventory.digest, inventory.files)
        return self._as_stored(inventory)

    def _check_folders(self) -> None:
        """See to it that our own folders are none of somebody else's, by a link.

        Raises:
            DamageError: one of them is not a folder.
        """
        for folder in (self._index.parent, self._index, self._trees):
            with damage_in(folder, f"the folder {folder.name}"):
                try:
                    mode = folder.lstat().st_mode
                except FileNotFoundError:
                    continue
                if not stat.S_ISDIR(mode):
                    raise DamageError(f"{folder.name} is not a folder", folder)

    def _list(self, inventory: Inventory) -> None:
        """Put an evaluator into the index, in place of whatever is there."""
        path = self._index / name_of(inventory.key)
        if path.is_dir():
            remove(path)
        place_file(path, render(inventory), owner=self._owner)

    def _prepare(self) -> None:
        """Have all folders, and nothing in them that killed processes left long ago."""
        found(self.folder, self._owner)
        for _ in range(3):
            try:
                self._check_folders()
            except DamageError as damage:
                remove(damage.path)
        for folder in (self._index, self._trees):
            make_folder(folder, self._owner)
            sweep(folder)
        sweep(self.folder)

    def _as_stored(self, inventory: Inventory) -> Stored:
        folder = self._trees / inventory.digest
        return Stored(
            path=folder / inventory.entry,
            folder=folder,
            digests={path: mark.sha256 for path, mark in inventory.files.items()},
        )


def _names(folder: Path) -> list[str]:
    if not os.path.lexists(folder):
        return []
    return [path.name for path in folder.iterdir() if not path.name.startswith(TEMPORARY)]


def _checked(key: Key, snapshot: Snapshot) -> Inventory:
    """The inventory of what can be kept.

    Raises:
        RefusedError: it cannot be.
    """
    unfit = why_unfit(snapshot.entry, snapshot.files)
    if sum(len(file.content) for file in snapshot.files.values()) > MAX_BYTES:
        unfit = f"it is larger than {MAX_BYTES // 1024**2} MiB"
    if unfit is None:
        inventory = inventory_of(key, snapshot)
        if reads_back(inventory):
            return inventory
        unfit = "its names are too long, or no text"
    raise RefusedError(f"{key.ref} cannot be kept: {unfit}")
