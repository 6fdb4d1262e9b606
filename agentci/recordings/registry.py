"""The formats of recordings, and how a recording's format is detected."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.text.json_document import JSON_TYPE_NAMES
from agentci._util.text.suggest import quote_name
from agentci.errors import RecordingError
from agentci.model.values import Json, JsonObject
from agentci.recordings import jaeger, json_documents, otel_console, otlp
from agentci.recordings.exports import EXPORT_FORMATS, ExportFormat
from agentci.recordings.foreign import (
    METRICS,
    ForeignKind,
    find_foreign_kind,
    find_text_kind,
    is_metrics,
)
from agentci.recordings.json_documents import (
    Document,
    DocumentFormatError,
    TextLine,
    TraceFormat,
    make_nesting_error,
    make_recording_error,
    make_text_error,
    refuse_text,
)
from agentci.recordings.runs import StoredRun, store_transcripts
from agentci.recordings.telemetry.conventions.registry import READ_ATTRIBUTES
from agentci.recordings.telemetry.semconv import AttributeNames, ReadAttributes
from agentci.recordings.telemetry.spans import SkippedInput, TelemetryRecord
from agentci.recordings.telemetry.stored_trace import TraceSpool, store_traces
from agentci.recordings.transcripts.formats import (
    TRANSCRIPT_FORMATS,
    TranscriptFormat,
    detect_transcript,
)
from agentci.recordings.transcripts.reader import TranscriptRun

MAX_HEAD_BYTES: Final = 4096
# Hidden, so that globs in configs do not find it.
_FAILED_FOLDER: Final = ".failed"
# Of the folders with requests and responses that `agentci record` writes next to a trace.
REQUESTS_SUFFIX: Final = ".requests"

# JSON has no control characters, and text hardly any; each span and log record has one.
_CONTROL_CHARACTER: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]")

ContentPart: TypeAlias = Document | TextLine


def name_failed_recording(path: Path) -> Path:
    """Return where the last recording of a file is if it failed: that is read instead."""
    return path.parent / _FAILED_FOLDER / path.name


class RecordingContent(Struct, frozen=True, kw_only=True):
    """The content of a recording.

    Attributes:
        head: its first bytes, decompressed.
        content: all its bytes, as far as they have not been read.
        parts: its documents, and the lines of text between them.
    """

    head: bytes
    content: Iterator[bytes]
    parts: Iterator[ContentPart]


def open_content(chunks: Iterable[bytes], *, file: str) -> RecordingContent:
    """Open a recording.

    Raises:
        RecordingError: if it is a broken archive; the parts raise it if they cannot be read.
    """
    content = json_documents.decompress_content(chunks, file=file)
    head, content = json_documents.peek_content(content)
    start = head[:MAX_HEAD_BYTES]
    return RecordingContent(head=start, content=content, parts=_read_parts(start, content, file))


def _read_parts(head: bytes, content: Iterator[bytes], file: str) -> Iterator[ContentPart]:
    if _CONTROL_CHARACTER.search(head) is not None:
        from agentci.recordings import otlp_protobuf  # noqa: PLC0415 (most runs do not need it)

        data = b"".join(content)
        messages = otlp_protobuf.decode_file(data)
        if messages is not None:
            yield from _read_messages(messages, file)
            return
        if data[:1] == bytes([otlp_protobuf.TOP_TAG]):
            raise make_recording_error(
                file,
                "the file looks like OTLP protobuf, but is cut off or damaged",
                hint="record it again, and copy it as a binary file",
            )
        content = chain([data])
    text = json_documents.unpack_text(content, file=file)
    yield from json_documents.read_mixed_documents(
        text, file=file, find_value=partial(_find_node_value, file)
    )


def _read_messages(messages: Iterator[JsonObject], file: str) -> Iterator[Document]:
    from agentci.recordings.otlp_protobuf import ProtobufError  # noqa: PLC0415 (as above)

    try:
        for message in messages:
            yield Document(value=message, line=1)
    except ProtobufError as error:
        raise make_recording_error(
            file, f"invalid OTLP protobuf: {error}", hint="check that the file is complete"
        ) from None


def _find_node_value(file: str, text: str, start: int) -> tuple[Json, int] | None:
    """Return what Node's console exporters print at a position of a text."""
    from agentci.recordings import otel_console  # noqa: PLC0415 (most runs do not need it)

    if otel_console.NODE_OBJECT.match(text, start) is None:
        return None
    try:
        return otel_console.parse_node_object(text, start)
    except otel_console.NodeTextError as error:
        raise _make_node_error(file, text, error.position, str(error)) from None


def _make_node_error(file: str, text: str, position: int, message: str) -> RecordingError:
    return make_recording_error(
        file,
        f"output of Node's console exporter cannot be read: {message}",
        hint="export with OTLP instead (@opentelemetry/exporter-trace-otlp-http)",
        line=text.count("\n", 0, position) + 1,
        column=position - text.rfind("\n", 0, position),
    )


# Formats of spans, tried in this order, then transcripts.
FORMATS: Final[Mapping[str, TraceFormat]] = {
    **EXPORT_FORMATS,
    **{one.name: one for one in (otel_console, otlp, jaeger)},
}
AUTO: Final = "auto"
FORMAT_NAMES: Final = (AUTO, *FORMATS, *TRANSCRIPT_FORMATS)

_AnyFormat: TypeAlias = TraceFormat | TranscriptFormat

EVAL_SET_KEYS: Final = frozenset({"eval_set_id", "evalSetId"})
EVAL_CASE_KEYS: Final = frozenset({"eval_cases", "evalCases"})
MAX_SHOWN_KEYS: Final = 4
# Transcripts may begin with other lines.
MAX_FIRST_DOCUMENTS: Final = 100
_EVAL_SET_HINT: Final = "this is an eval set; use it as `eval_set:` or with `--eval-set`"
_SPANS_HINT: Final = (
    'expected {"resourceSpans": [...]}, {"batches": [...]}, one span per line, '
    'or {"data": [...]} from Jaeger'
)
_FORMATS_HINT: Final = f"{_SPANS_HINT}, or a transcript (agentci's docs/transcripts.md lists them)"


def read_recording(
    chunks: Iterable[bytes],
    *,
    file: str,
    spool: TraceSpool,
    trace_format: str = AUTO,
    names: ReadAttributes = READ_ATTRIBUTES,
    label_names: AbstractSet[str] = frozenset(),
) -> tuple[StoredRun, ...]:
    """Store the traces or transcripts of a recording in ``spool``, and return them in its order.

    Args:
        chunks: JSON or JSON Lines in UTF-8, text with spans in it, or OTLP protobuf; optionally
            compressed with gzip.
        file: the recording's path, as shown to the user.
        spool: where the runs are stored.
        trace_format: one of ``FORMAT_NAMES``; ``auto`` detects the format from the content.
        names: the attributes of spans and resources that are read.
        label_names: attributes that select traces, and are read as well.

    Raises:
        RecordingError: if nothing in the recording can be used.
        KeyError: if there is no format of this name.
    """
    if label_names:
        names = _add_names(names, label_names)
    forced = None if trace_format == AUTO else _get_format(trace_format)
    opened = open_content(chunks, file=file)
    try:
        return _store_runs(
            opened.parts, forced, names, file=file, spool=spool, label_names=label_names
        )
    except RecordingError:
        # Read on, so that an error of the whole file is reported instead of an error of one line.
        for _ in opened.content:
            pass
        if kind := find_text_kind(opened.head):
            raise _make_foreign_error(kind, file) from None
        raise


def _add_names(names: ReadAttributes, more: AbstractSet[str]) -> ReadAttributes:
    return ReadAttributes(
        AttributeNames(names.span.exact | more, names.span.prefixes),
        AttributeNames(names.resource.exact | more, names.resource.prefixes),
    )


def _get_format(name: str) -> _AnyFormat:
    return FORMATS[name] if name in FORMATS else TRANSCRIPT_FORMATS[name]


def _store_runs(
    parts: Iterator[ContentPart],
    forced: _AnyFormat | None,
    names: ReadAttributes,
    *,
    file: str,
    spool: TraceSpool,
    label_names: AbstractSet[str],
) -> tuple[StoredRun, ...]:
    chosen, parts = (forced, parts) if forced is not None else _choose_format(parts, file)
    if isinstance(chosen, TranscriptFormat):
        runs = _read_transcripts(refuse_text(parts, file), chosen, file)
        transcripts = store_transcripts(runs, file=file, spool=spool)
        if not transcripts:
            message = "the file has no user message, answer or tool call"
            raise make_recording_error(file, message, hint=_format_hint(chosen))
        return transcripts
    records = _read_records(parts, chosen, names, file=file, is_forced=forced is not None)
    traces, rejections = store_traces(
        records,
        file=file,
        spool=spool,
        label_names=label_names,
        keep_subagents_apart=isinstance(chosen, ExportFormat),
    )
    if not traces:
        raise _make_no_spans_error(file, rejections)
    return traces


def is_recording(data: bytes) -> bool:
    """Return whether data read as another kind of file starts like a recording."""
    try:
        _choose_format(open_content([data], file="").parts, "")
    except RecordingError:
        return False
    return True


def detect_format_name(chunks: Iterable[bytes], *, file: str) -> str | None:
    """Return the name of a recording's format; None if it has none of them."""
    try:
        chosen, _ = _choose_format(open_content(chunks, file=file).parts, file)
    except RecordingError:
        return None
    return chosen.name


def _make_no_spans_error(file: str, rejections: Sequence[str]) -> RecordingError:
    if rejections:
        hint = "every span needs a trace id and a span id"
        message = f"the file has no usable spans: {'; '.join(rejections)}"
        return make_recording_error(file, message, hint=hint)
    hint = "check that the exporter ran; log records are read only with the spans of their trace"
    return make_recording_error(file, "the file has no spans", hint=hint)


def _read_transcripts(
    documents: Iterator[Document], chosen: TranscriptFormat, file: str
) -> Iterator[TranscriptRun]:
    try:
        yield from chosen.load().read(documents)
    except DocumentFormatError as error:
        hint = _format_hint(chosen)
        raise make_recording_error(file, str(error), hint=hint, line=error.line or 1) from None


def _format_hint(chosen: TranscriptFormat) -> str:
    return f"the file was read as {chosen.name}; `trace_format` sets another format"


def _read_records(
    parts: Iterable[ContentPart],
    chosen: TraceFormat,
    names: ReadAttributes,
    *,
    file: str,
    is_forced: bool,
) -> Iterator[tuple[int, Iterable[TelemetryRecord]]]:
    """Yield the lines of the documents, and their records."""
    has_bare_spans = False
    for part in parts:
        if isinstance(part, TextLine):
            if has_bare_spans:  # no exporter prints these to stdout: the file is broken
                raise make_text_error(part, file)
            skipped = SkippedInput(what="line of text", plural="lines of text")
            yield part.line, (skipped,)
            continue
        has_bare_spans = has_bare_spans or (chosen is otlp and otlp.is_span(part.value))
        yield part.line, _read_document(part, chosen, names, file=file, is_forced=is_forced)


def _read_document(
    document: Document,
    chosen: TraceFormat,
    names: ReadAttributes,
    *,
    file: str,
    is_forced: bool,
) -> Iterator[TelemetryRecord]:
    try:
        yield from chosen.read(document.value, names)
    except DocumentFormatError as error:
        if is_metrics(document.value):
            return
        hint = error.hint or _SPANS_HINT
        if is_forced and not error.hint:
            hint = f"remove the trace format setting to detect the format; {hint}"
        raise make_recording_error(file, str(error), hint=hint, line=document.line) from None
    except RecursionError:
        raise make_nesting_error(file, document.line) from None


def _choose_format(
    parts: Iterator[ContentPart], file: str
) -> tuple[_AnyFormat, Iterator[ContentPart]]:
    """Return the format of a recording, and all its parts.

    Raises:
        RecordingError: if it has none, or is known to be of another kind.
    """
    head, first = _read_to_first_document(parts, file)
    if kind := find_foreign_kind(first.value):
        raise _make_foreign_error(kind, file, line=first.line)
    for one in FORMATS.values():
        if one.recognises(first.value):
            return one, chain(head, parts)
    head += islice(parts, MAX_FIRST_DOCUMENTS)
    documents = [part.value for part in head if isinstance(part, Document)]
    if any(map(otel_console.recognises, documents)):
        return otel_console, chain(head, parts)
    if (text := next((part for part in head if isinstance(part, TextLine)), None)) is not None:
        raise make_text_error(text, file)
    if found := detect_transcript(documents):
        return found, chain(head, parts)
    raise _make_unknown_error(first, file)


def _read_to_first_document(
    parts: Iterator[ContentPart], file: str
) -> tuple[list[ContentPart], Document]:
    """Return the first document that is not metrics, and all parts to it."""
    head: list[ContentPart] = []
    for part in parts:
        head.append(part)
        if isinstance(part, Document) and not is_metrics(part.value):
            return head, part
    if any(isinstance(part, Document) for part in head):
        raise _make_foreign_error(METRICS, file)
    if not head:  # protobuf without a message
        raise make_recording_error(
            file, "the file has no spans", hint="check that the recording did not fail"
        )
    raise make_text_error(next(part for part in head if isinstance(part, TextLine)), file)


def _make_unknown_error(first: Document, file: str) -> RecordingError:
    value = first.value
    is_eval_set = (
        isinstance(value, dict)
        and not EVAL_SET_KEYS.isdisjoint(value)
        and not EVAL_CASE_KEYS.isdisjoint(value)
    )
    hint = _EVAL_SET_HINT if is_eval_set else _FORMATS_HINT
    message = f"not a recorded run in a known format: found {_describe_document(value)}"
    return make_recording_error(file, message, hint=hint, line=first.line)


def _make_foreign_error(kind: ForeignKind, file: str, *, line: int = 1) -> RecordingError:
    message = f"the file is {kind.title}; it is not read"
    return make_recording_error(file, message, hint=kind.hint, line=line)


def _describe_document(value: Json) -> str:
    """Describe a document by its type and its first keys."""
    kind = JSON_TYPE_NAMES[type(value)]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"{kind} that begins with {_describe_document(value[0])}"
    if not isinstance(value, dict) or not value:
        return kind
    keys = [quote_name(key) for key in value]
    more = ", ..." if len(keys) > MAX_SHOWN_KEYS else ""
    return f"{kind} with {', '.join(keys[:MAX_SHOWN_KEYS])}{more}"
