"""Writes the file with the traces of a recording."""

import fcntl
import os
import tempfile
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple, TypeAlias

from agentci._util.files import make_folder, remove_path, write_file_atomically
from agentci._util.workspace import ResolvedPath, Workspace, is_file, read_file
from agentci.errors import InputError
from agentci.record.apis.model_api import get_object, get_objects, parse_body
from agentci.record.case_file import RecordCase
from agentci.record.printed_answer import ANSWER_SOURCES, AnswerSource
from agentci.record.redaction import RecordingRedactor
from agentci.record.request_file import UNNAMED
from agentci.record.write_spans import CaseStamp, list_marks, mark_incomplete
from agentci.recordings.json_documents import MAX_RECORDING_BYTES
from agentci.recordings.registry import name_failed_recording
from agentci.recordings.telemetry import semconv

# After a failed recording, an older file is kept, and after one of nothing there is no file.
FileOutcome: TypeAlias = Literal["written", "kept", "failed", "none"]
# Begins the reason of all lines after a recording that could not be made.
NOT_RECORDED: Final = "The last recording failed: "


def find_recording_path(given: str, workspace: Workspace) -> ResolvedPath:
    """Return the file to write, before the agent runs.

    Raises:
        InputError: it is a folder, cannot be written, or a link leads out of the workspace.
    """
    found = workspace.resolve_given(Path(given), named=f"--out {given}")
    try:
        make_folder(found.path.parent, workspace.root)
        with tempfile.TemporaryFile(dir=found.path.parent):
            pass
    except OSError as error:
        message = f"--out {given} cannot be written: {error.strerror}"
        raise InputError.from_message(message) from None
    if found.path.is_dir():
        raise InputError.from_message(f"--out {given} is a folder", hint="name a file in it")
    return found


class EarlierRecording:
    """The lines of the file that a recording replaces or completes.

    Args:
        lines: of the file; empty if there is none.

    Attributes:
        has_complete_runs: whether any run can be evaluated.
        has_incomplete_runs: whether any run cannot.
        is_note: whether it only says that a recording could not be made.
    """

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._lines = lines
        read = [_read_line(line) for line in lines]
        self._cases = [each.cases for each in read]
        self._have_runs = [each.has_runs for each in read]
        self._incomplete = [bool(each.incomplete) for each in read]
        self.has_complete_runs = any(each.is_complete for each in read)
        self.has_incomplete_runs = any(each.incomplete for each in read)
        self.is_note = any(each.incomplete.startswith(NOT_RECORDED) for each in read)

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

    def list_incomplete_cases(self) -> list[str]:
        """Return the ids of cases with a run that cannot be evaluated."""
        pairs = zip(self._cases, self._incomplete, strict=True)
        return sorted({case for cases, is_incomplete in pairs if is_incomplete for case in cases})

    def list_runs(self) -> list[str]:
        """Return the lines with runs."""
        return [
            line for line, has_runs in zip(self._lines, self._have_runs, strict=True) if has_runs
        ]

    def select(self, case: str) -> list[str]:
        """Return the lines of a case."""
        return [line for line, cases in zip(self._lines, self._cases, strict=True) if case in cases]

    def list_answer_sources(self) -> dict[str, AnswerSource]:
        """Return what the answers of its cases are, where the user chose that."""
        found: dict[str, AnswerSource] = {}
        for line, cases in zip(self._lines, self._cases, strict=True):
            named = {text for key, text in list_marks([line]) if key == semconv.ANSWER_SOURCE}
            for source in ANSWER_SOURCES:
                found |= dict.fromkeys(cases if source in named else (), source)
        return found

    def select_others(self, cases: Iterable[str], *, named: bool = False) -> list[str]:
        """Return the lines of other cases.

        Args:
            named: whether lines without a case are left out.
        """
        known = frozenset(cases)
        return [
            line
            for line, own in zip(self._lines, self._cases, strict=True)
            if own.isdisjoint(known) and (own or not named)
        ]

    def sort(self, lines: Sequence[str]) -> list[str]:
        """Return lines in their earlier order, or that of their cases; new ones last."""
        places: dict[str | frozenset[str], int] = {}
        for number, (line, cases) in enumerate(zip(self._lines, self._cases, strict=True)):
            places.setdefault(line, number)
            places.setdefault(cases, number)
        last = len(self._lines)

        def find_place(line: str) -> int:
            found = places.get(line)
            return places.get(_read_line(line).cases, last) if found is None else found

        return sorted(lines, key=find_place)


class _LineContent(NamedTuple):
    """The cases of a line, and whether they can be evaluated.

    Attributes:
        cases: ids of the cases that it belongs to.
        is_complete: whether it has runs that can be evaluated.
        incomplete: why it has runs that cannot; empty if it has none.
    """

    cases: frozenset[str]
    is_complete: bool
    incomplete: str

    @property
    def has_runs(self) -> bool:
        """Whether it has any."""
        return self.is_complete or bool(self.incomplete)


def _read_line(line: str) -> _LineContent:
    cases: set[str] = set()
    marks: list[str] = []
    for batch in get_objects(parse_body(line.encode()) or {}, "resourceSpans"):
        attributes = get_objects(get_object(batch, "resource"), "attributes")
        values = {
            str(each.get("key")): str(get_object(each, "value").get("stringValue"))
            for each in attributes
        }
        if semconv.SESSION_NAME in values:
            cases.add(values[semconv.SESSION_NAME])
        marks.append(values.get(semconv.INCOMPLETE, ""))
    incomplete = next(filter(None, marks), "")
    return _LineContent(frozenset(cases), is_complete=not all(marks), incomplete=incomplete)


class RecordingWriter:
    """Writes the lines of cases when they end, so that a recording that is killed has them.

    A recording that fails leaves an older file unchanged. Its lines are written to another file,
    which ``agentci run`` reads instead until a later recording succeeds. The file is locked until
    it is closed, see ``is_being_recorded``.

    Args:
        part: the only cases that are recorded; the others of the file stay. None for all.
        needs_all: whether one case without a complete run makes the recording fail; else it fails
            if no case has one.
        earlier: the file as it is.
    """

    def __init__(
        self,
        path: ResolvedPath,
        workspace: Workspace,
        *,
        part: Collection[str] | None,
        needs_all: bool,
        earlier: EarlierRecording,
    ) -> None:
        self._path = path
        self._failed = workspace.resolve_given(name_failed_recording(path.path))
        self._part: Collection[str] | None = None
        self._kept: Sequence[str] = ()
        self._needs_all = needs_all
        self._before = earlier
        # A whole recording has the order of its cases.
        self._earlier = earlier if needs_all else EarlierRecording()
        self._workspace = workspace
        self._is_begun = False
        self._locked: IO[bytes] | None = None
        self._held: list[str] = []
        self._replaces_file = is_file(path.path)
        self._can_fail = self._replaces_file and (needs_all or earlier.has_complete_runs)
        if part is not None:
            self.limit(part)

    def limit(self, part: Collection[str]) -> None:
        """Keep all other cases of the file, as those that did not start before an interruption."""
        self._part = part
        self._kept = self._before.select_others(part, named=True)
        self._earlier = self._before

    def add(self, lines: Sequence[str], *, has_runs: bool, is_complete: bool) -> None:
        """Append the lines of a case; the first ones replace an older file.

        Args:
            has_runs: whether anything was recorded; else the lines say why not, which is only
                needed in the place of an older file.
            is_complete: whether the case can be evaluated.

        Raises:
            InputError: the file cannot be written.
        """
        if self._is_begun:
            _write_lines(self._path.path, lines, self._workspace, is_appended=True)
            return
        if self._can_fail and (self._needs_all or not is_complete):
            self._held += lines
        elif lines and (has_runs or self._replaces_file):
            _write_lines(self._path.path, [*self._kept, *self._held, *lines], self._workspace)
            self._is_begun = True
            with suppress(OSError):  # of a file system without locks
                self._locked = self._path.path.open("rb")
                fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def finish(
        self, lines: Sequence[str], *, has_runs: bool, is_complete: Sequence[bool]
    ) -> FileOutcome:
        """Write all lines in their final order; an older file stays if there are none.

        Args:
            has_runs: as for ``add``.
            is_complete: of each case, whether it can be evaluated.

        Returns:
            Whether the file was written, or an older one kept.

        Raises:
            InputError: the file cannot be written.
        """
        is_failed = not (all if self._needs_all else any)(is_complete)
        outcome: FileOutcome = "none"
        if lines and self._can_fail and is_failed:
            self._write_failed(lines)
            outcome = "kept"
        elif lines and (has_runs or self._replaces_file):
            _write_lines(
                self._path.path, self._earlier.sort([*lines, *self._kept]), self._workspace
            )
            self._end_failed(lines)
            outcome = "written"
        elif lines:
            self._write_failed(lines)
            outcome = "failed"
        return outcome

    def close(self) -> None:
        """End the recording, also one that failed: its file is no longer locked."""
        if self._locked is not None:
            self._locked.close()

    def _write_failed(self, lines: Sequence[str]) -> None:
        """Write the lines of a failed recording, which are read instead of the file."""
        others = self._list_failed_others()
        kept = self._kept if others is None else others
        _write_failed(self._failed, self._earlier.sort([*lines, *kept]), self._workspace)

    def _end_failed(self, lines: Sequence[str]) -> None:
        """Remove the file of a failed recording, unless it has other incomplete cases."""
        others = self._list_failed_others()
        if others and EarlierRecording(others).has_incomplete_runs:
            _write_lines(self._failed.path, self._earlier.sort([*lines, *others]), self._workspace)
        elif os.path.lexists(self._failed.path) and not remove_path(self._failed.path):
            message = f"{self._workspace.display_path(self._failed.path)} cannot be removed"
            raise InputError.from_message(message, hint="remove it: `agentci run` reads it")
        else:
            with suppress(OSError):
                self._remove_empty_folder()

    def _list_failed_others(self) -> list[str] | None:
        """Return the other cases' lines of an earlier failed recording; None if there is none."""
        if self._part is None or not is_file(self._failed.path):
            return None
        failed = EarlierRecording.read(self._failed, self._workspace)
        return None if failed.is_note else failed.select_others(self._part, named=True)

    def _remove_empty_folder(self) -> None:
        folder = self._failed.path.parent
        if [each.name for each in folder.iterdir()] == [".gitignore"]:
            remove_path(folder)


def note_failed_recording(
    path: ResolvedPath,
    reason: str,
    cases: Sequence[RecordCase],
    workspace: Workspace,
    redactor: RecordingRedactor,
) -> None:
    """Note that a recording could not be made, so that older runs are not mistaken for it.

    All runs of the file are read as incomplete until a later recording succeeds; what is known of
    an earlier failed one stays.

    Args:
        cases: that were to be recorded, for a file without runs.

    Raises:
        InputError: the note cannot be written.
    """
    failed = workspace.resolve_given(name_failed_recording(path.path))
    if os.path.lexists(failed.path):
        return
    earlier = EarlierRecording()
    with suppress(InputError):  # of a file that cannot be read, which `agentci run` reports
        earlier = EarlierRecording.read(path, workspace)
    stamps = [
        CaseStamp(id=each.id or UNNAMED, is_eval_case=each.is_named, input=each.input)
        for each in cases
    ]
    runs = earlier.list_runs()
    marked = (
        mark_incomplete(
            runs,
            f"{NOT_RECORDED}{reason}; record again",
            stamp,
            seed=os.urandom(16),
            redact=redactor.redact,
        )
        for stamp in ([CaseStamp()] if runs else stamps)
    )
    _write_failed(failed, [line for lines in marked for line in lines], workspace)


def _write_failed(path: ResolvedPath, lines: Sequence[str], workspace: Workspace) -> None:
    """Write lines into the folder of failed recordings, which git ignores."""
    folder = path.path.parent
    try:
        make_folder(folder, workspace.root)
        write_file_atomically(folder / ".gitignore", b"*\n", owner=workspace.root)
    except OSError as error:
        raise _make_error(folder, error, workspace) from None
    _write_lines(path.path, lines, workspace)


def _write_lines(
    path: Path, lines: Sequence[str], workspace: Workspace, *, is_appended: bool = False
) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    try:
        if is_appended:
            _append(path, content)
        else:
            write_file_atomically(path, content, owner=workspace.root)
    except OSError as error:
        raise _make_error(path, error, workspace) from None


def _make_error(path: Path, error: OSError, workspace: Workspace) -> InputError:
    return InputError.from_message(
        f"{workspace.display_path(path)} cannot be written: {error.strerror}"
    )


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
