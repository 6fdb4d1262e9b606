"""Looks through all replies that are kept, for people who look after the cache."""

import sqlite3
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agentci.errors import UnreachableError
from agentci.replies.file import SELECT, NotOursError, open_file, row_of
from agentci.store.founding import REPLIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What there is.

    Attributes:
        sound: replies that are as they were written.
        damaged: those that are not, and so are never used.
        size_bytes: of the file.
        damage: why it cannot be read as a whole; None where it can.
    """

    sound: int = 0
    damaged: int = 0
    size_bytes: int = 0
    damage: str | None = None


def inspect(folder: Path) -> Inspection:
    """Verify all replies in a cache, and change nothing."""
    try:
        connection = open_file(folder, owner=None, makes=False)
        if connection is None:
            return Inspection()
        try:
            sound, damaged = _verified(connection)
        finally:
            connection.close()
        size = (folder / REPLIES).stat().st_size
    except (NotOursError, sqlite3.Error, OSError, UnreachableError) as error:
        return Inspection(damage=str(error))
    return Inspection(sound=sound, damaged=damaged, size_bytes=size)


def _verified(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many replies are as they were written, and how many are not."""
    lists = {
        digest
        for digest, listed in connection.execute("SELECT id, listed FROM inputs")
        if isinstance(listed, bytes) and sha256(listed).digest() == digest
    }
    sound = count = 0
    for values in connection.execute(SELECT):
        row = row_of(values)
        sound += row is not None and row.inputs in lists
        count += 1
    return sound, count - sound
