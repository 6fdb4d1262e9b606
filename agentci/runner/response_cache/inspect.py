"""Looks through all replies that are kept, for people who look after the cache."""

import os
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci._util.cache.init import REPLIES

if TYPE_CHECKING:
    import sqlite3

# As where Python was built on a machine without its headers.
NO_SQLITE: Final = "this Python has no module sqlite3"


class Inspection(Struct, frozen=True, kw_only=True):
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


def has_sqlite() -> bool:
    """Whether this Python can read and write replies at all."""
    return find_spec("_sqlite3") is not None


def inspect(folder: Path) -> Inspection:
    """Verify all replies in a cache, and change nothing."""
    if not os.path.lexists(folder / REPLIES):
        return Inspection()
    if not has_sqlite():
        return Inspection(damage=NO_SQLITE)
    # Only now is it known that its module can be imported.
    from agentci.runner.response_cache.database import FAULTS, NotOursError, open_file, told  # noqa: PLC0415

    try:
        connection = open_file(folder, owner=None, makes=False)
        if connection is None:
            return Inspection()
        try:
            sound, damaged = _verified(connection)
        finally:
            connection.close()
        size = (folder / REPLIES).stat().st_size
    except (NotOursError, *FAULTS) as error:
        return Inspection(damage=told(error))
    return Inspection(sound=sound, damaged=damaged, size_bytes=size)


def _verified(connection: "sqlite3.Connection") -> tuple[int, int]:
    """How many replies are as they were written, and how many are not."""
    from agentci.runner.response_cache.database import SELECT, row_of  # noqa: PLC0415 (likewise)

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
