"""``agentci cache``: say where the cache is and what it holds, verify it, empty it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agentci._util.cache.init import BASELINES, REPLIES, is_cache, is_free
from agentci._util.text.escape import one_line
from agentci._util.text.format import count, number
from agentci._util.text.strict_json import dumps
from agentci._util.text.suggest import short_commit
from agentci.errors import InputError
from agentci.github.baseline.cache import BaselineStore, KeptResults
from agentci.model.json import Json
from agentci.model.result import EXIT_INVALID
from agentci.remote.cache.clear import Cleared, clear
from agentci.remote.cache.entry import Key, Stored
from agentci.remote.cache.evaluators import Entry, EvaluatorStore
from agentci.runner.response_cache.inspect import Inspection, inspect
from agentci.runner.services import World

HEADINGS: Final = ("SOURCE", "REPOSITORY", "REF", "COMMIT", "SIZE", "FILES")
KIBIBYTE: Final = 1024


def show_folder(folder: Path, world: World) -> int:
    """Print where the cache is, whether or not there is anything yet."""
    world.out.write(f"{one_line(str(folder))}\n")
    return 0


def list_entries(folder: Path, world: World, *, as_json: bool = False) -> int:
    """Print what the cache holds: a line an evaluator, and how many replies.

    Raises:
        InputError: the folder is used for something else, or cannot be read.
    """
    entries = _entries(folder)
    if as_json:
        results = BaselineStore(folder).entries()
        told = [*map(_json, entries), *map(_json_of_results, results)]
        world.out.write(f"{dumps(told)}\n")
        return 0
    rows = [
        _row(entry.key, entry.stored, entry.size_bytes)
        for entry in entries
        if entry.key is not None and entry.stored is not None
    ]
    if rows:
        world.out.write(_table([HEADINGS, *rows]))
    _tell_damage(entries, world)
    replies = inspect(folder)
    _tell_lost(replies, world)
    kept = BaselineStore(folder).inspect()
    others = [*_replies(replies.sound), *_baselines(kept.sound)]
    sizes = (*(entry.size_bytes for entry in entries), replies.size_bytes, kept.size_bytes)
    held = ", ".join([count(len(rows), "evaluator"), *others, _size(sum(sizes))])
    world.out.write(f"{held}, in {one_line(str(folder))}\n")
    return 0


def verify(folder: Path, world: World) -> int:
    """Print what is damaged in the cache; the exit code is 0 where nothing is.

    Raises:
        InputError: the folder is used for something else, or cannot be read.
    """
    entries = _entries(folder)
    damaged = _tell_damage(entries, world)
    world.out.write(f"{count(len(entries) - damaged, 'evaluator')} verified, {damaged} damaged\n")
    replies = inspect(folder)
    _tell_lost(replies, world)
    for held in _replies(replies.sound + replies.damaged):
        world.out.write(f"{held}, {replies.damaged} of them damaged\n")
    kept = BaselineStore(folder).inspect()
    for held in _baselines(kept.sound + kept.damaged):
        world.out.write(f"{held}, {kept.damaged} of them damaged\n")
    if damaged or replies.damaged or kept.damaged or replies.damage is not None:
        world.out.write(
            "what is damaged is never used: the next run fetches it again, or runs the program,"
            " or empty the cache with `agentci cache clean`\n"
        )
        return EXIT_INVALID
    return 0


def clean(folder: Path, world: World) -> int:
    """Remove all that is ours from the cache; the exit code is 0 where nothing of it is left.

    Raises:
        InputError: the folder is no cache of ours, or cannot be read.
    """
    try:
        if not folder.exists() or not any(folder.iterdir()):
            world.out.write(f"there is nothing in {one_line(str(folder))}\n")
            return 0
        if not is_cache(folder):
            raise _foreign(folder)
        replies = inspect(folder).sound
        kept = BaselineStore(folder).inspect().sound
        cleared = clear(folder)
        kept -= BaselineStore(folder).inspect().sound
    except OSError as error:
        raise _unreadable(folder, error) from None
    return _tell_cleared(cleared, replies, kept, world)


def _entries(folder: Path) -> Sequence[Entry]:
    try:
        if folder.exists() and not is_cache(folder) and not is_free(folder):
            raise _foreign(folder)
    except OSError as error:
        raise _unreadable(folder, error) from None
    return list(EvaluatorStore(folder).entries())


def _foreign(folder: Path) -> InputError:
    return InputError.of(
        f"{folder} is no cache of agentci", hint="name the folder of the cache with --cache-dir"
    )


def _unreadable(folder: Path, error: OSError) -> InputError:
    return InputError.of(
        f"the cache {folder} cannot be read: {error.strerror or error}",
        hint="name another folder with --cache-dir",
    )


def _tell_damage(entries: Sequence[Entry], world: World) -> int:
    """Print a line for each damaged entry, and return how many there are."""
    damaged = [entry for entry in entries if entry.damage is not None]
    for entry in damaged:
        world.out.write(f"damaged: {one_line(f'{_name(entry)}: {entry.damage}')}\n")
    return len(damaged)


def _tell_lost(replies: Inspection, world: World) -> None:
    """Print why replies cannot be read, where they cannot."""
    if replies.damage is not None:
        world.out.write(f"damaged: {one_line(f'{REPLIES}: {replies.damage}')}\n")


def _tell_cleared(cleared: Cleared, replies: int, baselines: int, world: World) -> int:
    is_left = any(path.name == REPLIES for path in cleared.left)
    *others, last = (
        count(cleared.evaluators, "evaluator"),
        count(cleared.environments, "environment"),
        *_baselines(baselines),
        *_replies(0 if is_left else replies),
    )
    world.out.write(f"removed {', '.join(others)} and {last}: {_size(cleared.freed_bytes)} freed\n")
    for path in cleared.left:
        world.out.write(f"{one_line(str(path))} could not be removed; remove it as its owner\n")
    return EXIT_INVALID if cleared.left else 0


def _name(entry: Entry) -> str:
    if entry.key is None:
        return entry.name
    key = entry.key
    return f"{key.source} {key.repository} {key.ref} at {short_commit(key.commit)} ({entry.name})"


def _row(key: Key, stored: Stored, size_bytes: int) -> tuple[str, ...]:
    cells = (key.source, key.repository or "-", key.ref, short_commit(key.commit))
    return (*map(one_line, cells), _size(size_bytes), str(len(stored.digests)))


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


def _json(entry: Entry) -> Json:
    key, stored = entry.key, entry.stored
    return {
        "source": None if key is None else key.source,
        "repository": None if key is None else key.repository,
        "ref": None if key is None else key.ref,
        "commit": None if key is None else key.commit,
        "path": None if stored is None else str(stored.path),
        "size_bytes": entry.size_bytes,
        "files": None if stored is None else dict(stored.digests),
        "damage": entry.damage,
    }


def _json_of_results(results: KeptResults) -> Json:
    return {
        "source": BASELINES,
        "repository": None,
        "ref": None,
        "commit": results.commit,
        "path": str(results.path),
        "size_bytes": results.size_bytes,
        "files": None,
        "damage": results.damage,
    }


def _replies(how_many: int) -> Sequence[str]:
    """How many replies there are, where there are any."""
    return [f"{how_many:,} {'reply' if how_many == 1 else 'replies'}"] if how_many else []


def _baselines(how_many: int) -> Sequence[str]:
    """Of how many commits there are results, where there are any."""
    return [count(how_many, "baseline")] if how_many else []


def _size(size_bytes: int) -> str:
    """``512 bytes``, ``3.4 KiB``, ``12 MiB``."""
    if size_bytes < KIBIBYTE:
        return count(size_bytes, "byte")
    if size_bytes < KIBIBYTE**2:
        return f"{number(size_bytes / KIBIBYTE, 1)} KiB"
    return f"{number(size_bytes / KIBIBYTE**2, 1)} MiB"
