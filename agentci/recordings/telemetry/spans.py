"""Spans and log records of any recording format, the kind of each span, and traces made of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from agentci._util.text.format import format_count
from agentci.model.values import Json, replace
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.messages import SpanMessages

NO_ATTRIBUTES: Final[Mapping[str, Json]] = MappingProxyType({})


def make_no_attributes() -> Mapping[str, Json]:
    """Return the shared empty mapping; a ``default_factory`` for Struct fields."""
    return NO_ATTRIBUTES


class SpanEvent(Struct, frozen=True, kw_only=True):
    """A span event or a log record that carries messages.

    Attributes:
        time: nanoseconds since 1970.
        payload: the attributes; for a log record with a message, its body.
    """

    name: str
    time: int
    payload: Mapping[str, Json]


class Span(Struct, frozen=True, kw_only=True):
    """One timed step of a trace.

    Attributes:
        parent_id: as recorded; the parent may be missing from the trace.
        start, end: nanoseconds since 1970; 0 if they could not be read.
        attributes, resource: only those that some rule reads.
        failed: whether its status is ERROR or it has an ``error.type``.
        scope, scope_version: of the instrumentation that recorded it; "" if unknown.
    """

    trace_id: str
    id: str
    parent_id: str | None
    name: str
    start: int
    end: int
    attributes: Mapping[str, Json] = field(default_factory=make_no_attributes)
    resource: Mapping[str, Json] = field(default_factory=make_no_attributes)
    failed: bool = False
    scope: str = ""
    scope_version: str = ""
    events: tuple[SpanEvent, ...] = ()

    @property
    def adk(self) -> bool:
        """Whether Google's Agent Development Kit recorded it."""
        return self.scope == semconv.ADK_SCOPE or any(
            name.startswith(semconv.ADK_PREFIX) for name in self.attributes
        )

    @property
    def duration(self) -> int:
        """Nanoseconds; 0 if the span ends before it starts."""
        return max(self.end - self.start, 0)


class LogRecord(Struct, frozen=True, kw_only=True):
    """A log record with messages; its span may be missing from the trace."""

    trace_id: str
    span_id: str | None
    event: SpanEvent


class RejectedSpan(Struct, frozen=True, kw_only=True):
    """A span that cannot be used, and the reason."""

    reason: str


class SkippedInput(Struct, frozen=True, kw_only=True):
    """Something in the file that is not a span, and what it is, in the singular and the plural."""

    what: str
    plural: str


TelemetryRecord: TypeAlias = Span | LogRecord | RejectedSpan | SkippedInput


def make_scope_text(raw: Json) -> str:
    """Return the name or version of an instrumentation scope; "" if it is not a text."""
    return raw if isinstance(raw, str) else ""


MAX_IDENTIFIER_CHARS: Final = 256


def find_identifier(sources: Iterable[Mapping[str, Json]], attribute: str) -> str | None:
    """Return the first usable identifier: printable text or a number, at most 256 characters."""
    for source in sources:
        if attribute in source:
            text = _format_identifier(source[attribute])
            if text and text.isprintable() and len(text) <= MAX_IDENTIFIER_CHARS:
                return text
    return None


def _format_identifier(value: Json) -> str:
    usable = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value).strip() if usable else ""


OperationKind: TypeAlias = Literal["inference", "agent", "workflow", "tool", "other", "none"]

_KINDS_BY_OPERATION: Final[Mapping[str, OperationKind]] = {
    "chat": "inference",
    "generate_content": "inference",
    "text_completion": "inference",
    "invoke_agent": "agent",
    "invoke_workflow": "workflow",
    "execute_tool": "tool",
}
# Operations of the GenAI conventions that are neither a turn, a model call nor a tool call.
_OTHER_OPERATIONS: Final = frozenset(
    {"create_agent", "embeddings", "retrieval", "rerank", "moderation", "create_thread"}
)
_ADK_OPERATIONS: Final[Mapping[str, str]] = {
    "call_llm": "generate_content",
    "invocation": "invoke_workflow",
}
_MODEL_CALL_PREFIXES: Final = (
    semconv.INPUT_MESSAGES,
    semconv.OUTPUT_MESSAGES,
    semconv.USAGE_PREFIX,
    semconv.PROMPT_PREFIX,
    semconv.COMPLETION_PREFIX,
)


def classify_span(span: Span) -> OperationKind:
    """Classify a span by its attributes; names count only for ADK's own spans.

    A span that names a tool is a tool call, unless its operation is known to be another one:
    clients of the Model Context Protocol, for example, may record no operation.
    """
    if _is_merged_tool(span):
        return "none"
    operation = _find_operation(span)
    kind = _KINDS_BY_OPERATION.get(operation.lower()) if operation else None
    if kind is not None:
        return kind
    if names_tool_call(span) and operation not in _OTHER_OPERATIONS:
        return "tool"
    return "other" if operation else "none"


_TOOL_VALUES: Final = frozenset({semconv.TOOL_CALL_ID, semconv.TOOL_ARGUMENTS, semconv.TOOL_RESULT})


def names_tool_call(span: Span) -> bool:
    """Return whether a span says that a tool was called, even without an operation.

    It names a tool or has its id, arguments or result, or it is a call of a tool by the Model
    Context Protocol.
    """
    attributes = span.attributes
    method = attributes.get(semconv.MCP_METHOD)
    if method is not None:
        return method == semconv.MCP_TOOL_CALL
    if isinstance(name := attributes.get(semconv.TOOL_NAME), str) and name:
        return True
    return not _TOOL_VALUES.isdisjoint(attributes)


def _find_operation(span: Span) -> str | None:
    named = span.attributes.get(semconv.OPERATION_NAME)
    if isinstance(named, str) and named:
        return named
    if span.adk and span.name in _ADK_OPERATIONS:
        return _ADK_OPERATIONS[span.name]
    return "chat" if _looks_like_chat(span) else None


def _looks_like_chat(span: Span) -> bool:
    attributes = span.attributes
    return bool(
        attributes.get(semconv.REQUEST_MODEL)
        and (attributes.get(semconv.SYSTEM) or attributes.get(semconv.PROVIDER_NAME))
        and any(name.startswith(_MODEL_CALL_PREFIXES) for name in attributes)
    )


def _is_merged_tool(span: Span) -> bool:
    """Return whether ADK made the span to summarize parallel tools that have their own spans."""
    return (
        span.name == "execute_tool (merged)"
        or span.attributes.get(semconv.TOOL_NAME) == "(merged tools)"
    )


class SpanReading(Struct, frozen=True, kw_only=True):
    """What one source says about a span.

    Attributes:
        kind: None if the source does not say what the span is.
        values: by current names of the GenAI conventions.
        input, output: messages to and from the model or agent; empty if the source has none.
        failed: whether the source says that the tool failed; None if it says that this is unknown.
    """

    kind: OperationKind | None = None
    values: Mapping[str, Json] = field(default_factory=make_no_attributes)
    input: SpanMessages = ()
    output: SpanMessages = ()
    failed: bool | None = False


def select_values(
    attributes: Mapping[str, Json], sources: Mapping[str, Sequence[str]]
) -> dict[str, Json]:
    """Return values by GenAI name, each from the first of its ``sources`` that is recorded."""
    return {
        name: attributes[source]
        for name, own in sources.items()
        for source in reversed(own)
        if attributes.get(source) is not None
    }


class SpanTree(Struct, frozen=True, kw_only=True):
    """One trace of one file.

    Attributes:
        spans: sorted by start, then id; unique ids, no cycles among parents. A span whose parent is
            missing is a root.
        logs: records with messages, in the file's order, including those without a known span.
        warnings: what was repaired, and what in the file could not be used.
        file: the recording's path, as shown to the user.
        line: of the document with its first span.
        eval_case_id: id of the eval case that the recording names, from the first span in the
            file's order; a span's own attribute takes precedence over its resource's.
        asked, recorded_run, incomplete: as in ``Trace.asked``, ``Trace.recorded_run`` and
            ``Trace.not_captured``, from the first resource
            of a recording by `agentci record`; else empty.
        replayed: as in ``Trace.replayed``.
        printed_answer: what the command printed as the answer, if that is recorded; else empty.
        printed: all lines that it printed, as ``Trace.printed``.
    """

    id: str
    spans: tuple[Span, ...]
    logs: tuple[LogRecord, ...]
    warnings: tuple[str, ...]
    file: str
    line: int = 1
    eval_case_id: str | None = None
    asked: str = ""
    recorded_run: str = ""
    printed_answer: str = ""
    printed: str | None = None
    incomplete: str = ""
    replayed: bool = False


class _TraceParts(Struct):
    spans: dict[str, Span] = field(default_factory=dict)
    logs: list[LogRecord] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def assemble_tree(
    records: Iterable[Span | LogRecord], *, trace_id: str, rejections: Sequence[str], file: str
) -> SpanTree:
    """Assemble the records of one trace, given in the file's order.

    Args:
        rejections: warnings about spans of the file that were rejected.
    """
    parts = _TraceParts()
    for record in records:
        if isinstance(record, Span):
            if record.id in parts.spans:
                parts.warnings.append(f"duplicate span {record.id} ignored")
            else:
                parts.spans[record.id] = record
        else:
            parts.logs.append(record)
    parts.logs, repeated = _drop_repeated_logs(parts.logs)
    if repeated:
        parts.warnings.append(f"{format_count(repeated, 'repeated log record')} ignored")
    return _make_tree(trace_id, parts, rejections, file)


def _drop_repeated_logs(logs: Sequence[LogRecord]) -> tuple[list[LogRecord], int]:
    """Drop log records that were exported again, and count them; without a time none is known."""
    kept: list[LogRecord] = []
    seen: set[tuple[str | None, str, int, str]] = set()
    for log in logs:
        key = (log.span_id, log.event.name, log.event.time, repr(log.event.payload))
        if not log.event.time or key not in seen:
            kept.append(log)
        seen.add(key)
    return kept, len(logs) - len(kept)


def merge_trees(first: SpanTree, second: SpanTree) -> SpanTree:
    """Merge two recordings of one trace; spans in both are taken from the first.

    If the files say other things of a span, the trace is ``incomplete``: which of them is true is
    not known.
    """
    spans = {span.id: span for span in first.spans}
    spans |= {span.id: span for span in second.spans if span.id not in spans}
    logged = {log.span_id for log in first.logs}
    conflict = _find_conflict(spans, second, first.file)
    twice = format_span_count(len(first.spans) + len(second.spans) - len(spans))
    repetition = "" if conflict else _format_repetition(first.file, second.file, twice)
    parts = _TraceParts(
        spans=spans,
        logs=[*first.logs, *(log for log in second.logs if log.span_id not in logged)],
        warnings=[*first.warnings, *filter(None, [repetition])],
    )
    whole = _make_tree(first.id, parts, second.warnings, first.file)
    return replace(
        whole,
        line=first.line,
        eval_case_id=first.eval_case_id or second.eval_case_id,
        incomplete=first.incomplete or conflict,
    )


def _find_conflict(spans: Mapping[str, Span], second: SpanTree, file: str) -> str:
    """Name the files that say other things of a span; empty if none do."""
    number = sum(_read_content(each) != _read_content(spans[each.id]) for each in second.spans)
    if not number:
        return ""
    have = "has the same id" if number == 1 else "have the same ids"
    return (
        f"{format_span_count(number)} of {second.file} {have} as in {file}, but other content; "
        "remove one of the files, or record again"
    )


def _read_content(span: Span) -> tuple[object, ...]:
    """Return what a span records, without what a collector may add."""
    return (span.name, span.parent_id, span.start, span.attributes, span.failed, span.events)


def _make_tree(trace_id: str, parts: _TraceParts, rejections: Sequence[str], file: str) -> SpanTree:
    named = (where for span in parts.spans.values() for where in (span.attributes, span.resource))
    eval_case_id = find_identifier(named, semconv.EVAL_CASE_ID)
    resource = next((span.resource for span in parts.spans.values()), {})
    for orphan, warning in _find_parent_cycles(parts.spans):
        parts.spans[orphan] = replace(parts.spans[orphan], parent_id=None)
        parts.warnings.append(warning)
    return SpanTree(
        id=trace_id,
        spans=tuple(sorted(parts.spans.values(), key=lambda span: (span.start, span.id))),
        logs=tuple(parts.logs),
        warnings=(
            *parts.warnings,
            *rejections,
            *_get_text(resource, semconv.WARNINGS).splitlines(),
        ),
        file=file,
        eval_case_id=eval_case_id,
        asked=_get_text(resource, semconv.ASKED),
        printed_answer=_find_text(parts.spans.values(), semconv.PRINTED_ANSWER) or "",
        printed=_find_text(parts.spans.values(), semconv.PRINTED),
        recorded_run=_get_text(resource, semconv.RECORDED_RUN),
        incomplete=_get_text(resource, semconv.INCOMPLETE),
        replayed=bool(_get_text(resource, semconv.REPLAYED)),
    )


def _find_text(spans: Iterable[Span], name: str) -> str | None:
    found = (span.attributes.get(name) for span in spans)
    return next((each for each in found if isinstance(each, str)), None)


def _get_text(resource: Mapping[str, Json], name: str) -> str:
    value = resource.get(name)
    return value if isinstance(value, str) else ""


def _find_parent_cycles(spans: dict[str, Span]) -> Iterator[tuple[str, str]]:
    """Yield the id of a span in each parent cycle that must lose its parent, with a warning."""
    settled: set[str] = set()
    for start in spans.values():
        path: dict[str, Span] = {}
        span: Span | None = start
        while span is not None and span.id not in settled and span.id not in path:
            path[span.id] = span
            span = spans.get(span.parent_id) if span.parent_id is not None else None
        if span is not None and span.id in path:
            yield _format_parent_cycle(list(path.values())[list(path).index(span.id) :])
        settled.update(path)


def _format_parent_cycle(cycle: list[Span]) -> tuple[str, str]:
    if len(cycle) == 1:
        name = cycle[0].id
        return name, f"span {name} names itself as parent; treated as a root"
    first = min(cycle, key=lambda span: (span.start, span.id))
    return first.id, f"parent cycle through {len(cycle)} spans broken at {first.id}"


def _format_repetition(file: str, repeated_in: str, spans: str) -> str:
    if file == repeated_in:
        return f"{file} was read twice: {spans} ignored"
    return f"{spans} of {repeated_in} ignored: also in {file}"


def format_span_count(count: int) -> str:
    """Format a number of spans: ``1 span``, ``2 spans``."""
    return "1 span" if count == 1 else f"{count} spans"
