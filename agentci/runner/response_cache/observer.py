"""Sees from outside what programs open, whatever they are written in and however they start."""

import os
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from agentci.runner.response_cache import inotify
from agentci.runner.response_cache.inotify import Event, Inotify

MAX_FOLDERS: Final = 50_000


class BlindError(Exception):
    """What programs open cannot be seen; says why."""


class Observation(Struct, eq=False):
    """What was opened while a program ran, by whomever.

    Attributes:
        opened: real paths of files that were read or run, and of folders that were listed.
        lost: some of it was not seen.
    """

    opened: set[str] = field(default_factory=set)
    lost: bool = False


class Observer:
    """Watches folders; of use by several threads at once.

    Attributes:
        changed: real paths of what was written, made or removed since they are watched; of a
            folder that is its list of names.
        links: links in the folders, by the real path of where they lead.

    Args:
        own: what a run itself writes, and with that changes nothing.
        left_out: real paths of folders that are not looked into.
        max_folders: each is a watch, of which the kernel gives a user only so many.
    """

    def __init__(
        self,
        own: Collection[str],
        left_out: Collection[str],
        *,
        max_folders: int = MAX_FOLDERS,
    ) -> None:
        self._max_folders = max_folders
        self.changed: set[str] = set()
        self.links: dict[str, list[str]] = {}
        self._own = own
        self._left_out = left_out
        self._lock = threading.Lock()
        self._queue: Inotify | None = None
        self._folders: dict[int, str] = {}
        self._watched: set[str] = set()
        self._active: set[Observation] = set()
        self._blind = ""

    def watch(self, roots: Iterable[Path]) -> bool:
        """Watch folders and all below; whether there were any new ones.

        Raises:
            BlindError: they cannot be watched.
        """
        wanted = dict.fromkeys(os.path.realpath(root) for root in roots)
        with self._lock:
            new = [root for root in wanted if not self.sees(root)]
            try:
                for root in new:
                    self._watch(root)
            except OSError as error:
                self._blind = f"what programs read cannot be watched: {error.strerror or error}"
            if self._blind:
                raise BlindError(self._blind)
        return bool(new)

    def sees(self, path: str) -> bool:
        """Whether ``path``, a real one, is watched."""
        return path in self._watched or str(Path(path).parent) in self._watched

    def begin(self) -> Observation:
        """See what is opened from now on."""
        with self._lock:
            self._drain()
            observation = Observation()
            self._active.add(observation)
            return observation

    def end(self, observation: Observation) -> None:
        """See no more than what was opened until now."""
        with self._lock:
            self._drain()
            self._active.discard(observation)
            observation.lost |= bool(self._blind)

    def has_changed(self, paths: Iterable[str]) -> bool:
        """Whether one of ``paths`` was changed since it is watched."""
        with self._lock:
            self._drain()
            return not self.changed.isdisjoint(paths)

    def close(self) -> None:
        """Watch nothing any more."""
        with self._lock:
            if self._queue is not None:
                self._queue.close()
                self._queue = None

    def _watch(self, root: str) -> None:
        if self._queue is None:
            self._queue = Inotify()
        folders = [root]
        while folders:
            folder = folders.pop()
            if folder in self._left_out or folder in self._watched:
                continue
            if not os.access(folder, os.X_OK):  # nor may a program of ours enter it
                continue
            if len(self._watched) == self._max_folders:
                raise OSError(f"there are more than {self._max_folders:,} folders in {root}")
            with suppress(FileNotFoundError, NotADirectoryError):  # it was removed just now
                # Looked into only then: what is made in between is seen to have been made.
                self._folders[self._queue.watch(folder)] = folder
                self._watched.add(folder)
                folders += self._folders_in(folder)

    def _folders_in(self, folder: str) -> Iterator[str]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    self.links.setdefault(os.path.realpath(entry.path), []).append(entry.path)
                elif entry.is_dir():
                    yield entry.path

    def _drain(self) -> None:
        if self._queue is None:
            return
        for event in self._queue.take():
            folder = self._folders.get(event.watch)
            if event.mask & inotify.OVERFLOW:
                self._blind = "programs opened more at a time than the system remembers"
            elif folder is not None and event.mask & inotify.OPEN:
                self._note_opened(folder, event)
            elif folder is not None and f"{folder}/{event.name}" not in self._own:
                self._note_changed(folder, event)

    def _note_opened(self, folder: str, event: Event) -> None:
        # A folder tells of itself, too.
        if not (event.name and event.mask & inotify.OF_FOLDER):
            path = f"{folder}/{event.name}" if event.name else folder
            for observation in self._active:
                observation.opened.add(path)

    def _note_changed(self, folder: str, event: Event) -> None:
        path = f"{folder}/{event.name}"
        self.changed.add(path)
        if event.mask & inotify.MODIFY:
            return
        self.changed.add(folder)
        came = event.mask & (inotify.CREATE | inotify.MOVED_TO)
        if came and (event.mask & inotify.OF_FOLDER or Path(path).is_symlink()):
            self._blind = f"folders or links were made while programs ran, such as {path}"
