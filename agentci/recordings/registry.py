"""The formats of recordings, and how a recording's format is detected."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from agentci._util.text.json_fields import JSON_TYPE_NAMES
from agentci._util.text.suggest import quote_name
from agentci.errors import RecordingError
from agentci.model.json import Json
from agentci.recordings import jaeger, json_documents, otlp
from agentci.recordings.telemetry.spans import TelemetryRecord
from agentci.recordings.telemetry.stored_trace import StoredTrace, TraceSpool, store_traces
from agentci.recordings.trace_format import DocumentFormatError, TraceFormat, make_recording_error

# Formats are tried in this order.
FORMATS: Final[Mapping[str, TraceFormat]] = {one.name: one for one in (otlp, jaeger)}
AUTO: Final = "auto"

EVAL_SET_KEYS: Final = frozenset({"eval_set_id", "evalSetId"})
MAX_SHOWN_KEYS: Final = 4
_EVAL_SET_HINT: Final = "this is an eval set; use it as `eval_set:` or with `--eval-set`"
_FORMATS_HINT: Final = (
    'expected {"resourceSpans": [...]}, {"batches": [...]}, one span per line, '
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
    content = json_documents.unpack_content(chunks, file=file)
    try:
        records = _read_records(json_documents.read_documents(content, file=file), forced, file)
        traces, rejections = store_traces(records, file=file, spool=spool)
    except RecordingError:
        # Read on, so that an error of the whole file is reported instead of an error of one line.
        for _ in content:
            pass
        raise
    if not traces:
        raise _make_no_spans_error(file, rejections)
    return traces


def is_recording(data: bytes) -> bool:
    """Return whether data read as another kind of file starts like a recording."""
    try:
        first = next(
            json_documents.read_documents(json_documents.unpack_content([data], file=""), file="")
        )
    except RecordingError:
        return False
    return any(one.recognises(first.value) for one in FORMATS.values())


def _make_no_spans_error(file: str, rejections: Sequence[str]) -> RecordingError:
    if rejections:
        hint = "every span needs a trace id and a span id"
        message = f"the file has no usable spans: {'; '.join(rejections)}"
        return make_recording_error(file, message, hint=hint)
    hint = "check that the exporter ran; log records are read only with the spans of their trace"
    return make_recording_error(file, "the file has no spans", hint=hint)


def _read_records(
    documents: Iterable[json_documents.Document], forced: TraceFormat | None, file: str
) -> Iterator[TelemetryRecord]:
    chosen = forced
    for document in documents:
        chosen = chosen or _detect_format(document, file)
        line = document.line
        try:
            yield from chosen.read(document.value)
        except DocumentFormatError as error:
            hint = _FORMATS_HINT
            if forced is not None:
                hint = f"remove the trace format setting to detect the format; {hint}"
            raise make_recording_error(file, str(error), hint=hint, line=line) from None
        except RecursionError:
            raise json_documents.make_nesting_error(file, line) from None


def _detect_format(document: json_documents.Document, file: str) -> TraceFormat:
    for one in FORMATS.values():
        if one.recognises(document.value):
            return one
    known, value = " nor ".join(FORMATS), document.value
    is_eval_set = isinstance(value, dict) and not EVAL_SET_KEYS.isdisjoint(value)
    hint = _EVAL_SET_HINT if is_eval_set else _FORMATS_HINT
    message = f"neither {known}: found {_describe_document(value)}"
    raise make_recording_error(file, message, hint=hint, line=document.line)


def _describe_document(value: Json) -> str:
    """Describe a document by its type and its first keys."""
    kind = JSON_TYPE_NAMES[type(value)]
    if not isinstance(value, dict) or not value:
        return kind
    keys = [quote_name(key) for key in value]
    more = ", ..." if len(keys) > MAX_SHOWN_KEYS else ""
    return f"{kind} with {', '.join(keys[:MAX_SHOWN_KEYS])}{more}"
