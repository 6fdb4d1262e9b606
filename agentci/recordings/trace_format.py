"""The interface of a trace format: recognise a document, and read its records."""

from collections.abc import Iterator
from typing import Protocol

from agentci.errors import RecordingError
from agentci.model.values import SHOW_HINT, Json, Place, Problem, replace
from agentci.recordings.telemetry.semconv import ReadAttributes
from agentci.recordings.telemetry.spans import TelemetryRecord


class DocumentFormatError(Exception):
    """A document does not match its format.

    Attributes:
        line: number of the invalid line; None if only the caller knows it.
        hint: what to do, if that is not to name another file.
    """

    def __init__(self, message: str, *, line: int | None = None, hint: str | None = None) -> None:
        self.line = line
        self.hint = hint
        super().__init__(message)


class TraceFormat(Protocol):
    """One trace format, implemented as a module of this package.

    A recording is one JSON document or several in a row; each is read separately.
    """

    @property
    def name(self) -> str:
        """The name that users write, such as ``otlp-json``."""

    def recognises(self, document: Json) -> bool:
        """Return whether a recording that starts with ``document`` has this format."""

    def read(self, document: Json, names: ReadAttributes) -> Iterator[TelemetryRecord]:
        """Read the records of one document, in its order, with the attributes in ``names``.

        Raises:
            DocumentFormatError: if the document does not have this format.
        """


def make_recording_error(
    file: str, message: str, *, hint: str, line: int = 1, column: int | None = None
) -> RecordingError:
    """Make the error for a recording that cannot be read."""
    place = Place(file=file, line=line, column=column)
    return RecordingError(Problem(message=message, place=place, hint=hint))


def point_to_show(problem: Problem) -> Problem:
    """Return the problem of a recording, with the command that shows what is understood of it."""
    return replace(problem, hint="; ".join(filter(None, (problem.hint, SHOW_HINT))))
