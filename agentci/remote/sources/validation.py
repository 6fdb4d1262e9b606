"""Validation of what sources provide: references, file names, sizes, the index of evaluators."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from threading import Lock
from typing import Final
from unicodedata import normalize

from agentci._util.text import truncate
from agentci._util.text.suggest import suggest_name
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError, PermanentFetchError
from agentci.model.program import CatalogEntry, ProgramFile, ProgramSnapshot
from agentci.model.values import Json
from agentci.remote.sources.source import MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES

MAX_REF: Final = 512
MAX_SEGMENTS: Final = 16
MAX_REVISION: Final = 250
# No common file system allows longer names.
MAX_NAME_BYTES: Final = 255
# Characters of a path in a message; most paths are shown in full.
MAX_SHOWN: Final = 120

COMMIT: Final = re.compile(r"[0-9a-f]{40}")

_SEGMENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_GITHUB_URL: Final = re.compile(r"(?:https?://|git@)[^/:]+[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?")
_INVALID_REVISION: Final = re.compile(
    r"[\x00-\x20\x7f-\xa0\s~^:?*\[\\\ud800-\udfff]|\.\.|@\{|//|^[-/.]|/\.|[/.]$|\.lock(?:$|/)|^@$"
)
_INVALID_PATH_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def quote_path(path: str) -> str:
    """Quote ``path`` for a message, on one line and truncated."""
    return repr(truncate.short(path, MAX_SHOWN))


def check_repository(repository: str) -> None:
    """Reject a repository that is not a valid ``owner/name`` on GitHub.

    Raises:
        PermanentFetchError: it is invalid.
    """
    if _REPOSITORY.fullmatch(repository):
        return
    meant = _GITHUB_URL.fullmatch(repository)
    raise PermanentFetchError(
        f"{quote_path(repository)} is not a GitHub repository",
        hint=f"write {meant[1]!r}" if meant else "write `owner/name`",
    )


def check_revision(revision: str) -> None:
    """Reject a revision that git accepts neither as a branch or tag name nor as a commit.

    Raises:
        PermanentFetchError: it is invalid.
    """
    if not revision or len(revision) > MAX_REVISION or _INVALID_REVISION.search(revision):
        raise PermanentFetchError(
            f"{quote_path(revision)} is not the name of a branch, tag or commit",
            hint="write `branch: main`, or `rev:` with the 40 digits of a commit",
        )


def check_ref(ref: str) -> None:
    """Reject a ref that is not a plain path in a repository, by the rules of agentevals 0.11.0.

    Raises:
        PermanentFetchError: it is invalid.
    """
    reason = find_ref_problem(ref)
    if reason is not None:
        raise PermanentFetchError(
            f"the ref {quote_path(ref)} {reason}",
            hint="write the path of the program in the repository, like evaluators/NAME/NAME.py",
        )


def find_ref_problem(ref: str) -> str | None:
    """Return why ``ref`` is not a valid path in a repository, or None if it is."""
    segments = ref.split("/")
    if not 1 <= len(ref) <= MAX_REF:
        return f"has {len(ref):,} characters; 1 to {MAX_REF} are allowed"
    if len(segments) > MAX_SEGMENTS:
        return f"has {len(segments)} parts; the limit is {MAX_SEGMENTS}"
    if ref.startswith("/"):
        return "is absolute"
    wrong = next((each for each in segments if not _SEGMENT.fullmatch(each)), None)
    if wrong is None:
        return None
    return (
        f"has the part {quote_path(wrong)}, which is not allowed" if wrong else "has an empty part"
    )


def find_file_name_problem(path: str) -> str | None:
    """Return why ``path`` is not allowed as a file in a folder, or None if it is.

    Less strict than :func:`find_ref_problem`: names of files next to a program may contain spaces
    and letters of any script.
    """
    parts = path.split("/")
    reasons = {
        "is absolute": path.startswith("/") or _DRIVE.match(path) is not None,
        f"must have 1 to {MAX_REF} characters": not 1 <= len(path) <= MAX_REF,
        "has a character that is not allowed": _INVALID_PATH_CHARACTER.search(path) is not None,
        "leaves its folder": ".." in parts,
        "has an empty part": not {"", "."}.isdisjoint(parts),
        f"has a part of more than {MAX_NAME_BYTES} bytes": any(
            len(part.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES for part in parts
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def normalize_sha256(text: str) -> str:
    """Return a sha256 as 64 hexadecimal digits in lower case.

    Raises:
        PermanentFetchError: it is invalid.
    """
    digest = text.strip().lower().removeprefix("sha256:")
    if not _SHA256.fullmatch(digest):
        raise PermanentFetchError(
            f"{quote_path(text)} is not a sha256",
            hint="it has 64 hexadecimal digits; `sha256sum FILE` prints it",
        )
    return digest


# Fetched with a program in a repository's root, where other files do not belong to it.
ROOT_COMPANION_FILES: Final = ("requirements.txt", "evaluator.yaml")
MIB: Final = 1024**2

# At most this many paths are compared for a "did you mean" hint.
_MAX_CANDIDATES: Final = 1000
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_RENAME_HINT: Final = "rename or remove it in the evaluator's folder"
_SIZE_HINT: Final = "the whole folder of an evaluator is fetched; move it into its own folder"


class SizeBudget:
    """Counts the files and bytes of a folder against limits; safe for concurrent threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._files = 0
        self._bytes = 0

    def add(self, path: str, size: int) -> None:
        """Count the file at ``path`` of ``size`` bytes.

        Raises:
            PermanentFetchError: the file is too large, or exceeds a limit of the folder.
        """
        if size > MAX_FILE_BYTES:
            message = f"{quote_path(path)} is larger than {MAX_FILE_BYTES // MIB} MiB"
            raise PermanentFetchError(message, hint=_SIZE_HINT)
        with self._lock:
            self._files += 1
            self._bytes += size
            files, total = self._files, self._bytes
        if files > MAX_FILES:
            message = f"the program's folder contains more than {MAX_FILES} files"
            raise PermanentFetchError(message, hint=_SIZE_HINT)
        if total > MAX_TOTAL_BYTES:
            message = f"the program's folder contains more than {MAX_TOTAL_BYTES // MIB} MiB"
            raise PermanentFetchError(message, hint=_SIZE_HINT)


def split_ref(ref: str) -> tuple[str, str]:
    """Split ``ref`` into the folder, "" for the root, and the program's name."""
    folder, _, name = ref.rpartition("/")
    return folder, name


def select_program_files(ref: str, paths: Iterable[str]) -> dict[str, str]:
    """Select the files to fetch with the program ``ref``, by their path in its folder."""
    folder, name = split_ref(ref)
    if not folder:
        return {path: path for path in paths if path in {name, *ROOT_COMPANION_FILES}}
    start = f"{folder}/"
    return {path.removeprefix(start): path for path in paths if path.startswith(start)}


def check_paths(paths: Iterable[str]) -> None:
    """Reject paths that are unsafe, or that cannot coexist in a folder on every file system.

    Raises:
        PermanentFetchError: a path is unsafe, or two differ only in case or Unicode form.
    """
    spelled: dict[str, str] = {}
    files: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        if reason := find_file_name_problem(path):
            message = f"the file name {quote_path(path)} {reason}"
            raise PermanentFetchError(message, hint=_RENAME_HINT)
        files.add(path)
        parents = [parent.as_posix() for parent in PurePosixPath(path).parents][:-1]
        folders.update(parents)
        for each in (path, *parents):
            other = spelled.setdefault(_normalize_path(each), each)
            if other != each:
                both = f"{quote_path(other)} and {quote_path(each)}"
                message = f"{both} are the same file on case-insensitive file systems"
                raise PermanentFetchError(message, hint=_RENAME_HINT)
    if clashing := sorted(files & folders):
        raise PermanentFetchError(
            f"{quote_path(clashing[0])} is both a file and a folder", hint=_RENAME_HINT
        )


def make_snapshot(entry: str, files: Mapping[str, ProgramFile]) -> ProgramSnapshot:
    """Combine fetched files into a snapshot, sorted by path.

    Raises:
        PermanentFetchError: the program is empty, or a file is a Git LFS pointer.
    """
    check_paths(files)
    for path, file in files.items():
        if file.content.startswith(_LFS_POINTER):
            raise PermanentFetchError(
                f"{quote_path(path)} is a Git LFS pointer, not the file itself",
                hint="store it in the repository without LFS",
            )
    if not files[entry].content.strip():
        message = f"the program {quote_path(entry)} is empty"
        raise PermanentFetchError(message, hint="check that the ref names the right file")
    return ProgramSnapshot(entry=entry, files=dict(sorted(files.items())))


def has_shebang(content: bytes) -> bool:
    """Whether ``content`` starts with ``#!``, the sign of a program if its file mode is unknown."""
    return content.startswith(b"#!")


def make_not_found_error(ref: str, where: str, paths: Iterable[str]) -> PermanentFetchError:
    """Make the error for a program that is not among the ``paths`` of ``where``."""
    known = list(paths)
    inside = sorted(path for path in known if path.startswith(f"{ref}/"))
    if inside:
        hint: str | None = f"it is a folder; name the program in it, like {inside[0]!r}"
    else:
        suffix = PurePosixPath(ref).suffix
        alike = [path for path in known if path.endswith(suffix)]
        hint = suggest_name(ref, alike[:_MAX_CANDIDATES])
    return PermanentFetchError(f"{quote_path(ref)} is not in {where}", hint=hint)


def _normalize_path(path: str) -> str:
    """Normalize ``path`` as file systems do that ignore case and Unicode composition."""
    return normalize("NFC", normalize("NFC", path).casefold())


INDEX_NAME: Final = "index.yaml"
MAX_INDEX_BYTES: Final = 1024**2

# Limits of one entry, so that a table of evaluators stays readable.
MAX_TEXT: Final = 500
MAX_TAGS: Final = 20

_FORMAT_HINT: Final = "it needs `evaluators:`, a list of entries with `name` and `path`"


def parse_index(
    content: bytes, *, name: str, source: str, is_usable: Callable[[str], bool]
) -> tuple[CatalogEntry, ...]:
    """Parse an index; entries keep their order.

    Entries that no config could refer to are skipped, so that a broken entry does not hide others.

    Args:
        name: of the index in messages.
        source: name of the source that the entries belong to.
        is_usable: whether the source accepts a path.

    Raises:
        PermanentFetchError: it is not an index or has only broken entries.
    """
    entries = _read_entries(content, name)
    listings = tuple(_parse_listings(entries, source, is_usable))
    if entries and not listings:
        raise PermanentFetchError(f"{name} has no entry with a valid `path`", hint=_FORMAT_HINT)
    return listings


def _read_entries(content: bytes, name: str) -> list[Json]:
    if len(content) > MAX_INDEX_BYTES:
        raise PermanentFetchError(f"{name} is larger than {MAX_INDEX_BYTES // 1024**2} MiB")
    try:
        data = read_yaml(content, file=INDEX_NAME).data
    except InputError as error:
        problem = error.problems[0]
        line = "" if problem.place is None else f" on line {problem.place.line}"
        message = f"{name} cannot be read: {problem.message}{line}"
        raise PermanentFetchError(message, hint=_FORMAT_HINT) from None
    entries = data.get("evaluators")
    if not isinstance(entries, list):
        raise PermanentFetchError(f"{name} has no `evaluators` list", hint=_FORMAT_HINT)
    return entries


def _parse_listings(
    entries: list[Json], source: str, is_usable: Callable[[str], bool]
) -> Iterator[CatalogEntry]:
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        path = entry.get("path")
        if isinstance(path, str) and is_usable(path):
            yield CatalogEntry(
                name=_clean_text(entry.get("name")) or PurePosixPath(path).stem,
                source=source,
                ref=path,
                description=_clean_text(entry.get("description")),
                language=_clean_text(entry.get("language")),
                tags=_clean_texts(entry.get("tags")),
                author=_clean_text(entry.get("author")),
            )


def _clean_text(value: Json) -> str:
    """Convert an untrusted value to one line of printable text; "" if it is not text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    line = " ".join(str(value).split())
    return truncate.short("".join(each for each in line if each.isprintable()), MAX_TEXT)


def _clean_texts(value: Json) -> tuple[str, ...]:
    texts = map(_clean_text, value[:MAX_TAGS]) if isinstance(value, list) else ()
    return tuple(filter(None, texts))
