"""The formats of recordings, and how a recording's format is detected."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from agentci.errors import RecordingError
from agentci.recordings import jaeger, otlp
from agentci.recordings.json_documents import (
    Document,
    make_nesting_error,
    read_documents,
    unpack_content,
)
from agentci.recordings.telemetry.spans import TelemetryRecord
from agentci.recordings.telemetry.stored_trace import StoredTrace, TraceSpool, store_traces
from agentci.recordings.trace_format import DocumentFormatError, TraceFormat, make_recording_error

# Formats are tried in this order.
FORMATS: Final[Mapping[str, TraceFormat]] = {one.name: one for one in (otlp, jaeger)}
AUTO: Final = "auto"

EVAL_SET_KEYS: Final = frozenset({"eval_set_id", "evalSetId"})
_EVAL_SET_HINT: Final = "this is an eval set: name it as `eval_set:`, or give it with --eval-set"
_FORMATS_HINT: Final = (
    'expected {"resourceSpans": [...]}, {"batches": [...]}, a span a line, '
    'or {"data": [...]} from Jaeger'
)


def read_recording(
    chunks: Iterable[bytes], *, file: str, spool: TraceSpool, trace_format: str = AUTO
) -> tuple[StoredTrace, ...]:
    """Store the traces of a recording in ``spool``, and return them in first-seen order.

    Args:
        chunks: JSON or JSON Lines in UTF-8, optionally compressed with gzip.
        file: the recording's path, as shown to the user.
        spool: where the traces are stored.
        trace_format: a name in ``FORMATS``, or ``auto`` to detect the format from the content.

    Raises:
        RecordingError: if nothing in the recording can be used.
        KeyError: if there is no format of this name.
    """
    forced = None if trace_format == AUTO else FORMATS[trace_format]
    content = unpack_content(chunks, file=file)
    try:
        records = _read_records(read_documents(content, file=file), forced, file)
        traces, complaints = store_traces(records, file=file, spool=spool)
    except RecordingError:
        # Read on, so that an error of the whole file is reported instead of an error of one line.
        for _ in content:
            pass
        raise
    if not traces:
        raise _make_no_spans_error(file, complaints)
    return traces


def is_recording(data: bytes) -> bool:
    """Return whether data read as another kind of file starts like a recording."""
    try:
        first = next(read_documents(unpack_content([data], file=""), file=""))
    except RecordingError:
        return False
    return any(one.recognises(first.value) for one in FORMATS.values())


def _make_no_spans_error(file: str, complaints: Sequence[str]) -> RecordingError:
    if complaints:
        hint = "every span needs a trace id and a span id"
        return make_recording_error(
            file, f"holds no usable spans: {'; '.join(complaints)}", hint=hint
        )
    hint = "did the exporter run? Log records count only beside the spans of their trace"
    return make_recording_error(file, "holds no spans", hint=hint)


def _read_records(
    documents: Iterable[Document], forced: TraceFormat | None, file: str
) -> Iterator[TelemetryRecord]:
    chosen = forced
    for document in documents:
        chosen = chosen or _detect_format(document, file)
        line = document.line
        try:
            yield from chosen.read(document.value)
        except DocumentFormatError as error:
            hint = (
                _FORMATS_HINT if forced is None else f"leave the trace format out; {_FORMATS_HINT}"
            )
            raise make_recording_error(file, f"line {line} {error}", hint=hint, line=line) from None
        except RecursionError:
            raise make_nesting_error(file, line) from None


def _detect_format(document: Document, file: str) -> TraceFormat:
    for one in FORMATS.values():
        if one.recognises(document.value):
            return one
    known, value = " nor ".join(FORMATS), document.value
    is_eval_set = isinstance(value, dict) and not EVAL_SET_KEYS.isdisjoint(value)
    hint = _EVAL_SET_HINT if is_eval_set else _FORMATS_HINT
    raise make_recording_error(file, f"is neither {known}", hint=hint, line=document.line)
