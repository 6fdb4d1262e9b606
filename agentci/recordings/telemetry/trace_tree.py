"""Assembles the spans of one file into traces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from agentci._util.text.format import format_count
from agentci.model.json import Json
from agentci.model.values import replace
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.spans import LogRecord, Span, find_identifier


class SpanTree(Struct, frozen=True, kw_only=True):
    """One trace of one file.

    Attributes:
        spans: sorted by start, then id; unique ids, no cycles among parents. A span whose parent is
            missing is a root.
        logs: records with messages, in the file's order, including those without a known span.
        warnings: what was repaired, and what in the file could not be used.
        file: the recording's path, as shown to the user.
        eval_case_id: id of the eval case that the recording names, from the first span in the
            file's order; a span's own attribute takes precedence over its resource's.
        asked, incomplete: as in ``Trace.asked`` and ``Trace.not_captured``, from the first resource
            of a recording by `agentci record`; else empty.
    """

    id: str
    spans: tuple[Span, ...]
    logs: tuple[LogRecord, ...]
    warnings: tuple[str, ...]
    file: str
    eval_case_id: str | None = None
    asked: str = ""
    incomplete: str = ""


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
    """Merge two recordings of one trace; spans in both are taken from the first."""
    spans = {span.id: span for span in first.spans}
    spans |= {span.id: span for span in second.spans if span.id not in spans}
    logged = {log.span_id for log in first.logs}
    twice = len(first.spans) + len(second.spans) - len(spans)
    parts = _TraceParts(
        spans=spans,
        logs=[*first.logs, *(log for log in second.logs if log.span_id not in logged)],
        warnings=[
            *first.warnings,
            _format_repetition(first.file, second.file, format_span_count(twice)),
        ],
    )
    whole = _make_tree(first.id, parts, second.warnings, first.file)
    return replace(whole, eval_case_id=first.eval_case_id or second.eval_case_id)


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
        warnings=(*parts.warnings, *rejections),
        file=file,
        eval_case_id=eval_case_id,
        asked=_get_text(resource, semconv.ASKED),
        incomplete=_get_text(resource, semconv.INCOMPLETE),
    )


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
