"""Writes the file with the traces of a recording."""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from agentci._util.files import make_folder, write_file_atomically
from agentci._util.workspace import ResolvedPath, Workspace, is_file, read_file
from agentci.errors import InputError
from agentci.record.apis.model_api import get_object, get_objects, parse_body
from agentci.recordings.json_documents import MAX_RECORDING_BYTES
from agentci.recordings.telemetry import semconv


def find_recording_path(given: str, workspace: Workspace) -> ResolvedPath:
    """Return the file to write, before the agent runs.

    Raises:
        InputError: it is a folder, cannot be written, or a link leads out of the workspace.
    """
    found = workspace.resolve_given(Path(given), named=f"--out {given}")
    try:
        make_folder(found.path.parent, workspace.root)
    except OSError as error:
        message = f"--out {given} cannot be written: {error.strerror}"
        raise InputError.from_message(message) from None
    if found.path.is_dir():
        raise InputError.from_message(f"--out {given} is a folder", hint="name a file in it")
    return found


class EarlierRecording:
    """The lines of a recording that is made again.

    Args:
        lines: of the file; empty if there is none.
    """

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._lines = lines
        self._cases = [frozenset(_find_cases(line)) for line in lines]

    @classmethod
    def read(cls, path: ResolvedPath, workspace: Workspace) -> "EarlierRecording":
        """Read the file, if there is one.

        Raises:
            InputError: it cannot be read.
        """
        if not is_file(path.path):
            return cls()
        name = workspace.display_path(path.path)
        content = read_file(path, name=name, limit_bytes=MAX_RECORDING_BYTES)
        return cls([line for line in content.decode("utf-8", "replace").split("\n") if line])

    def list_cases(self) -> list[str]:
        """Return the ids of its cases."""
        return sorted(frozenset().union(*self._cases))

    def select(self, case: str) -> list[str]:
        """Return the lines of a case."""
        return [line for line, cases in zip(self._lines, self._cases, strict=True) if case in cases]

    def select_others(self, cases: Iterable[str], *, named: bool = False) -> list[str]:
        """Return the lines of other cases.

        Args:
            named: whether lines of no case are left out.
        """
        known = frozenset(cases)
        return [
            line
            for line, own in zip(self._lines, self._cases, strict=True)
            if own.isdisjoint(known) and (own or not named)
        ]

    def sort(self, lines: Sequence[str]) -> list[str]:
        """Return lines in the order that they or other lines of their cases have; new ones last."""
        places: dict[str | frozenset[str], int] = {}
        for number, (line, cases) in enumerate(zip(self._lines, self._cases, strict=True)):
            places.setdefault(line, number)
            places.setdefault(cases, number)
        last = len(self._lines)

        def find_place(line: str) -> int:
            found = places.get(line)
            return places.get(frozenset(_find_cases(line)), last) if found is None else found

        return sorted(lines, key=find_place)


def _find_cases(line: str) -> Iterator[str]:
    """Return the ids of the cases that a line belongs to."""
    for batch in get_objects(parse_body(line.encode()) or {}, "resourceSpans"):
        for attribute in get_objects(get_object(batch, "resource"), "attributes"):
            if attribute.get("key") == semconv.SESSION_NAME:
                yield str(get_object(attribute, "value").get("stringValue"))


class RecordingWriter:
    """Writes the lines of cases when they end, so that a recording that is killed has them.

    The file is locked until the recording ends, see ``is_being_recorded``.

    Args:
        kept: lines of an earlier recording that stay in the file.
        earlier: an earlier recording, whose order stays.

    Attributes:
        earlier: the same.
        replaces_file: whether there is an older file.
    """

    def __init__(
        self,
        path: ResolvedPath,
        workspace: Workspace,
        *,
        kept: Sequence[str] = (),
        earlier: EarlierRecording | None = None,
    ) -> None:
        self._path = path
        self._kept = kept
        self.earlier = EarlierRecording() if earlier is None else earlier
        self._workspace = workspace
        self._is_begun = False
        self._locked: IO[bytes] | None = None
        self.replaces_file = is_file(path.path)

    def add(self, lines: Sequence[str], *, has_runs: bool) -> None:
        """Append the lines of a case; the first ones replace an older file.

        Args:
            has_runs: whether anything was recorded; else the lines say why not, which is only
                needed in the place of an older file.

        Raises:
            InputError: the file cannot be written.
        """
        if self._is_begun:
            self._write(lines, is_appended=True)
        elif lines and (has_runs or self.replaces_file):
            self._write([*self._kept, *lines])
            self._is_begun = True
            with suppress(OSError):  # of a file system without locks
                self._locked = self._path.path.open("rb")
                fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def finish(self, lines: Sequence[str], *, has_runs: bool) -> None:
        """Write all lines in their final order; an older file stays if there are none.

        Args:
            has_runs: as for ``add``.

        Raises:
            InputError: the file cannot be written.
        """
        if lines and (has_runs or self.replaces_file):
            self._write(self.earlier.sort([*lines, *self._kept]))
        if self._locked is not None:
            self._locked.close()

    def _write(self, lines: Sequence[str], *, is_appended: bool = False) -> None:
        content = "".join(f"{line}\n" for line in lines).encode()
        try:
            if is_appended:
                _append(self._path.path, content)
            else:
                write_file_atomically(self._path.path, content, owner=self._workspace.root)
        except OSError as error:
            name = self._workspace.display_path(self._path.path)
            message = f"{name} cannot be written: {error.strerror}"
            raise InputError.from_message(message) from None


def _append(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags), "wb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def is_being_recorded(path: Path) -> bool:
    """Return whether a recording that still runs writes a file."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False
