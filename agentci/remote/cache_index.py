"""Index of the cache: the files of each evaluator and their digests."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.cache_folder import CorruptionError, read_cache_file
from agentci._util.text.json_document import read_json
from agentci.errors import InputError
from agentci.model.program import ProgramSnapshot
from agentci.model.values import Json, JsonObject


class EvaluatorKey(Struct, frozen=True, kw_only=True):
    """Cache key of one evaluator: fields of its completed program, and its commit."""

    source: str
    repository: str
    commit: str
    ref: str


class CachedEvaluator(Struct, frozen=True, kw_only=True):
    """An evaluator on disk whose files have just been verified.

    Attributes:
        path: absolute path of the program's file.
        folder: absolute path of the folder that was fetched with it; holds no other files.
        digests: sha256 in hexadecimal by path relative to the folder, sorted by path.
    """

    path: Path
    folder: Path
    digests: Mapping[str, str]


# Above the limits of every source, so no valid evaluator is larger.
MAX_FILES: Final = 2000
MAX_BYTES: Final = 64 * 1024**2

_MAX_PATH_BYTES: Final = 1024
_MAX_NAME_BYTES: Final = 255


class FileDigest(Struct, frozen=True, kw_only=True):
    """Expected state of a file; ``sha256`` is in hexadecimal."""

    sha256: str
    executable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The files of one evaluator, without their content.

    Attributes:
        entry: path of the program's own file, one of ``files``.
        files: by path relative to the folder, sorted by path.
    """

    key: EvaluatorKey
    entry: str
    files: Mapping[str, FileDigest] = field(repr=False)

    @property
    def digest(self) -> str:
        """Digest of all files; evaluators with the same files at the same paths share it."""
        listed: list[Json] = [
            [path, digest.sha256, digest.executable] for path, digest in self.files.items()
        ]
        return _hash_json(listed)


def make_manifest(key: EvaluatorKey, snapshot: ProgramSnapshot) -> Manifest:
    """Make the manifest of ``snapshot``."""
    files = {
        path: FileDigest(
            sha256=hashlib.sha256(file.content).hexdigest(), executable=file.executable
        )
        for path, file in sorted(snapshot.files.items())
    }
    return Manifest(key=key, entry=snapshot.entry, files=files)


def hash_key(key: EvaluatorKey) -> str:
    """Return the sha256 that identifies ``key`` in file names."""
    return _hash_json([key.source, key.repository, key.commit, key.ref])


def find_paths_problem(entry: str, paths: Collection[str]) -> str | None:
    """Return why ``paths`` cannot be the files of one folder, or None if they can."""
    if len(paths) > MAX_FILES:
        return f"there are more than {MAX_FILES:,} files"
    invalid = next(filter(_is_invalid_path, paths), None)
    if invalid is not None:
        return f"{invalid!r} is not a path inside the folder"
    both = next((path for path in sorted(find_parent_folders(paths)) if path in paths), None)
    if both is not None:
        return f"{both!r} is both a file and a folder"
    if entry not in paths:
        return f"the program {entry!r} is not among the files"
    return None


def find_parent_folders(paths: Iterable[str]) -> set[str]:
    """Return all parent folders of ``paths``, relative to the same base."""
    folders = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    return folders


def _is_invalid_path(path: str) -> bool:
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return True
    if len(encoded) > _MAX_PATH_BYTES or b"\\" in encoded or b"\0" in encoded:
        return True
    names = encoded.split(b"/")
    return any(name in {b"", b".", b".."} or len(name) > _MAX_NAME_BYTES for name in names)


def _hash_json(value: Sequence[Json]) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


SUFFIX: Final = ".json"
MAX_INDEX_BYTES: Final = 1024**2
VERSION: Final = 1

_KEY_FIELDS: Final = ("source", "repository", "commit", "ref")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def render_index(manifest: Manifest) -> bytes:
    """Render a manifest as an index file."""
    document = {
        "version": VERSION,
        "key": {name: getattr(manifest.key, name) for name in _KEY_FIELDS},
        "entry": manifest.entry,
        "files": {
            path: {"sha256": digest.sha256, "executable": digest.executable}
            for path, digest in manifest.files.items()
        },
    }
    return f"{json.dumps(document, indent=1)}\n".encode()


def survives_round_trip(manifest: Manifest) -> bool:
    """Whether the manifest is unchanged after writing and parsing it."""
    content = render_index(manifest)
    try:
        return len(content) <= MAX_INDEX_BYTES and _parse_index(content) == manifest
    except (InputError, _InvalidIndexError):
        return False


def format_index_name(key: EvaluatorKey) -> str:
    """Return the name of the index file of ``key``."""
    return f"{hash_key(key)}{SUFFIX}"


def read_index(path: Path) -> Manifest | None:
    """Read an index file as untrusted input; None if it does not exist.

    Raises:
        CorruptionError: its content is invalid, or belongs to another file name.
        UnreachableError: too many files are open or memory runs out.
    """
    content = read_cache_file(path, "its entry in the index", limit_bytes=MAX_INDEX_BYTES)
    if content is None:
        return None
    try:
        manifest = _parse_index(content)
    except InputError as error:
        problem = error.problems[0].message
        raise CorruptionError(f"its entry in the index: {problem}", path) from None
    except _InvalidIndexError as error:
        raise CorruptionError(f"its entry in the index: {error}", path) from None
    if format_index_name(manifest.key) != path.name:
        raise CorruptionError("its entry in the index has the file name of another entry", path)
    return manifest


class _InvalidIndexError(Exception):
    """An index file has invalid content."""


def _parse_index(content: bytes) -> Manifest:
    """Parse exactly the format that ``render_index`` writes."""
    value = read_json(content, file="index").value
    document = _require_keys(value, "version", "key", "entry", "files")
    if document["version"] is True or document["version"] != VERSION:
        raise _InvalidIndexError(f"its version is not {VERSION}")
    key = _require_keys(document["key"], *_KEY_FIELDS)
    entry = _require_text(document["entry"])
    files = document["files"]
    if not isinstance(files, Mapping):
        raise _InvalidIndexError("`files` is not an object")
    reason = find_paths_problem(entry, files)
    if reason is not None:
        raise _InvalidIndexError(reason)
    return Manifest(
        key=EvaluatorKey(**{name: _require_text(key[name]) for name in _KEY_FIELDS}),
        entry=entry,
        files={path: _parse_digest(digest) for path, digest in sorted(files.items())},
    )


def _parse_digest(value: Json) -> FileDigest:
    fields = _require_keys(value, "sha256", "executable")
    sha256, executable = _require_text(fields["sha256"]), fields["executable"]
    if not _SHA256.fullmatch(sha256) or not isinstance(executable, bool):
        raise _InvalidIndexError("a file has an invalid sha256 or `executable` flag")
    return FileDigest(sha256=sha256, executable=executable)


def _require_keys(value: Json, *names: str) -> JsonObject:
    """Return an object that has exactly these keys."""
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise _InvalidIndexError(f"an object must have the keys {', '.join(names)} and no others")
    return value


def _require_text(value: Json) -> str:
    if not isinstance(value, str):
        raise _InvalidIndexError("a text field has another type")
    return value
