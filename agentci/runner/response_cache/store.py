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

# Written into the file's header, by which SQLite tells applications apart; ASCII for "acir".
APPLICATION_ID: Final = 0x61636972
SCHEMA_VERSION: Final = 1
PRIVATE_MODE: Final = 0o600
# How long to wait for another process that is writing; a write takes less.
BUSY_SECONDS: Final = 1.0

CREATE_TABLE: Final = """
CREATE TABLE IF NOT EXISTS responses (
    key BLOB PRIMARY KEY,
    exit_code INTEGER NOT NULL,
    stdout BLOB NOT NULL,
    stderr BLOB NOT NULL,
    checksum BLOB NOT NULL,
    used INTEGER NOT NULL
)
"""
SELECT_ROWS: Final = "SELECT key, exit_code, stdout, stderr, checksum, used FROM responses"
# SQLite refuses larger values; MAX_RESPONSE_BYTES is smaller.
MAX_VALUE_BYTES: Final = 16 * 1024**2
# SQLite quotes the file's bytes in errors about corruption; they need not be UTF-8.
DATABASE_ERRORS: Final = (sqlite3.Error, OSError, UnreachableError, UnicodeDecodeError)
CORRUPTION_CODES: Final = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
)


class ForeignFileError(Exception):
    """The file belongs to another program or version, so it is not written to or replaced."""


class ResponseRow(Struct, frozen=True, kw_only=True):
    """A cached response with its key.

    Attributes:
        used: the day of its last use, in days since 1970.
    """

    key: bytes
    response: ProgramOutput
    used: int

    def to_columns(self) -> tuple[bytes | int, ...]:
        """The columns in the order of ``CREATE_TABLE``."""
        stderr = self.response.stderr.encode("utf-8", "surrogatepass")
        return (
            *(self.key, self.response.exit_code, self.response.stdout, stderr),
            _checksum(self.key, self.response.exit_code, self.response.stdout, stderr),
            self.used,
        )


def parse_row(values: tuple[object, ...]) -> ResponseRow | None:
    """Verify a row that was read; None if it is corrupt."""
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


def open_database(folder: Path, *, owner: Path | None, create: bool) -> sqlite3.Connection | None:
    """Open the database in ``folder``; None if there is none and ``create`` is false.

    Args:
        owner: a path whose owner gets the file if this process is root.

    Raises:
        ForeignFileError: the file is of another program or version, or not a regular file.
        sqlite3.Error, OSError, UnreachableError: it cannot be opened or created.
    """
    path = folder / RESPONSES_FILE
    if not os.path.lexists(path):
        if not create:
            return None
        init_cache(folder, owner)
        _create_file(path, owner)
    # A link could lead out of the folder; opening a pipe could block.
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
        if _ensure_tables(connection, create=create):
            return connection
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def is_corruption(error: Exception) -> bool:
    """Whether the file is corrupt, as opposed to locked, or on a disk that fails."""
    if isinstance(error, UnicodeDecodeError):
        return True
    return isinstance(error, sqlite3.Error) and (
        (getattr(error, "sqlite_errorcode", 0) & 0xFF) in CORRUPTION_CODES
    )


def describe_error(error: Exception) -> str:
    """The text of one of ``DATABASE_ERRORS``."""
    if isinstance(error, UnicodeDecodeError):
        return error.object.decode("utf-8", "replace")
    return str(error)


def remove_database(folder: Path) -> None:
    """Remove the database and its journal.

    Raises:
        OSError: one of them cannot be removed.
    """
    for name in (RESPONSES_JOURNAL, RESPONSES_FILE):
        (folder / name).unlink(missing_ok=True)


def read_pragma(connection: sqlite3.Connection, name: str) -> int:
    """The value of a numeric pragma."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _create_file(path: Path, owner: Path | None) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError):  # another process was faster
        os.close(os.open(path, flags, PRIVATE_MODE))
        give_to_owner(path, owner)


def _ensure_tables(connection: sqlite3.Connection, *, create: bool) -> bool:
    """Check the database, and create the table if ``create`` is true; whether there is one."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.text_factory = bytes  # text that is not UTF-8 must reach parse_row
    connection.execute("PRAGMA trusted_schema = OFF")
    # One transaction each, as another run may create the table between two queries.
    connection.execute("BEGIN")
    with connection:
        if _has_table(connection):
            return True
    if create:
        connection.execute("PRAGMA auto_vacuum = FULL")
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if not _has_table(connection):
                connection.execute(CREATE_TABLE)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return create


def _has_table(connection: sqlite3.Connection) -> bool:
    known = (read_pragma(connection, "application_id"), read_pragma(connection, "user_version"))
    if known == (APPLICATION_ID, SCHEMA_VERSION):
        return True
    [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables or known != (0, 0):
        creator = "version of agentci" if known[0] == APPLICATION_ID else "program"
        raise ForeignFileError(f"was created by another {creator}")
    return False


def _checksum(key: bytes, exit_code: int, stdout: bytes, stderr: bytes) -> bytes:
    digest = hashlib.sha256(key + b"%d %d " % (exit_code, len(stdout)))
    digest.update(stdout)
    digest.update(stderr)
    return digest.digest()


MAX_CACHE_BYTES: Final = 256 * 1024**2
# Of one response: stdout and stderr. Typical ones are a hundredth of it.
MAX_RESPONSE_BYTES: Final = 1024**2

# A database up to this size is read at once, which is many times faster than reading its rows one
# by one.
PRELOAD_BYTES: Final = 4 * 1024**2

# New rows are written in batches: after this many, or this long after the last write.
BATCH_ROWS: Final = 256
BATCH_SECONDS: Final = 2.0
DAY_SECONDS: Final = 86_400
CACHE_DIR_HINT: Final = "name another folder with --cache-dir"

RowsByKey: TypeAlias = dict[object, tuple[object, ...]]

T = TypeVar("T")


class ResponseStore:
    """Cached responses by key, in one database file; safe to share between threads.

    Errors of the file are not raised; responses are then not found or not stored. A corrupt file is
    replaced. A file of another program or another version of agentci stays untouched.

    Attributes:
        problem: why responses could not be stored; empty if all were.

    Args:
        folder: the cache folder.
        owner: a path whose owner gets the file if this process is root.
        max_bytes: maximum size of the file; the least recently used responses are removed first.
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
            if self.problem:  # e.g. a locked file: each attempt would wait BUSY_SECONDS
                return None
            if self._preloaded is None:
                self._preloaded = self._execute(_read_all_if_small, RowsByKey(), create=False)
            # Each preloaded row is used once; later look-ups read the file, which may have changed.
            found = self._preloaded.pop(key, None) or self._execute(
                lambda connection: _read_row(connection, key), None, create=False
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
        """Remove the response under ``key``, whether stored or still in memory."""
        with self._lock:
            self._rows = [row for row in self._rows if row.key != key]
            self._dropped.add(key)

    def close(self) -> None:
        """Write what is still in memory, and close the file."""
        with self._lock:
            self._flush()
            self._disconnect()

    def _flush(self) -> None:
        if self._rows or self._used or self._dropped:
            self._execute(self._write, None, create=bool(self._rows))
        self._written_at = time.monotonic()

    def _write(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        gone = [(key,) for key in self._dropped]
        connection.executemany("DELETE FROM responses WHERE key = ?", gone)
        used = [(self._today, key) for key in self._used]
        connection.executemany("UPDATE responses SET used = ? WHERE key = ?", used)
        rows = [row.to_columns() for row in self._rows]
        connection.executemany("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?)", rows)
        _prune(connection, self._max_bytes)
        connection.execute("COMMIT")
        self._dropped.clear()
        self._used.clear()
        self._rows.clear()
        self.problem = ""

    def _execute(self, act: Callable[[sqlite3.Connection], T], default: T, *, create: bool) -> T:
        """The result of ``act``, or ``default`` if it fails; retried once after corruption."""
        for _ in range(2):
            if self._is_unusable:
                break
            try:
                if self._connection is None:
                    self._connection = open_database(self._folder, owner=self._owner, create=create)
                return default if self._connection is None else act(self._connection)
            except ForeignFileError as error:
                self._is_unusable = True
                self.problem = f"{self._path} {error} ({CACHE_DIR_HINT})"
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
    """All rows by key; empty if the file is larger than ``PRELOAD_BYTES``."""
    if read_pragma(connection, "page_count") * read_pragma(connection, "page_size") > PRELOAD_BYTES:
        return {}
    return {row[0]: row for row in connection.execute(SELECT_ROWS)}


def _read_row(connection: sqlite3.Connection, key: bytes) -> tuple[object, ...] | None:
    found: tuple[object, ...] | None
    found = connection.execute(f"{SELECT_ROWS} WHERE key = ?", (key,)).fetchone()
    return found


def _prune(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Remove the least recently used quarter of the rows until the rest fits ``max_bytes``."""
    size = read_pragma(connection, "page_size")
    while True:
        pages = read_pragma(connection, "page_count") - read_pragma(connection, "freelist_count")
        [count] = connection.execute("SELECT count(*) FROM responses").fetchone()
        if not count or pages * size <= max_bytes:
            return
        connection.execute(
            "DELETE FROM responses WHERE rowid IN"
            " (SELECT rowid FROM responses ORDER BY used, rowid LIMIT ?)",
            (count // 4 + 1,),
        )
