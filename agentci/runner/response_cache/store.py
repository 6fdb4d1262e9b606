"""Store cached responses in an SQLite database that threads and processes share."""

import hashlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from urllib.parse import quote

from msgspec import Struct

from agentci._util.cache_folder import RESPONSES_FILE, RESPONSES_JOURNAL, init_cache
from agentci._util.files import give_to_owner
from agentci.errors import UnreachableError
from agentci.model.requests import ProgramOutput

# What SQLite keeps to tell files of one program from those of others; the letters are "acir".
APPLICATION_ID: Final = 0x61636972
SCHEMA_VERSION: Final = 2
PRIVATE_MODE: Final = 0o600
# Longer than somebody else's writing takes.
BUSY_SECONDS: Final = 1.0

OLD_TABLES: Final = ("replies", "inputs")
TABLES: Final = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY,
    exit_code INTEGER NOT NULL,
    stdout BLOB NOT NULL,
    stderr BLOB NOT NULL,
    checksum BLOB NOT NULL,
    used INTEGER NOT NULL
)
"""
SELECT_ROWS: Final = "SELECT key, exit_code, stdout, stderr, checksum, used FROM replies"
# More than we write.
MAX_VALUE_BYTES: Final = 16 * 1024**2
# SQLite tells of damage in the bytes of the file, which need not be text.
DATABASE_ERRORS: Final = (sqlite3.Error, OSError, UnreachableError, UnicodeDecodeError)
CORRUPTION_CODES: Final = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
)


class ForeignFileError(Exception):
    """What lies in the file's place is nothing that we may write to or replace; says what it is."""


class ResponseRow(Struct, frozen=True, kw_only=True):
    """A reply as it is kept.

    Attributes:
        used: the day when it was last of use, counted from 1970.
    """

    key: bytes
    response: ProgramOutput
    used: int

    def to_columns(self) -> tuple[bytes | int, ...]:
        """The columns, in the order of ``TABLES``."""
        stderr = self.response.stderr.encode("utf-8", "surrogatepass")
        return (
            *(self.key, self.response.exit_code, self.response.stdout, stderr),
            _checksum(self.key, self.response.exit_code, self.response.stdout, stderr),
            self.used,
        )


def parse_row(values: tuple[object, ...]) -> ResponseRow | None:
    """A row that was read; None where it is not as it was written."""
    key, exit_code, stdout, stderr, checksum, used = values
    if not (
        isinstance(key, bytes)
        and isinstance(exit_code, int)
        and isinstance(stdout, bytes)
        and isinstance(stderr, bytes)
        and isinstance(used, int)
        and checksum == _checksum(key, exit_code, stdout, stderr)
    ):
        return None
    try:
        text = stderr.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    response = ProgramOutput(stdout=stdout, stderr=text, exit_code=exit_code)
    return ResponseRow(key=key, response=response, used=used)


def open_database(folder: Path, *, owner: Path | None, makes: bool) -> sqlite3.Connection | None:
    """Open the file in ``folder``; None where there is none and none is to be made.

    Raises:
        NotOursError: something else lies in its place.
        sqlite3.Error, OSError, UnreachableError: it cannot be opened or made.
    """
    path = folder / RESPONSES_FILE
    if not os.path.lexists(path):
        if not makes:
            return None
        init_cache(folder, owner)
        _create_file(path, owner)
    # Neither through a link nor into a pipe.
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ForeignFileError("is not a regular file")
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if _ensure_tables(connection, makes=makes):
            return connection
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def is_corruption(error: Exception) -> bool:
    """Whether the file is to blame, and not who else uses it or the disk."""
    if isinstance(error, UnicodeDecodeError):
        return True
    return isinstance(error, sqlite3.Error) and (
        (getattr(error, "sqlite_errorcode", 0) & 0xFF) in CORRUPTION_CODES
    )


def describe_error(error: Exception) -> str:
    """One of ``DATABASE_ERRORS`` in words."""
    if isinstance(error, UnicodeDecodeError):
        return error.object.decode("utf-8", "replace")
    return str(error)


def remove_database(folder: Path) -> None:
    """Remove the file, so that a new one can be made.

    Raises:
        OSError: it cannot be.
    """
    for name in (RESPONSES_JOURNAL, RESPONSES_FILE):
        (folder / name).unlink(missing_ok=True)


def read_pragma(connection: sqlite3.Connection, name: str) -> int:
    """The number that SQLite tells by that name."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _create_file(path: Path, owner: Path | None) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError):  # another process was faster
        os.close(os.open(path, flags, PRIVATE_MODE))
        give_to_owner(path, owner)


def _ensure_tables(connection: sqlite3.Connection, *, makes: bool) -> bool:
    """Whether the tables are there, if need be made."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.text_factory = bytes  # that what is no UTF-8 is looked at like anything else
    connection.execute("PRAGMA trusted_schema = OFF")
    known = (read_pragma(connection, "application_id"), read_pragma(connection, "user_version"))
    if known == (APPLICATION_ID, SCHEMA_VERSION):
        return True
    is_older = known[0] == APPLICATION_ID and known[1] < SCHEMA_VERSION
    [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not is_older and (tables or known != (0, 0)):
        newer = known[0] == APPLICATION_ID
        raise ForeignFileError(f"is of another {'version of agentci' if newer else 'program'}")
    if makes:
        connection.execute("PRAGMA auto_vacuum = FULL")
        connection.execute("BEGIN IMMEDIATE")
        for table in OLD_TABLES if is_older else ():
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(TABLES)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    return makes


def _checksum(key: bytes, exit_code: int, stdout: bytes, stderr: bytes) -> bytes:
    digest = hashlib.sha256(key + b"%d %d " % (exit_code, len(stdout)))
    digest.update(stdout)
    digest.update(stderr)
    return digest.digest()


MAX_CACHE_BYTES: Final = 256 * 1024**2
# Of one response; that of an honest program is a hundredth of it.
MAX_RESPONSE_BYTES: Final = 1024**2

# A file up to this size is read at once; to look for its replies one by one would take many times
# as long.
PRELOAD_BYTES: Final = 4 * 1024**2

# How many wait to be written, and for how long.
BATCH_ROWS: Final = 256
BATCH_SECONDS: Final = 2.0
DAY_SECONDS: Final = 86_400
CACHE_DIR_HINT: Final = "name another folder with --cache-dir"

RowsByKey: TypeAlias = dict[object, tuple[object, ...]]

T = TypeVar("T")


class ResponseStore:
    """Replies by key. Nothing that is wrong with the file is raised: there is less in it then.

    What is damaged is removed and made anew. What is of somebody else, or of another version of
    ours, is left alone.

    Attributes:
        problem: why replies could not be kept; empty where they were.

    Args:
        folder: the cache.
        owner: a path whose owner gets what we make as root.
        max_bytes: of the file; replies that were of no use for longest go first.
    """

    def __init__(
        self, folder: Path, *, owner: Path | None = None, max_bytes: int = MAX_CACHE_BYTES
    ) -> None:
        self.problem = ""
        self._folder = folder
        self._path = folder / RESPONSES_FILE
        self._owner = owner
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_unusable = False
        self._preloaded: RowsByKey | None = None
        self._rows: list[ResponseRow] = []
        self._used: set[bytes] = set()
        self._dropped: set[bytes] = set()
        self._written_at = time.monotonic()
        self._today = int(time.time()) // DAY_SECONDS

    def find(self, key: bytes) -> ProgramOutput | None:
        """The response under ``key``, verified; a corrupt one is dropped."""
        with self._lock:
            if self.problem:  # waiting for each would take long
                return None
            if self._preloaded is None:
                self._preloaded = self._execute(_read_all_if_small, RowsByKey(), makes=False)
            # What is asked for again may have been written meanwhile.
            found = self._preloaded.pop(key, None) or self._execute(
                lambda connection: _read_row(connection, key), None, makes=False
            )
            if found is None:
                return None
            row = parse_row(found)
            if row is None:
                self._dropped.add(key)
                return None
            if row.used != self._today:
                self._used.add(key)
            return row.response

    def put(self, key: bytes, response: ProgramOutput) -> None:
        """Store a response, unless it is too large."""
        if len(response.stdout) + len(response.stderr) > MAX_RESPONSE_BYTES:
            return
        row = ResponseRow(key=key, response=response, used=self._today)
        with self._lock:
            self._rows.append(row)
            waited = time.monotonic() - self._written_at
            if len(self._rows) >= BATCH_ROWS or waited > BATCH_SECONDS:
                self._flush()

    def drop(self, key: bytes) -> None:
        """Remove the response under ``key``, stored or still to be written."""
        with self._lock:
            self._rows = [row for row in self._rows if row.key != key]
            self._dropped.add(key)

    def close(self) -> None:
        """Write what waits to be written, and let go of the file."""
        with self._lock:
            self._flush()
            self._disconnect()

    def _flush(self) -> None:
        if self._rows or self._used or self._dropped:
            self._execute(self._write, None, makes=bool(self._rows))
        self._written_at = time.monotonic()

    def _write(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        gone = [(key,) for key in self._dropped]
        connection.executemany("DELETE FROM replies WHERE key = ?", gone)
        used = [(self._today, key) for key in self._used]
        connection.executemany("UPDATE replies SET used = ? WHERE key = ?", used)
        rows = [row.to_columns() for row in self._rows]
        connection.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)", rows)
        _prune(connection, self._max_bytes)
        connection.execute("COMMIT")
        self._dropped.clear()
        self._used.clear()
        self._rows.clear()
        self.problem = ""

    def _execute(self, act: Callable[[sqlite3.Connection], T], default: T, *, makes: bool) -> T:
        """Do something with the file, a second time where it was damaged and is made anew."""
        for _ in range(2):
            if self._is_unusable:
                break
            try:
                if self._connection is None:
                    self._connection = open_database(self._folder, owner=self._owner, makes=makes)
                return default if self._connection is None else act(self._connection)
            except ForeignFileError as error:
                self._is_unusable = True
                self.problem = f"{self._path} {error}"
            except DATABASE_ERRORS as error:
                self._disconnect()
                self.problem = (
                    f"{self._path} cannot be used: {describe_error(error)} ({CACHE_DIR_HINT})"
                )
                if not (is_corruption(error) and self._remove_corrupt()):
                    break
        return default

    def _remove_corrupt(self) -> bool:
        try:
            remove_database(self._folder)
        except OSError:
            self._is_unusable = True
        return not self._is_unusable

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _read_all_if_small(connection: sqlite3.Connection) -> RowsByKey:
    """All rows by their keys, or none where there are many."""
    if read_pragma(connection, "page_count") * read_pragma(connection, "page_size") > PRELOAD_BYTES:
        return {}
    return {row[0]: row for row in connection.execute(SELECT_ROWS)}


def _read_row(connection: sqlite3.Connection, key: bytes) -> tuple[object, ...] | None:
    found: tuple[object, ...] | None
    found = connection.execute(f"{SELECT_ROWS} WHERE key = ?", (key,)).fetchone()
    return found


def _prune(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Remove quarters of what is there until the rest is small enough."""
    size = read_pragma(connection, "page_size")
    while True:
        pages = read_pragma(connection, "page_count") - read_pragma(connection, "freelist_count")
        [count] = connection.execute("SELECT count(*) FROM replies").fetchone()
        if not count or pages * size <= max_bytes:
            return
        connection.execute(
            "DELETE FROM replies WHERE rowid IN"
            " (SELECT rowid FROM replies ORDER BY used, rowid LIMIT ?)",
            (count // 4 + 1,),
        )
