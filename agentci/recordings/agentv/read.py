"""Reads files of outputs that were recorded with AgentV, or written by its rules."""

from collections.abc import Iterator
from typing import Final

from agentci.errors import RecordingError
from agentci.model.json import Json
from agentci.recordings.agentv.recorded_run import RecordedRun
from agentci.recordings.agentv.rows import is_row, plain_answer, runs_in
from agentci.recordings.json_documents import Document, documents_of
from agentci.recordings.trace_format import ShapeError, unreadable

HINT: Final = (
    'expected {"output_messages": [...]} or {"text": "..."} with the `id` of a case, one a line;'
    " agentv.transcript.v1; agentv.replay_fixture.v1; or traces as OTLP or Jaeger JSON"
)


def first_value(content: Iterator[bytes], *, file: str) -> Json:
    """The first JSON value of a file, None where it holds none."""
    try:
        return next(documents_of(content, file=file)).value
    except (RecordingError, StopIteration):
        return None


def read_rows(content: bytes, *, file: str, of_one_case: bool) -> tuple[RecordedRun, ...]:
    """The runs of one file.

    Args:
        of_one_case: its name says whose output it holds, so that it may be the bare answer.

    Raises:
        RecordingError: nothing of it can be used.
    """
    bare = plain_answer(content.decode("utf-8", "replace").strip(), file)
    try:
        documents = _flat(list(documents_of(iter([content]), file=file)))
        if of_one_case and not is_row(documents[0].value):
            return (bare,)
        return tuple(runs_in(documents, file))
    except ShapeError as error:
        raise unreadable(file, str(error), hint=HINT) from None
    except RecordingError:
        if of_one_case:
            return (bare,)
        raise


def _flat(documents: list[Document]) -> list[Document]:
    """The rows of a file that is one list; else its documents."""
    [first, *others] = documents
    rows = first.value
    if others or not isinstance(rows, list) or not all(map(is_row, rows)):
        return documents
    return [Document(value=row, line=first.line) for row in rows] or documents
