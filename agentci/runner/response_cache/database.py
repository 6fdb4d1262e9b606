"""The file that replies are kept in: an SQLite database, opened with care for what it may be."""

import hashlib
import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from agentci._util.cache.init import JOURNAL, REPLIES, found
from agentci._util.ownership import give_to_owner
from agentci.errors import UnreachableError
from agentci.model.requests import ProgramReply

# What SQLite keeps to tell files of one program from those of others; the letters are "acir".
APPLICATION: Final = 0x61636972
VERSION: Final = 1
PRIVATE: Final = 0o600
# Longer than somebody else's writing takes.
BUSY_SECONDS: Final = 1.0

TABLES: Final = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY,
    inputs BLOB NOT NULL,
    exit_code INTEGER NOT NULL,
    stdout BLOB NOT NULL,
    stderr BLOB NOT NULL,
    checksum BLOB NOT NULL,
    used INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS inputs (id BLOB PRIMARY KEY, listed BLOB NOT NULL)
"""
SELECT: Final = "SELECT key, inputs, exit_code, stdout, stderr, checksum, used FROM replies"
# More than we write.
MAX_VALUE_BYTES: Final = 16 * 1024**2
# SQLite tells of damage in the bytes of the file, which need not be text.
FAULTS: Final = (sqlite3.Error, OSError, UnreachableError, UnicodeDecodeError)
DAMAGED: Final = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class NotOursError(Exception):
    """What lies in the file's place is nothing that we may write to or replace; says what it is."""


class Row(Struct, frozen=True, kw_only=True):
    """A reply as it is kept.

    Attributes:
        inputs: the sha256 of the list of what it was made from.
        used: the day when it was last of use, counted from 1970.
    """

    key: bytes
    inputs: bytes
    reply: ProgramReply
    used: int

    def values(self) -> tuple[bytes | int, ...]:
        """The columns, in the order of ``TABLES``."""
        stderr = self.reply.stderr.encode("utf-8", "surrogatepass")
        return (
            *(self.key, self.inputs, self.reply.exit_code, self.reply.stdout, stderr),
            *(_checksum(self.key, self.inputs, self.reply.exit_code, self.reply.stdout, stderr),),
            self.used,
        )


def row_of(values: tuple[object, ...]) -> Row | None:
    """A row that was read; None where it is not as it was written."""
    key, inputs, exit_code, stdout, stderr, checksum, used = values
    if not (
        isinstance(key, bytes)
        and isinstance(inputs, bytes)
        and isinstance(exit_code, int)
        and isinstance(stdout, bytes)
        and isinstance(stderr, bytes)
        and isinstance(used, int)
        and checksum == _checksum(key, inputs, exit_code, stdout, stderr)
    ):
        return None
    try:
        text = stderr.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    reply = ProgramReply(stdout=stdout, stderr=text, exit_code=exit_code)
    return Row(key=key, inputs=inputs, reply=reply, used=used)


def open_file(folder: Path, *, owner: Path | None, makes: bool) -> sqlite3.Connection | None:
    """Open the file in ``folder``; None where there is none and none is to be made.

    Raises:
        NotOursError: something else lies in its place.
        sqlite3.Error, OSError, UnreachableError: it cannot be opened or made.
    """
    path = folder / REPLIES
    if not os.path.lexists(path):
        if not makes:
            return None
        found(folder, owner)
        _make(path, owner)
    # Neither through a link nor into a pipe.
    if not stat.S_ISREG(path.lstat().st_mode):
        raise NotOursError("is not a regular file")
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if _is_prepared(connection, makes=makes):
            return connection
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def is_damage(error: Exception) -> bool:
    """Whether the file is to blame, and not who else uses it or the disk."""
    if isinstance(error, UnicodeDecodeError):
        return True
    return isinstance(error, sqlite3.Error) and (
        (getattr(error, "sqlite_errorcode", 0) & 0xFF) in DAMAGED
    )


def told(error: Exception) -> str:
    """One of ``FAULTS`` in words."""
    if isinstance(error, UnicodeDecodeError):
        return error.object.decode("utf-8", "replace")
    return str(error)


def remove_file(folder: Path) -> None:
    """Remove the file, so that a new one can be made.

    Raises:
        OSError: it cannot be.
    """
    for name in (JOURNAL, REPLIES):
        (folder / name).unlink(missing_ok=True)


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """The number that SQLite tells by that name."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _make(path: Path, owner: Path | None) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError):  # another process was faster
        os.close(os.open(path, flags, PRIVATE))
        give_to_owner(path, owner)


def _is_prepared(connection: sqlite3.Connection, *, makes: bool) -> bool:
    """Whether the tables are there, if need be made."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.text_factory = bytes  # that what is no UTF-8 is looked at like anything else
    connection.execute("PRAGMA trusted_schema = OFF")
    known = (pragma(connection, "application_id"), pragma(connection, "user_version"))
    if known == (APPLICATION, VERSION):
        return True
    [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables or known != (0, 0):
        newer = known[0] == APPLICATION
        raise NotOursError(f"is of another {'version of agentci' if newer else 'program'}")
    if makes:
        connection.execute("PRAGMA auto_vacuum = FULL")
        connection.execute("BEGIN IMMEDIATE")
        for table in TABLES.split(";"):
            connection.execute(table)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    return makes


def _checksum(key: bytes, inputs: bytes, exit_code: int, stdout: bytes, stderr: bytes) -> bytes:
    digest = hashlib.sha256(key + inputs + b"%d %d " % (exit_code, len(stdout)))
    digest.update(stdout)
    digest.update(stderr)
    return digest.digest()
