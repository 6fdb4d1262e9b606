"""Evaluators in a folder of the workspace, listed in its ``index.yaml``."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Final

from agentci._util.text.suggest import did_you_mean
from agentci._util.workspace import is_file, read_file, real
from agentci.errors import InputError, RefusedError, UnreachableError
from agentci.model.program import Listing, ProgramFile, RemoteProgram, Snapshot
from agentci.model.values import replace
from agentci.remote.sources.contents import BESIDE_IN_ROOT, Tally, check_paths, snapshot_of, split
from agentci.remote.sources.index_yaml import INDEX, MAX_INDEX_BYTES, parse_index
from agentci.remote.sources.refs import normal_sha256, shown, why_unusable
from agentci.remote.sources.source import MAX_FILES, Surroundings

NAME: Final = "local"

_PREFIX: Final = "sha256:"
_RUNNABLE: Final = 0o111
# What programs and tools leave behind beside them; hidden files stay behind too.
_LEFT_BEHIND: Final = frozenset({"__pycache__", "node_modules", "venv"})


class LocalSource:
    """Copies programs with their folders, as they are in the workspace now."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._workspace = surroundings.workspace

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """Find a program by its name or its path in the index; see :class:`Source`."""
        if program.revision:
            message = "a folder of the workspace has no revision"
            raise RefusedError(message, hint="remove `branch` and `rev`")
        listings = self._index(self._folder(program))
        sha256 = program.sha256 and normal_sha256(program.sha256)
        for listing in listings:
            if program.ref in {listing.ref, listing.name}:
                return replace(program, ref=listing.ref, sha256=sha256)
        names = [name for listing in listings for name in (listing.name, listing.ref)]
        raise RefusedError(
            f"{shown(program.ref)} is not listed in {self._named(program)}",
            hint=did_you_mean(program.ref, names) or "add its name and its path there",
        )

    def resolve(self, program: RemoteProgram) -> str:
        """Name the folder by a digest of all its files; see :class:`Source`."""
        return _digest(self._files(program))

    def pin(self, program: RemoteProgram, commit: str) -> None:
        """Nothing: the program is versioned with the config that names it; see :class:`Source`."""

    def fetch(
        self,
        program: RemoteProgram,
        commit: str,
        *,
        paths: Sequence[str],  # noqa: ARG002 (looking costs nothing here)
    ) -> Snapshot:
        """Read the program's folder, if it is still what ``commit`` names; see :class:`Source`."""
        files = self._files(program)
        if _digest(files) != commit:
            raise RefusedError(
                f"the folder of {shown(program.ref)} is no longer what it was",
                hint="if the change is wanted, `agentci lock` writes it down",
            )
        return snapshot_of(split(program.ref)[1], files)

    def catalogue(self) -> Sequence[Listing]:
        """All evaluators of the index in the workspace's root; none where there is none."""
        return self._index(self._workspace) if is_file(self._workspace / INDEX) else ()

    def _folder(self, program: RemoteProgram) -> Path:
        return self._workspace / program.repository

    def _named(self, program: RemoteProgram) -> str:
        return shown(self._name_of(self._folder(program) / INDEX))

    def _name_of(self, path: Path) -> str:
        inside = path.is_relative_to(self._workspace)
        return (path.relative_to(self._workspace) if inside else path).as_posix()

    def _index(self, folder: Path) -> tuple[Listing, ...]:
        file = folder / INDEX
        name = self._name_of(file)
        try:
            content = read_file(file, name=name, limit_bytes=MAX_INDEX_BYTES)
        except InputError as error:
            message = error.problems[0].message
            hint = f"`repo` names the folder that holds {INDEX}"
            raise RefusedError(message, hint=hint) from None
        return parse_index(
            content, name=name, source=NAME, is_usable=lambda path: why_unusable(path) is None
        )

    def _files(self, program: RemoteProgram) -> Mapping[str, ProgramFile]:
        top = real(self._folder(program))
        folder, name = split(program.ref)
        start = real(top / folder)
        if not is_file(top / program.ref):
            message = f"{shown(program.ref)}, which {self._named(program)} lists, is no file"
            raise RefusedError(message, hint="correct its path there")
        if not start.is_relative_to(top):
            raise _leads_out(program.ref)
        if folder:
            found = _below(start)
        else:
            beside = (each for each in (name, *BESIDE_IN_ROOT) if is_file(top / each))
            found = {each: top / each for each in beside}
        if name not in found:
            message = f"{shown(program.ref)} is hidden, and hidden files stay behind"
            raise RefusedError(message, hint="rename it")
        check_paths(found)
        tally = Tally()
        return {path: _read(file, path, start, tally) for path, file in found.items()}


def _digest(files: Mapping[str, ProgramFile]) -> str:
    digest = hashlib.sha256()
    for path, file in sorted(files.items()):
        content = hashlib.sha256(file.content).hexdigest()
        digest.update(f"{path}\0{int(file.executable)}\0{content}\n".encode())
    return _PREFIX + digest.hexdigest()


def _below(start: Path) -> dict[str, Path]:
    """The files of a folder by path, one more than are allowed where there are too many."""
    try:
        return dict(islice(_walk(start, start), MAX_FILES + 1))
    except OSError as error:
        raise _unreadable(start.name, error) from None


def _walk(folder: Path, start: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _LEFT_BEHIND:
            continue
        name = path.relative_to(start).as_posix()
        if not path.is_dir():
            yield name, path
        elif path.is_symlink():
            message = f"{shown(name)} is a link to a folder"
            raise RefusedError(message, hint="keep the folder itself beside the program")
        else:
            yield from _walk(path, start)


def _read(file: Path, path: str, start: Path, tally: Tally) -> ProgramFile:
    if not real(file).is_relative_to(start):
        raise _leads_out(path)
    try:
        status = file.stat()
        # Also a pipe that nobody writes to is refused before it is opened.
        if not S_ISREG(status.st_mode):
            raise RefusedError(f"{shown(path)} is not a regular file")
        tally.add(path, status.st_size)
        content = file.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    return ProgramFile(content=content, executable=bool(status.st_mode & _RUNNABLE))


def _leads_out(path: str) -> RefusedError:
    return RefusedError(
        f"{shown(path)} is a link that leads out of its folder",
        hint="keep the file itself there",
    )


def _unreadable(path: str, error: OSError) -> UnreachableError:
    return UnreachableError(f"{shown(path)} cannot be read: {error.strerror}")
