"""The index of the cache: one small file an evaluator, which anybody may have written."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentci._util.cache.corruption import DamageError, content_of
from agentci._util.text.json_document import read_json
from agentci.errors import InputError
from agentci.model.json import Json, JsonObject
from agentci.remote.cache.entry import Key
from agentci.remote.cache.manifest import Inventory, Mark, digest_of, why_unfit

SUFFIX: Final = ".json"
MAX_INDEX_BYTES: Final = 1024**2
VERSION: Final = 1

_KEY_FIELDS: Final = ("source", "repository", "commit", "ref")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def render(inventory: Inventory) -> bytes:
    """``inventory`` as a file of the index."""
    document = {
        "version": VERSION,
        "key": {name: getattr(inventory.key, name) for name in _KEY_FIELDS},
        "entry": inventory.entry,
        "files": {
            path: {"sha256": mark.sha256, "executable": mark.executable}
            for path, mark in inventory.files.items()
        },
    }
    return f"{json.dumps(document, indent=1)}\n".encode()


def reads_back(inventory: Inventory) -> bool:
    """Whether what ``render`` makes of it is taken for the same."""
    content = render(inventory)
    try:
        return len(content) <= MAX_INDEX_BYTES and _parse(content) == inventory
    except (InputError, _OddError):
        return False


def name_of(key: Key) -> str:
    """The name of the file that ``key`` is found in."""
    return f"{digest_of(key)}{SUFFIX}"


def read_index(path: Path) -> Inventory | None:
    """Read a file of the index, and believe nothing of it; None where there is none.

    Raises:
        DamageError: it is not as we write it, or lies under another name.
        UnreachableError: too much is open, or memory is short.
    """
    content = content_of(path, "its entry in the index", limit_bytes=MAX_INDEX_BYTES)
    if content is None:
        return None
    try:
        inventory = _parse(content)
    except InputError as error:
        raise DamageError(f"its entry in the index: {error.problems[0].message}", path) from None
    except _OddError as error:
        raise DamageError(f"its entry in the index: {error}", path) from None
    if name_of(inventory.key) != path.name:
        raise DamageError("its entry in the index lies under the name of another", path)
    return inventory


class _OddError(Exception):
    """A file of the index does not say what it should."""


def _parse(content: bytes) -> Inventory:
    """Take what ``render`` writes, and nothing more."""
    value = read_json(content, file="index").value
    document = _fields(value, "version", "key", "entry", "files")
    if document["version"] is True or document["version"] != VERSION:
        raise _OddError(f"it is not of version {VERSION}")
    key = _fields(document["key"], *_KEY_FIELDS)
    entry = _text(document["entry"])
    files = document["files"]
    if not isinstance(files, Mapping):
        raise _OddError("its files are no object")
    unfit = why_unfit(entry, files)
    if unfit is not None:
        raise _OddError(unfit)
    return Inventory(
        key=Key(**{name: _text(key[name]) for name in _KEY_FIELDS}),
        entry=entry,
        files={path: _mark(mark) for path, mark in sorted(files.items())},
    )


def _mark(value: Json) -> Mark:
    fields = _fields(value, "sha256", "executable")
    sha256, executable = _text(fields["sha256"]), fields["executable"]
    if not _SHA256.fullmatch(sha256) or not isinstance(executable, bool):
        raise _OddError("a file has no sha256, or is neither executable nor not")
    return Mark(sha256=sha256, executable=executable)


def _fields(value: Json, *names: str) -> JsonObject:
    """An object with exactly these keys."""
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise _OddError(f"an object must have the keys {', '.join(names)}, and no other")
    return value


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise _OddError("a text is something else")
    return value
