"""Count and verify all cached responses, for `agentci cache`."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci._util.cache_folder import RESPONSES_FILE

if TYPE_CHECKING:
    import sqlite3

# As with a Python that was built without the headers of SQLite.
NO_SQLITE: Final = "this Python has no `sqlite3` module"


class CacheInspection(Struct, frozen=True, kw_only=True):
    """The state of the database of cached responses.

    Attributes:
        valid: number of responses that can be used.
        corrupt: number of responses that fail verification; they are never used.
        size_bytes: of the file.
        error: why the file cannot be read at all; None if it can.
    """

    valid: int = 0
    corrupt: int = 0
    size_bytes: int = 0
    error: str | None = None


def has_sqlite() -> bool:
    """Whether this Python can read and write the database."""
    return find_spec("_sqlite3") is not None


def inspect_responses(folder: Path) -> CacheInspection:
    """Verify all responses of a cache; the file is not changed."""
    if not os.path.lexists(folder / RESPONSES_FILE):
        return CacheInspection()
    if not has_sqlite():
        return CacheInspection(error=NO_SQLITE)
    # Imports sqlite3, which this Python may lack.
    from agentci.runner.response_cache.store import (  # noqa: PLC0415
        DATABASE_ERRORS,
        ForeignFileError,
        describe_error,
        open_database,
    )

    try:
        connection = open_database(folder, owner=None, create=False)
        if connection is None:
            return CacheInspection()
        try:
            valid, corrupt = _count_valid(connection)
        finally:
            connection.close()
        size = (folder / RESPONSES_FILE).stat().st_size
    except (ForeignFileError, *DATABASE_ERRORS) as error:
        return CacheInspection(error=describe_error(error))
    return CacheInspection(valid=valid, corrupt=corrupt, size_bytes=size)


def _count_valid(connection: "sqlite3.Connection") -> tuple[int, int]:
    """The numbers of valid and of corrupt responses."""
    from agentci.runner.response_cache.store import SELECT_ROWS, parse_row  # noqa: PLC0415 (likewise)

    valid = [parse_row(values) is not None for values in connection.execute(SELECT_ROWS)]
    return sum(valid), len(valid) - sum(valid)
