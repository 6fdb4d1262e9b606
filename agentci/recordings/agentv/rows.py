"""Rows of recorded runs: of AgentV's cli provider, its transcripts and its replay fixtures."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from agentci.model.json import Json, JsonObject
from agentci.model.place import Place
from agentci.model.transcript import Message, Transcript
from agentci.recordings.agentv.messages import message_of, messages_of
from agentci.recordings.agentv.recorded_run import (
    Metrics,
    RecordedRun,
    attempt_of,
    case_id_of,
    metrics_of,
    text_of,
)
from agentci.recordings.json_documents import Document
from agentci.recordings.trace_format import ShapeError

TRANSCRIPT: Final = "agentv.transcript.v1"
# Of one output, in the order in which they count.
MESSAGES: Final = ("output_messages", "outputMessages", "output", "messages")
ANSWER: Final = "text"


def is_row(document: Json) -> bool:
    """Whether ``document`` is a run, or a message of one, in any of the three forms."""
    return isinstance(document, dict) and (
        _is_message(document) or any(key in document for key in (*MESSAGES, ANSWER))
    )


def runs_in(documents: Sequence[Document], file: str) -> Iterator[RecordedRun]:
    """The runs of one file, in its order; messages of one test are one run.

    Raises:
        ShapeError: a row is not what it should be; says on which line.
    """
    tests: dict[str | None, list[tuple[JsonObject, int]]] = {}
    for document in documents:
        row, line = document.value, document.line
        if not isinstance(row, dict) or not is_row(row):
            raise ShapeError(f"line {line} holds no output, as `output_messages` or `text`")
        if _is_message(row):
            tests.setdefault(case_id_of(row), []).append((row, line))
        else:
            yield _run(row, Place(file=file, line=line))
    for test, rows in tests.items():
        yield _conversation(test, rows, file)


def plain_answer(text: str, file: str) -> RecordedRun:
    """A file that holds nothing but the answer."""
    return RecordedRun(case_id=None, transcript=_said(text), place=Place(file=file))


def _is_message(row: JsonObject) -> bool:
    return row.get("schema_version") == TRANSCRIPT or ("message_index" in row and "role" in row)


def _run(row: JsonObject, place: Place) -> RecordedRun:
    try:
        metrics = metrics_of(row)
        messages = _messages(row)
        attempt = attempt_of(row)
        start, end = (text_of(row.get(key), key) for key in ("start_time", "end_time"))
    except ShapeError as error:
        raise ShapeError(f"line {place.line} {error}") from None
    return RecordedRun(
        case_id=case_id_of(row),
        transcript=_transcript(messages, metrics, start=start, end=end),
        place=place,
        attempt=attempt,
        warnings=metrics.warnings,
    )


def _messages(row: JsonObject) -> tuple[Message, ...]:
    for key in MESSAGES:
        raw = row.get(key)
        if isinstance(raw, list):
            return messages_of(raw, key)
        if isinstance(raw, str):
            return _said(raw).messages
    answer = row.get(ANSWER)
    if answer is None:
        raise ShapeError("holds no output, as `output_messages` or `text`")
    return _said(answer if isinstance(answer, str) else _compact(answer)).messages


def _conversation(
    test: str | None, rows: Sequence[tuple[JsonObject, int]], file: str
) -> RecordedRun:
    ordered = sorted(rows, key=_index)
    messages: list[Message] = []
    for row, line in ordered:
        try:
            messages.append(message_of(row))
        except ShapeError as error:
            raise ShapeError(f"line {line} {error}") from None
    first, line = ordered[0]
    try:
        metrics = metrics_of(first, prefix="transcript_")
    except ShapeError as error:
        raise ShapeError(f"line {line} {error}") from None
    return RecordedRun(
        case_id=test,
        transcript=_transcript(tuple(messages), metrics),
        place=Place(file=file, line=line),
        warnings=metrics.warnings,
    )


def _index(numbered: tuple[JsonObject, int]) -> float:
    index = numbered[0].get("message_index")
    return index if isinstance(index, int | float) else 0


def _transcript(
    messages: tuple[Message, ...],
    metrics: Metrics,
    *,
    start: str | None = None,
    end: str | None = None,
) -> Transcript:
    return Transcript(
        messages=messages,
        token_usage=metrics.token_usage,
        cost_usd=metrics.cost_usd,
        duration_ms=metrics.duration_ms,
        start_time=start,
        end_time=end,
    )


def _said(text: str) -> Transcript:
    return Transcript(messages=(Message(role="assistant", content=text),))


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
