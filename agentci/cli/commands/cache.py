"""``agentci cache``: print the path and the contents of the cache, verify it, empty it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from msgspec import Struct

from agentci._util.cache_folder import (
    BASELINES_FOLDER,
    RESPONSES_FILE,
    is_cache,
    is_usable_as_cache,
)
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count, format_number
from agentci._util.text.json_text import dumps
from agentci._util.text.suggest import shorten_commit
from agentci.errors import InputError
from agentci.github.baseline.cache import BaselineStore, CachedBaseline
from agentci.model.result import EXIT_INVALID_INPUT
from agentci.model.values import Json
from agentci.remote.cache_index import CachedEvaluator, EvaluatorKey
from agentci.remote.evaluator_cache import CacheEntry, ClearedCache, EvaluatorCache, clear_cache
from agentci.runner.response_cache.open import NO_SQLITE, has_sqlite

if TYPE_CHECKING:
    import sqlite3

HEADINGS: Final = ("SOURCE", "REPOSITORY", "REF", "COMMIT", "SIZE", "FILES")
KIBIBYTE: Final = 1024


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


def print_cache_folder(folder: Path, out: TextIO) -> int:
    """Print the path of the cache, whether or not it exists."""
    out.write(f"{escape_for_log_line(str(folder))}\n")
    return 0


def list_cache_entries(folder: Path, out: TextIO, *, as_json: bool = False) -> int:
    """Print the contents of the cache: one line per evaluator, and the number of responses.

    Raises:
        InputError: the folder is used for something else, or cannot be read.
    """
    entries = _read_entries(folder)
    if as_json:
        results = BaselineStore(folder).entries()
        listed = [*map(_entry_to_json, entries), *map(_results_to_json, results)]
        out.write(f"{dumps(listed)}\n")
        return 0
    rows = [
        _format_row(entry.key, entry.evaluator, entry.size_bytes)
        for entry in entries
        if entry.key is not None and entry.evaluator is not None
    ]
    if rows:
        out.write(_format_table([HEADINGS, *rows]))
    _print_damaged(entries, out)
    responses = inspect_responses(folder)
    _print_unreadable_responses(responses, out)
    kept = BaselineStore(folder).inspect()
    others = [*_format_response_count(responses.valid), *_format_baseline_count(kept.sound)]
    sizes = (*(entry.size_bytes for entry in entries), responses.size_bytes, kept.size_bytes)
    held = ", ".join([format_count(len(rows), "evaluator"), *others, _format_size(sum(sizes))])
    out.write(f"{held}, in {escape_for_log_line(str(folder))}\n")
    return 0


def verify_cache(folder: Path, out: TextIO) -> int:
    """Print corrupt entries of the cache; the exit code is 0 without any.

    Raises:
        InputError: the folder is not a cache, or cannot be read.
    """
    entries = _read_entries(folder)
    damaged = _print_damaged(entries, out)
    out.write(f"{format_count(len(entries) - damaged, 'evaluator')} verified, {damaged} damaged\n")
    responses = inspect_responses(folder)
    _print_unreadable_responses(responses, out)
    out.writelines(
        f"{held}, {responses.corrupt} of them damaged\n"
        for held in _format_response_count(responses.valid + responses.corrupt)
    )
    kept = BaselineStore(folder).inspect()
    out.writelines(
        f"{held}, {kept.damaged} of them damaged\n"
        for held in _format_baseline_count(kept.sound + kept.damaged)
    )
    if damaged or responses.corrupt or kept.damaged or responses.error is not None:
        out.write(
            "damaged entries are never used: the next run fetches them or runs the program again,"
            " or empty the cache with `agentci cache clean`\n"
        )
        return EXIT_INVALID_INPUT
    return 0


def clean_cache(folder: Path, out: TextIO) -> int:
    """Empty the cache; the exit code is 0 if everything was removed.

    Raises:
        InputError: the folder is not a cache, or cannot be read.
    """
    try:
        if not folder.exists() or not any(folder.iterdir()):
            out.write(f"the cache is empty: {escape_for_log_line(str(folder))}\n")
            return 0
        if not is_cache(folder):
            raise _make_foreign_folder_error(folder)
        responses = inspect_responses(folder).valid
        kept = BaselineStore(folder).inspect().sound
        cleared = clear_cache(folder)
        kept -= BaselineStore(folder).inspect().sound
    except OSError as error:
        raise _make_unreadable_error(folder, error) from None
    return _print_cleared(cleared, responses, kept, out)


def _read_entries(folder: Path) -> Sequence[CacheEntry]:
    try:
        if folder.exists() and not is_cache(folder) and not is_usable_as_cache(folder):
            raise _make_foreign_folder_error(folder)
    except OSError as error:
        raise _make_unreadable_error(folder, error) from None
    return list(EvaluatorCache(folder).list_entries())


def _make_foreign_folder_error(folder: Path) -> InputError:
    return InputError.from_message(
        f"{folder} is not an agentci cache", hint="set the folder of the cache with --cache-dir"
    )


def _make_unreadable_error(folder: Path, error: OSError) -> InputError:
    return InputError.from_message(
        f"cannot read the cache {folder}: {error.strerror or error}",
        hint="set another folder with --cache-dir",
    )


def _print_damaged(entries: Sequence[CacheEntry], out: TextIO) -> int:
    """Print one line per corrupt entry, and return their number."""
    damaged = [entry for entry in entries if entry.corruption is not None]
    out.writelines(
        f"damaged: {escape_for_log_line(f'{_format_name(entry)}: {entry.corruption}')}\n"
        for entry in damaged
    )
    return len(damaged)


def _print_unreadable_responses(responses: CacheInspection, out: TextIO) -> None:
    """Print why cached responses cannot be read, if so."""
    if responses.error is not None:
        out.write(f"damaged: {escape_for_log_line(f'{RESPONSES_FILE}: {responses.error}')}\n")


def _print_cleared(cleared: ClearedCache, responses: int, baselines: int, out: TextIO) -> int:
    is_left = any(path.name == RESPONSES_FILE for path in cleared.remaining)
    *others, last = (
        format_count(cleared.evaluators, "evaluator"),
        format_count(cleared.environments, "environment"),
        *_format_baseline_count(baselines),
        *_format_response_count(0 if is_left else responses),
    )
    out.write(
        f"removed {', '.join(others)} and {last}: {_format_size(cleared.freed_bytes)} freed\n"
    )
    out.writelines(
        f"{escape_for_log_line(str(path))} could not be removed; remove it as its owner\n"
        for path in cleared.remaining
    )
    return EXIT_INVALID_INPUT if cleared.remaining else 0


def _format_name(entry: CacheEntry) -> str:
    if entry.key is None:
        return entry.name
    key = entry.key
    return f"{key.source} {key.repository} {key.ref} at {shorten_commit(key.commit)} ({entry.name})"


def _format_row(key: EvaluatorKey, stored: CachedEvaluator, size_bytes: int) -> tuple[str, ...]:
    cells = (key.source, key.repository or "-", key.ref, shorten_commit(key.commit))
    return (*map(escape_for_log_line, cells), _format_size(size_bytes), str(len(stored.digests)))


def _format_table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


def _entry_to_json(entry: CacheEntry) -> Json:
    key, stored = entry.key, entry.evaluator
    return {
        "source": None if key is None else key.source,
        "repository": None if key is None else key.repository,
        "ref": None if key is None else key.ref,
        "commit": None if key is None else key.commit,
        "path": None if stored is None else str(stored.path),
        "size_bytes": entry.size_bytes,
        "files": None if stored is None else dict(stored.digests),
        "damage": entry.corruption,
    }


def _results_to_json(results: CachedBaseline) -> Json:
    return {
        "source": BASELINES_FOLDER,
        "repository": None,
        "ref": None,
        "commit": results.commit,
        "path": str(results.path),
        "size_bytes": results.size_bytes,
        "files": None,
        "damage": results.damage,
    }


def _format_response_count(how_many: int) -> Sequence[str]:
    """Format the number of cached responses; empty without any."""
    return [format_count(how_many, "response")] if how_many else []


def _format_baseline_count(how_many: int) -> Sequence[str]:
    """Format the number of commits with results; empty without any."""
    return [format_count(how_many, "baseline")] if how_many else []


def _format_size(size_bytes: int) -> str:
    """Format a size: ``512 bytes``, ``3.4 KiB``, ``12 MiB``."""
    if size_bytes < KIBIBYTE:
        return format_count(size_bytes, "byte")
    if size_bytes < KIBIBYTE**2:
        return f"{format_number(size_bytes / KIBIBYTE, 1)} KiB"
    return f"{format_number(size_bytes / KIBIBYTE**2, 1)} MiB"


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
