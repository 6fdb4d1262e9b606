"""Looks through all replies that are kept, for people who look after the cache."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci._util.cache_folder import RESPONSES_FILE

if TYPE_CHECKING:
    import sqlite3

# As where Python was built on a machine without its headers.
NO_SQLITE: Final = "this Python has no module sqlite3"


class CacheInspection(Struct, frozen=True, kw_only=True):
    """What there is.

    Attributes:
        valid: replies that are as they were written.
        corrupt: those that are not, and so are never used.
        size_bytes: of the file.
        error: why it cannot be read as a whole; None where it can.
    """

    valid: int = 0
    corrupt: int = 0
    size_bytes: int = 0
    error: str | None = None


def has_sqlite() -> bool:
    """Whether this Python can read and write replies at all."""
    return find_spec("_sqlite3") is not None


def inspect_responses(folder: Path) -> CacheInspection:
    """Verify all replies in a cache, and change nothing."""
    if not os.path.lexists(folder / RESPONSES_FILE):
        return CacheInspection()
    if not has_sqlite():
        return CacheInspection(error=NO_SQLITE)
    # Only now is it known that its module can be imported.
    from agentci.runner.response_cache.store import (  # noqa: PLC0415
        DATABASE_ERRORS,
        ForeignFileError,
        describe_error,
        open_database,
    )

    try:
        connection = open_database(folder, owner=None, makes=False)
        if connection is None:
            return CacheInspection()
        try:
            sound, damaged = _count_valid(connection)
        finally:
            connection.close()
        size = (folder / RESPONSES_FILE).stat().st_size
    except (ForeignFileError, *DATABASE_ERRORS) as error:
        return CacheInspection(error=describe_error(error))
    return CacheInspection(valid=sound, corrupt=damaged, size_bytes=size)


def _count_valid(connection: "sqlite3.Connection") -> tuple[int, int]:
    """How many replies are as they were written, and how many are not."""
    from agentci.runner.response_cache.store import SELECT_ROWS, parse_row  # noqa: PLC0415 (likewise)

    sound = [parse_row(values) is not None for values in connection.execute(SELECT_ROWS)]
    return sum(sound), len(sound) - sum(sound)
