"""Checks references, file names and sizes of remote evaluators."""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from threading import Lock
from typing import Final
from unicodedata import normalize

from agentci._util.text import truncate
from agentci._util.text.suggest import suggest_name
from agentci.errors import PermanentFetchError
from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.sources.source import MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES

MAX_REF: Final = 512
MAX_SEGMENTS: Final = 16
MAX_REVISION: Final = 250
# No file system that matters takes longer names.
MAX_NAME_BYTES: Final = 255
# Of a path in a message; most are shown in full.
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
    """``path`` in a message: quoted, on one line, cut where it is long."""
    return repr(truncate.short(path, MAX_SHOWN))


def check_repository(repository: str) -> None:
    """Refuse what is no ``owner/name`` as GitHub has them.

    Raises:
        RefusedError: it is not.
    """
    if _REPOSITORY.fullmatch(repository):
        return
    meant = _GITHUB_URL.fullmatch(repository)
    raise PermanentFetchError(
        f"{quote_path(repository)} is no repository on GitHub",
        hint=f"write {meant[1]!r}" if meant else "write `owner/name`",
    )


def check_revision(revision: str) -> None:
    """Refuse what git would not take for the name of a branch or a tag, nor for a commit.

    Raises:
        RefusedError: it is not.
    """
    if not revision or len(revision) > MAX_REVISION or _INVALID_REVISION.search(revision):
        raise PermanentFetchError(
            f"{quote_path(revision)} is no name of a branch, a tag or a commit",
            hint="write `branch: main`, or `rev:` with the 40 digits of a commit",
        )


def check_ref(ref: str) -> None:
    """Refuse what is no plain path in a repository, by the rules of agentevals 0.11.0.

    Raises:
        RefusedError: it is not.
    """
    reason = find_ref_problem(ref)
    if reason is not None:
        raise PermanentFetchError(
            f"the ref {quote_path(ref)} {reason}",
            hint="write the path of the program from the root of the repository,"
            " like evaluators/NAME/NAME.py",
        )


def find_ref_problem(ref: str) -> str | None:
    """Say what keeps ``ref`` from being a path in a repository, None where nothing does."""
    segments = ref.split("/")
    if not 1 <= len(ref) <= MAX_REF:
        return f"must have 1 to {MAX_REF} characters, not {len(ref):,}"
    if len(segments) > MAX_SEGMENTS:
        return f"has {len(segments)} parts, and {MAX_SEGMENTS} are the most"
    if ref.startswith("/"):
        return "is absolute"
    wrong = next((each for each in segments if not _SEGMENT.fullmatch(each)), None)
    if wrong is None:
        return None
    return (
        f"has the part {quote_path(wrong)}, which is not allowed" if wrong else "has an empty part"
    )


def find_file_name_problem(path: str) -> str | None:
    """Say what keeps ``path`` from being kept in a folder, None where nothing does.

    Looser than :func:`why_refused`: names with spaces and of any script are fine beside a program.
    """
    parts = path.split("/")
    reasons = {
        "is absolute": path.startswith("/") or _DRIVE.match(path) is not None,
        f"must have 1 to {MAX_REF} characters": not 1 <= len(path) <= MAX_REF,
        "has a character that is not allowed": _INVALID_PATH_CHARACTER.search(path) is not None,
        "leads out of its folder": ".." in parts,
        "has an empty part": not {"", "."}.isdisjoint(parts),
        f"has a part of more than {MAX_NAME_BYTES} bytes": any(
            len(part.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES for part in parts
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def normalize_sha256(text: str) -> str:
    """``text`` as all sha256 are written: 64 hexadecimal digits in lower case.

    Raises:
        RefusedError: it is none.
    """
    digest = text.strip().lower().removeprefix("sha256:")
    if not _SHA256.fullmatch(digest):
        raise PermanentFetchError(
            f"{quote_path(text)} is no sha256",
            hint="it has 64 hexadecimal digits; `sha256sum FILE` prints it",
        )
    return digest


# Of a repository's root, which is no evaluator's own folder, these belong to a program in it.
ROOT_COMPANION_FILES: Final = ("requirements.txt", "evaluator.yaml")
MIB: Final = 1024**2

# Sources with more paths than these are not looked through for the one that was meant.
_MAX_CANDIDATES: Final = 1000
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_RENAME_HINT: Final = "rename or remove it where the evaluator is kept"
_SIZE_HINT: Final = "an evaluator is fetched with its whole folder: keep it in one of its own"


class SizeBudget:
    """Adds up what a folder holds, from any number of threads, and refuses what is too much."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._files = 0
        self._bytes = 0

    def add(self, path: str, size: int) -> None:
        """Count the file at ``path``, of ``size`` bytes.

        Raises:
            RefusedError: it is too large, or one too many.
        """
        if size > MAX_FILE_BYTES:
            message = f"{quote_path(path)} is larger than {MAX_FILE_BYTES // MIB} MiB"
            raise PermanentFetchError(message, hint=_SIZE_HINT)
        with self._lock:
            self._files += 1
            self._bytes += size
            files, total = self._files, self._bytes
        if files > MAX_FILES:
            message = f"the program's folder holds more than {MAX_FILES} files"
            raise PermanentFetchError(message, hint=_SIZE_HINT)
        if total > MAX_TOTAL_BYTES:
            message = f"the program's folder holds more than {MAX_TOTAL_BYTES // MIB} MiB"
            raise PermanentFetchError(message, hint=_SIZE_HINT)


def split_ref(ref: str) -> tuple[str, str]:
    """The folder of ``ref``, empty for the root, and the name of the program in it."""
    folder, _, name = ref.rpartition("/")
    return folder, name


def select_program_files(ref: str, paths: Iterable[str]) -> dict[str, str]:
    """Those of ``paths`` that are fetched with the program ``ref``, by their path in its folder."""
    folder, name = split_ref(ref)
    if not folder:
        return {path: path for path in paths if path in {name, *ROOT_COMPANION_FILES}}
    start = f"{folder}/"
    return {path.removeprefix(start): path for path in paths if path.startswith(start)}


def check_paths(paths: Iterable[str]) -> None:
    """Refuse paths that no folder, or not every disk, can hold side by side.

    Raises:
        RefusedError: one of them is hostile, or two are the same where case does not count.
    """
    spelled: dict[str, str] = {}
    files: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        if reason := find_file_name_problem(path):
            raise PermanentFetchError(
                f"the file name {quote_path(path)} {reason}", hint=_RENAME_HINT
            )
        files.add(path)
        parents = [parent.as_posix() for parent in PurePosixPath(path).parents][:-1]
        folders.update(parents)
        for each in (path, *parents):
            other = spelled.setdefault(_normalize_path(each), each)
            if other != each:
                message = (
                    f"{quote_path(other)} and {quote_path(each)} are one file where case counts not"
                )
                raise PermanentFetchError(message, hint=_RENAME_HINT)
    if both := sorted(files & folders):
        raise PermanentFetchError(
            f"{quote_path(both[0])} is both a file and a folder", hint=_RENAME_HINT
        )


def make_snapshot(entry: str, files: Mapping[str, ProgramFile]) -> ProgramSnapshot:
    """Join what was fetched, in the order of the paths.

    Raises:
        RefusedError: the program is empty, or stands for a file that is kept elsewhere.
    """
    check_paths(files)
    for path, file in files.items():
        if file.content.startswith(_LFS_POINTER):
            raise PermanentFetchError(
                f"{quote_path(path)} is a pointer of Git LFS, not the file itself",
                hint="keep it in the repository itself, without LFS",
            )
    if not files[entry].content.strip():
        message = f"the program {quote_path(entry)} is empty"
        raise PermanentFetchError(message, hint="see whether the ref names the right file")
    return ProgramSnapshot(entry=entry, files=dict(sorted(files.items())))


def has_shebang(content: bytes) -> bool:
    """Whether ``content`` says what runs it, for where no mode says that it can be run."""
    return content.startswith(b"#!")


def make_not_found_error(ref: str, where: str, paths: Iterable[str]) -> PermanentFetchError:
    """The error of a program that is not among the ``paths`` of ``where``."""
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
    """``path`` as disks see it that look neither at case nor at how accents are composed."""
    return normalize("NFC", normalize("NFC", path).casefold())
