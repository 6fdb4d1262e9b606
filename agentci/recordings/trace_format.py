"""What every format of recordings is: a way to recognise a document, and to read its records."""

from collections.abc import Iterator
from typing import Protocol

from agentci.errors import RecordingError
from agentci.model.json import Json
from agentci.model.problem import Place, Problem
from agentci.recordings.telemetry.spans import TelemetryRecord


class DocumentFormatError(Exception):
    """A document is not what its format says it is; the message says what is wrong."""


class TraceFormat(Protocol):
    """One format, as a module of this package.

    A recording is one JSON document or several in a row; each is read by itself.
    """

    @property
    def name(self) -> str:
        """What users call it: ``otlp-json``."""
        ...

    def recognises(self, document: Json) -> bool:
        """Whether a recording that starts with ``document`` is of this format."""
        ...

    def read(self, document: Json) -> Iterator[TelemetryRecord]:
        """The records of one document, in its order.

        Raises:
            ShapeError: the document is not of this format.
        """
        ...


def make_recording_error(
    file: str, message: str, *, hint: str, line: int = 1, column: int | None = None
) -> RecordingError:
    """The error of a recording that cannot be read."""
    place = Place(file=file, line=line, column=column)
    return RecordingError(Problem(message=message, place=place, hint=hint))
