"""Evaluators in a folder of the workspace, listed in its ``index.yaml``."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Final

from agentci._util.text.suggest import suggest_name
from agentci._util.workspace import is_file, read_file, resolve_path
from agentci.errors import InputError, PermanentFetchError, UnreachableError
from agentci.model.program import CatalogEntry, ProgramFile, ProgramSnapshot, RemoteProgram
from agentci.model.values import replace
from agentci.remote.sources.index_yaml import INDEX_NAME, MAX_INDEX_BYTES, parse_index
from agentci.remote.sources.source import MAX_FILES, SourceContext
from agentci.remote.sources.validation import (
    ROOT_COMPANION_FILES,
    SizeBudget,
    check_paths,
    find_file_name_problem,
    make_snapshot,
    normalize_sha256,
    quote_path,
    split_ref,
)

NAME: Final = "local"

_PREFIX: Final = "sha256:"
_RUNNABLE: Final = 0o111
# What programs and tools leave behind beside them; hidden files stay behind too.
_IGNORED_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "venv"})


class LocalSource:
    """Copies programs with their folders, as they are in the workspace now."""

    def __init__(self, surroundings: SourceContext) -> None:
        self._workspace = surroundings.workspace

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """Find a program by its name or its path in the index; see :class:`Source`."""
        if program.revision:
            message = "a folder of the workspace has no revision"
            raise PermanentFetchError(message, hint="remove `branch` and `rev`")
        listings = self._read_index(self._folder(program))
        sha256 = program.sha256 and normalize_sha256(program.sha256)
        for listing in listings:
            if program.ref in {listing.ref, listing.name}:
                return replace(program, ref=listing.ref, sha256=sha256)
        names = [name for listing in listings for name in (listing.name, listing.ref)]
        raise PermanentFetchError(
            f"{quote_path(program.ref)} is not listed in {self._format_index_name(program)}",
            hint=suggest_name(program.ref, names) or "add its name and its path there",
        )

    def resolve(self, program: RemoteProgram) -> str:
        """Name the folder by a digest of all its files; see :class:`Source`."""
        return _hash_files(self._read_files(program))

    def pin(self, program: RemoteProgram, commit: str) -> None:
        """Nothing: the program is versioned with the config that names it; see :class:`Source`."""

    def fetch(
        self,
        program: RemoteProgram,
        commit: str,
        *,
        paths: Sequence[str],  # noqa: ARG002 (looking costs nothing here)
    ) -> ProgramSnapshot:
        """Read the program's folder, if it is still what ``commit`` names; see :class:`Source`."""
        files = self._read_files(program)
        if _hash_files(files) != commit:
            raise PermanentFetchError(
                f"the folder of {quote_path(program.ref)} is no longer what it was",
                hint="if the change is wanted, `agentci lock` writes it down",
            )
        return make_snapshot(split_ref(program.ref)[1], files)

    def catalogue(self) -> Sequence[CatalogEntry]:
        """All evaluators of the index in the workspace's root; none where there is none."""
        return self._read_index(self._workspace) if is_file(self._workspace / INDEX_NAME) else ()

    def _folder(self, program: RemoteProgram) -> Path:
        return self._workspace / program.repository

    def _format_index_name(self, program: RemoteProgram) -> str:
        return quote_path(self._format_path(self._folder(program) / INDEX_NAME))

    def _format_path(self, path: Path) -> str:
        inside = path.is_relative_to(self._workspace)
        return (path.relative_to(self._workspace) if inside else path).as_posix()

    def _read_index(self, folder: Path) -> tuple[CatalogEntry, ...]:
        file = folder / INDEX_NAME
        name = self._format_path(file)
        try:
            content = read_file(file, name=name, limit_bytes=MAX_INDEX_BYTES)
        except InputError as error:
            message = error.problems[0].message
            hint = f"`repo` names the folder that holds {INDEX_NAME}"
            raise PermanentFetchError(message, hint=hint) from None
        return parse_index(
            content,
            name=name,
            source=NAME,
            is_usable=lambda path: find_file_name_problem(path) is None,
        )

    def _read_files(self, program: RemoteProgram) -> Mapping[str, ProgramFile]:
        top = resolve_path(self._folder(program))
        folder, name = split_ref(program.ref)
        start = resolve_path(top / folder)
        if not is_file(top / program.ref):
            message = (
                f"{quote_path(program.ref)}, which {self._format_index_name(program)} "
                "lists, is no file"
            )
            raise PermanentFetchError(message, hint="correct its path there")
        if not start.is_relative_to(top):
            raise _make_escape_error(program.ref)
        if folder:
            found = _list_files(start)
        else:
            beside = (each for each in (name, *ROOT_COMPANION_FILES) if is_file(top / each))
            found = {each: top / each for each in beside}
        if name not in found:
            message = f"{quote_path(program.ref)} is hidden, and hidden files stay behind"
            raise PermanentFetchError(message, hint="rename it")
        check_paths(found)
        tally = SizeBudget()
        return {path: _read_program_file(file, path, start, tally) for path, file in found.items()}


def _hash_files(files: Mapping[str, ProgramFile]) -> str:
    digest = hashlib.sha256()
    for path, file in sorted(files.items()):
        content = hashlib.sha256(file.content).hexdigest()
        digest.update(f"{path}\0{int(file.executable)}\0{content}\n".encode())
    return _PREFIX + digest.hexdigest()


def _list_files(start: Path) -> dict[str, Path]:
    """The files of a folder by path, one more than are allowed where there are too many."""
    try:
        return dict(islice(_walk(start, start), MAX_FILES + 1))
    except OSError as error:
        raise _make_read_error(start.name, error) from None


def _walk(folder: Path, start: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _IGNORED_FOLDERS:
            continue
        name = path.relative_to(start).as_posix()
        if not path.is_dir():
            yield name, path
        elif path.is_symlink():
            message = f"{quote_path(name)} is a link to a folder"
            raise PermanentFetchError(message, hint="keep the folder itself beside the program")
        else:
            yield from _walk(path, start)


def _read_program_file(file: Path, path: str, start: Path, tally: SizeBudget) -> ProgramFile:
    if not resolve_path(file).is_relative_to(start):
        raise _make_escape_error(path)
    try:
        status = file.stat()
        # Also a pipe that nobody writes to is refused before it is opened.
        if not S_ISREG(status.st_mode):
            raise PermanentFetchError(f"{quote_path(path)} is not a regular file")
        tally.add(path, status.st_size)
        content = file.read_bytes()
    except OSError as error:
        raise _make_read_error(path, error) from None
    return ProgramFile(content=content, executable=bool(status.st_mode & _RUNNABLE))


def _make_escape_error(path: str) -> PermanentFetchError:
    return PermanentFetchError(
        f"{quote_path(path)} is a link that leads out of its folder",
        hint="keep the file itself there",
    )


def _make_read_error(path: str, error: OSError) -> UnreachableError:
    return UnreachableError(f"{quote_path(path)} cannot be read: {error.strerror}")
