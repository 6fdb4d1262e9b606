"""Keeps replies in the cache, for any number of threads and processes at once."""

import sqlite3
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from agentci._util.cache.init import REPLIES
from agentci.model.requests import ProgramReply
from agentci.runner.response_cache.database import (
    FAULTS,
    SELECT,
    NotOursError,
    Row,
    is_damage,
    open_file,
    pragma,
    remove_file,
    row_of,
    told,
)

MAX_BYTES: Final = 256 * 1024**2
# Of one reply with its inputs; that of an honest program is a hundredth of it.
MAX_REPLY_BYTES: Final = 1024**2

# A file up to this size is read at once; to look for its replies one by one would take many times
# as long.
AHEAD_BYTES: Final = 4 * 1024**2

# How many wait to be written, and for how long.
BATCH: Final = 256
BATCH_SECONDS: Final = 2.0
DAY: Final = 86_400
ELSEWHERE: Final = "name another folder with --cache-dir"

Found: TypeAlias = dict[object, tuple[object, ...]]

T = TypeVar("T")


class ReplyStore:
    """Replies by key. Nothing that is wrong with the file is raised: there is less in it then.

    What is damaged is removed and made anew. What is of somebody else, or of another version of
    ours, is left alone.

    Attributes:
        trouble: why replies could not be kept; empty where they were.

    Args:
        folder: the cache.
        owner: a path whose owner gets what we make as root.
        max_bytes: of the file; replies that were of no use for longest go first.
    """

    def __init__(
        self, folder: Path, *, owner: Path | None = None, max_bytes: int = MAX_BYTES
    ) -> None:
        self.trouble = ""
        self._folder = folder
        self._path = folder / REPLIES
        self._owner = owner
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_refused = False
        self._ahead: Found | None = None
        self._rows: list[Row] = []
        self._lists: dict[bytes, bytes] = {}
        self._used: set[bytes] = set()
        self._dropped: set[bytes] = set()
        self._written_at = time.monotonic()
        self._today = int(time.time()) // DAY

    def find(self, key: bytes) -> Row | None:
        """The reply under ``key``, verified; what is not as it was written is dropped."""
        with self._lock:
            if self.trouble:  # waiting for each would take long
                return None
            if self._ahead is None:
                self._ahead = self._attempt(_all_of_few, Found(), makes=False)
            # What is asked for again may have been written meanwhile.
            found = self._ahead.pop(key, None) or self._attempt(
                lambda connection: _select(connection, key), None, makes=False
            )
            if found is None:
                return None
            row = row_of(found)
            if row is None:
                self._dropped.add(key)
            elif row.used != self._today:
                self._used.add(key)
            return row

    def inputs(self, digest: bytes) -> bytes | None:
        """The list of inputs that has ``digest``, verified."""
        query = "SELECT listed FROM inputs WHERE id = ?"

        def select(connection: sqlite3.Connection) -> tuple[object, ...] | None:
            return connection.execute(query, (digest,)).fetchone()  # type: ignore[no-any-return]

        with self._lock:
            [listed] = self._attempt(select, None, makes=False) or (None,)
        return listed if isinstance(listed, bytes) and _digest(listed) == digest else None

    def put(self, key: bytes, reply: ProgramReply, listed: bytes) -> None:
        """Keep a reply, with the list of what it was made from; not one that is too large."""
        if len(reply.stdout) + len(reply.stderr) + len(listed) > MAX_REPLY_BYTES:
            return
        row = Row(key=key, inputs=_digest(listed), reply=reply, used=self._today)
        with self._lock:
            self._lists[row.inputs] = listed
            self._rows.append(row)
            waited = time.monotonic() - self._written_at
            if len(self._rows) >= BATCH or waited > BATCH_SECONDS:
                self._flush()

    def drop(self, key: bytes) -> None:
        """Keep what is under ``key`` no longer."""
        with self._lock:
            self._dropped.add(key)

    def close(self) -> None:
        """Write what waits to be written, and let go of the file."""
        with self._lock:
            self._flush()
            self._disconnect()

    def _flush(self) -> None:
        if self._rows or self._used or self._dropped:
            self._attempt(self._write, None, makes=bool(self._rows))
        self._written_at = time.monotonic()

    def _write(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        gone = [(key,) for key in self._dropped]
        connection.executemany("DELETE FROM replies WHERE key = ?", gone)
        used = [(self._today, key) for key in self._used]
        connection.executemany("UPDATE replies SET used = ? WHERE key = ?", used)
        connection.executemany("INSERT OR REPLACE INTO inputs VALUES (?, ?)", self._lists.items())
        rows = [row.values() for row in self._rows]
        connection.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        _prune(connection, self._max_bytes)
        connection.execute("COMMIT")
        self._dropped.clear()
        self._used.clear()
        self._lists.clear()
        self._rows.clear()
        self.trouble = ""

    def _attempt(self, act: Callable[[sqlite3.Connection], T], default: T, *, makes: bool) -> T:
        """Do something with the file, a second time where it was damaged and is made anew."""
        for _ in range(2):
            if self._is_refused:
                break
            try:
                if self._connection is None:
                    self._connection = open_file(self._folder, owner=self._owner, makes=makes)
                return default if self._connection is None else act(self._connection)
            except NotOursError as error:
                self._is_refused = True
                self.trouble = f"{self._path} {error}"
            except FAULTS as error:
                self._disconnect()
                self.trouble = f"{self._path} cannot be used: {told(error)} ({ELSEWHERE})"
                if not (is_damage(error) and self._cleared()):
                    break
        return default

    def _cleared(self) -> bool:
        try:
            remove_file(self._folder)
        except OSError:
            self._is_refused = True
        return not self._is_refused

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _all_of_few(connection: sqlite3.Connection) -> Found:
    """All rows by their keys, or none where there are many."""
    if pragma(connection, "page_count") * pragma(connection, "page_size") > AHEAD_BYTES:
        return {}
    return {row[0]: row for row in connection.execute(SELECT)}


def _select(connection: sqlite3.Connection, key: bytes) -> tuple[object, ...] | None:
    found: tuple[object, ...] | None
    found = connection.execute(f"{SELECT} WHERE key = ?", (key,)).fetchone()
    return found


def _prune(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Remove quarters of what is there until the rest is small enough."""
    size = pragma(connection, "page_size")
    while True:
        pages = pragma(connection, "page_count") - pragma(connection, "freelist_count")
        [count] = connection.execute("SELECT count(*) FROM replies").fetchone()
        if not count or pages * size <= max_bytes:
            return
        connection.execute(
            "DELETE FROM replies WHERE rowid IN"
            " (SELECT rowid FROM replies ORDER BY used, rowid LIMIT ?)",
            (count // 4 + 1,),
        )
        connection.execute("DELETE FROM inputs WHERE id NOT IN (SELECT inputs FROM replies)")


def _digest(listed: bytes) -> bytes:
    return sha256(listed).digest()
