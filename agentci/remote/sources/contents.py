"""What a fetched folder may hold: so many files, so large, by names that every disk keeps."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from threading import Lock
from typing import Final
from unicodedata import normalize

from agentci._util.text.suggest import did_you_mean
from agentci.errors import RefusedError
from agentci.model.program import ProgramFile, Snapshot
from agentci.remote.sources.refs import shown, why_unusable
from agentci.remote.sources.source import MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES

# Of a repository's root, which is no evaluator's own folder, these belong to a program in it.
BESIDE_IN_ROOT: Final = ("requirements.txt", "evaluator.yaml")
MIB: Final = 1024**2

# Sources with more paths than these are not looked through for the one that was meant.
_MOST_CANDIDATES: Final = 1000
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_RENAME: Final = "rename or remove it where the evaluator is kept"
_KEEP_IT_SMALL: Final = "an evaluator is fetched with its whole folder: keep it in one of its own"


class Tally:
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
            message = f"{shown(path)} is larger than {MAX_FILE_BYTES // MIB} MiB"
            raise RefusedError(message, hint=_KEEP_IT_SMALL)
        with self._lock:
            self._files += 1
            self._bytes += size
            files, total = self._files, self._bytes
        if files > MAX_FILES:
            message = f"the program's folder holds more than {MAX_FILES} files"
            raise RefusedError(message, hint=_KEEP_IT_SMALL)
        if total > MAX_TOTAL_BYTES:
            message = f"the program's folder holds more than {MAX_TOTAL_BYTES // MIB} MiB"
            raise RefusedError(message, hint=_KEEP_IT_SMALL)


def split(ref: str) -> tuple[str, str]:
    """The folder of ``ref``, empty for the root, and the name of the program in it."""
    folder, _, name = ref.rpartition("/")
    return folder, name


def below(ref: str, paths: Iterable[str]) -> dict[str, str]:
    """Those of ``paths`` that are fetched with the program ``ref``, by their path in its folder."""
    folder, name = split(ref)
    if not folder:
        return {path: path for path in paths if path in {name, *BESIDE_IN_ROOT}}
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
        if reason := why_unusable(path):
            raise RefusedError(f"the file name {shown(path)} {reason}", hint=_RENAME)
        files.add(path)
        parents = [parent.as_posix() for parent in PurePosixPath(path).parents][:-1]
        folders.update(parents)
        for each in (path, *parents):
            other = spelled.setdefault(_folded(each), each)
            if other != each:
                message = f"{shown(other)} and {shown(each)} are one file where case counts not"
                raise RefusedError(message, hint=_RENAME)
    if both := sorted(files & folders):
        raise RefusedError(f"{shown(both[0])} is both a file and a folder", hint=_RENAME)


def snapshot_of(entry: str, files: Mapping[str, ProgramFile]) -> Snapshot:
    """Join what was fetched, in the order of the paths.

    Raises:
        RefusedError: the program is empty, or stands for a file that is kept elsewhere.
    """
    check_paths(files)
    for path, file in files.items():
        if file.content.startswith(_LFS_POINTER):
            raise RefusedError(
                f"{shown(path)} is a pointer of Git LFS, not the file itself",
                hint="keep it in the repository itself, without LFS",
            )
    if not files[entry].content.strip():
        message = f"the program {shown(entry)} is empty"
        raise RefusedError(message, hint="see whether the ref names the right file")
    return Snapshot(entry=entry, files=dict(sorted(files.items())))


def is_script(content: bytes) -> bool:
    """Whether ``content`` says what runs it, for where no mode says that it can be run."""
    return content.startswith(b"#!")


def missing(ref: str, where: str, paths: Iterable[str]) -> RefusedError:
    """The error of a program that is not among the ``paths`` of ``where``."""
    known = list(paths)
    inside = sorted(path for path in known if path.startswith(f"{ref}/"))
    if inside:
        hint: str | None = f"it is a folder; name the program in it, like {inside[0]!r}"
    else:
        suffix = PurePosixPath(ref).suffix
        alike = [path for path in known if path.endswith(suffix)]
        hint = did_you_mean(ref, alike[:_MOST_CANDIDATES])
    return RefusedError(f"{shown(ref)} is not in {where}", hint=hint)


def _folded(path: str) -> str:
    """``path`` as disks see it that look neither at case nor at how accents are composed."""
    return normalize("NFC", normalize("NFC", path).casefold())
