"""The formats that recordings may have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from agentci.errors import RecordingError
from agentci.recordings import jaeger, otlp
from agentci.recordings.file_content import content_of
from agentci.recordings.json_documents import Document, documents_of, too_deep
from agentci.recordings.telemetry.span import Record
from agentci.recordings.telemetry.stored_trace import Recorded, Spool, set_aside
from agentci.recordings.trace_format import RecordingFormat, ShapeError, unreadable

# In the order in which they are tried.
FORMATS: Final[Mapping[str, RecordingFormat]] = {one.name: one for one in (otlp, jaeger)}
AUTO: Final = "auto"

EVAL_SET_KEYS: Final = frozenset({"eval_set_id", "evalSetId"})
_EVAL_SET: Final = "this is an eval set: name it as `eval_set:`, or give it with --eval-set"
_SHAPES: Final = (
    'expected {"resourceSpans": [...]}, {"batches": [...]}, a span a line, '
    'or {"data": [...]} from Jaeger'
)


def read_recording(
    chunks: Iterable[bytes], *, file: str, spool: Spool, trace_format: str = AUTO
) -> tuple[Recorded, ...]:
    """Set the traces of a recording aside, and tell them in first-seen order.

    Args:
        chunks: JSON or JSON Lines in UTF-8, also packed with gzip.
        file: the recording, as shown to the user.
        spool: where they are set aside.
        trace_format: a name in ``FORMATS``, or ``auto`` to go by the content.

    Raises:
        RecordingError: nothing of the recording can be used.
        KeyError: there is no format of this name.
    """
    forced = None if trace_format == AUTO else FORMATS[trace_format]
    content = content_of(chunks, file=file)
    try:
        records = _records(documents_of(content, file=file), forced, file)
        traces, complaints = set_aside(records, file=file, spool=spool)
    except RecordingError:
        # What is wrong with all of the file is told rather than what is wrong with a line of it.
        for _ in content:
            pass
        raise
    if not traces:
        raise _without_spans(file, complaints)
    return traces


def is_recording(data: bytes) -> bool:
    """Whether what was taken for something else begins as a recording does."""
    try:
        first = next(documents_of(content_of([data], file=""), file=""))
    except RecordingError:
        return False
    return any(one.recognises(first.value) for one in FORMATS.values())


def _without_spans(file: str, complaints: Sequence[str]) -> RecordingError:
    if complaints:
        hint = "every span needs a trace id and a span id"
        return unreadable(file, f"holds no usable spans: {'; '.join(complaints)}", hint=hint)
    hint = "did the exporter run? Log records count only beside the spans of their trace"
    return unreadable(file, "holds no spans", hint=hint)


def _records(
    documents: Iterable[Document], forced: RecordingFormat | None, file: str
) -> Iterator[Record]:
    chosen = forced
    for document in documents:
        chosen = chosen or _recognised(document, file)
        line = document.line
        try:
            yield from chosen.read(document.value)
        except ShapeError as error:
            hint = _SHAPES if forced is None else f"leave the trace format out; {_SHAPES}"
            raise unreadable(file, f"line {line} {error}", hint=hint, line=line) from None
        except RecursionError:
            raise too_deep(file, line) from None


def _recognised(document: Document, file: str) -> RecordingFormat:
    for one in FORMATS.values():
        if one.recognises(document.value):
            return one
    known, value = " nor ".join(FORMATS), document.value
    is_eval_set = isinstance(value, dict) and not EVAL_SET_KEYS.isdisjoint(value)
    hint = _EVAL_SET if is_eval_set else _SHAPES
    raise unreadable(file, f"is neither {known}", hint=hint, line=document.line)
