"""Normalizes each span of a trace to one view, whichever conventions recorded it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci.model.values import Json, replace
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions.registry import (
    MESSAGE_ATTRIBUTES,
    Convention,
    find_conventions,
    load_reader,
)
from agentci.recordings.telemetry.json_input import (
    parse_finite_float,
    parse_int64,
    parse_json_or_text,
)
from agentci.recordings.telemetry.messages import (
    MAX_MESSAGES_CHARS,
    SpanMessages,
    exceeds_messages_limit,
    has_content,
    has_fallback_content,
    has_unread_parts,
)
from agentci.recordings.telemetry.spans import (
    OperationKind,
    Span,
    SpanEvent,
    SpanReading,
    SpanTree,
    classify_span,
)


class ModelCallUsage(Struct, frozen=True, kw_only=True):
    """Tokens of one model call; None for a counter that was not recorded."""

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None


class ToolSpanData(Struct, frozen=True, kw_only=True):
    """What a tool span records of the call; None for a field that is missing."""

    name: str | None = None
    id: str | None = None
    arguments: Json = None
    result: Json = None
    failed: bool | None = False


NO_TOOL_DATA: Final = ToolSpanData()


class SpanView(Struct, frozen=True, kw_only=True):
    """The data of a span, merged from all its sources.

    Attributes:
        conventions: those that recorded it.
        input, output: messages to and from the model; empty if they were not captured.
        usage: None if neither input nor output tokens were counted.
        cost_usd: of a model call, in US dollars; None if not recorded.
    """

    span: Span
    kind: OperationKind
    conventions: Sequence[Convention]
    input: SpanMessages
    output: SpanMessages
    request_model: str | None
    response_model: str | None
    response_id: str | None
    usage: ModelCallUsage | None
    cost_usd: float | None
    finish_reasons: tuple[str, ...]
    tool: ToolSpanData


def make_span_view(span: Span, logs: Sequence[SpanEvent]) -> SpanView:
    """Merge what all conventions say about a span, including its log records, into one view."""
    conventions = find_conventions(span)
    readings = [
        reading
        for convention in conventions
        if convention.reader is not None
        for reading in load_reader(convention.reader, convention.name)(span, logs)
    ]
    kind = _choose_kind(readings)
    may_be_call = kind in ("inference", "none")
    return SpanView(
        span=span,
        kind=kind,
        conventions=conventions,
        input=_choose_messages([reading.input for reading in readings]),
        output=_choose_messages([reading.output for reading in readings]),
        request_model=_find_text(readings, semconv.REQUEST_MODEL),
        response_model=_find_text(readings, semconv.RESPONSE_MODEL),
        response_id=_find_text(readings, semconv.RESPONSE_ID) if may_be_call else None,
        usage=_find_usage(readings) if may_be_call else None,
        cost_usd=_find_cost(readings) if may_be_call else None,
        finish_reasons=_find_finish_reasons(readings) if may_be_call else (),
        tool=_make_tool_data(readings) if kind == "tool" else NO_TOOL_DATA,
    )


def _choose_kind(readings: Sequence[SpanReading]) -> OperationKind:
    """Return what the first convention says that knows; "none" only if none says anything."""
    said = [reading.kind for reading in readings if reading.kind is not None]
    known = (kind for kind in said if kind not in ("other", "none"))
    return next(known, "other" if "other" in said else "none")


def _make_tool_data(readings: Sequence[SpanReading]) -> ToolSpanData:
    return ToolSpanData(
        name=_find_text(readings, semconv.TOOL_NAME),
        id=_find_text(readings, semconv.TOOL_CALL_ID),
        arguments=_find_first_value(readings, semconv.TOOL_ARGUMENTS),
        result=_find_first_value(readings, semconv.TOOL_RESULT),
        failed=merge_failures(reading.failed for reading in readings),
    )


def merge_failures(recorded: Iterable[bool | None]) -> bool | None:
    """Whether a tool failed by one of its sources; None if none says so and one does not know."""
    known = set(recorded)
    return True if True in known else None if None in known else False


def _choose_messages(candidates: Sequence[SpanMessages]) -> SpanMessages:
    """Return the first list with content, else with fallback content, else with unread parts."""
    captured = list(filter(None, candidates))
    for is_usable in (has_content, has_fallback_content, has_unread_parts) if captured else ():
        if chosen := next(filter(is_usable, captured), None):
            return chosen
    return ()


def _find_first_value(readings: Sequence[SpanReading], name: str) -> Json:
    """Return the first non-empty value, else the first value that is not None."""
    there: Json = None
    for reading in readings:
        value = reading.values.get(name)
        if value is not None and value not in ("", []):
            return value
        there = value if there is None else there
    return there


def _find_text(readings: Sequence[SpanReading], name: str) -> str | None:
    """Return a text, or a whole number as its text (ids); other values name nothing."""
    value = _find_first_value(readings, name)
    if isinstance(value, str):
        return None if value == semconv.NOT_SPECIFIED else value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _find_usage(readings: Sequence[SpanReading]) -> ModelCallUsage | None:
    counted = ModelCallUsage(
        input=_find_token_count(readings, semconv.INPUT_TOKENS),
        output=_find_token_count(readings, semconv.OUTPUT_TOKENS),
        cache_read=_find_token_count(readings, semconv.CACHE_READ_TOKENS),
        cache_write=_find_token_count(readings, semconv.CACHE_WRITE_TOKENS),
    )
    return None if counted.input is None and counted.output is None else counted


def _find_token_count(readings: Sequence[SpanReading], name: str) -> int | None:
    count = parse_int64(_find_first_value(readings, name))
    return None if count is None else max(count, 0)


def _find_cost(readings: Sequence[SpanReading]) -> float | None:
    cost = parse_finite_float(_find_first_value(readings, semconv.COST))
    return cost if cost is not None and cost >= 0 else None


def _find_finish_reasons(readings: Sequence[SpanReading]) -> tuple[str, ...]:
    reasons = _find_first_value(readings, semconv.FINISH_REASONS)
    if isinstance(reasons, str):  # JSON, or one reason
        decoded = parse_json_or_text(reasons)
        reasons = decoded if isinstance(decoded, list) else [decoded]
    listed = reasons if isinstance(reasons, list) else []
    return tuple(reason for reason in listed if isinstance(reason, str))


def make_span_views(tree: SpanTree) -> tuple[SpanView, ...]:
    """Make a view of every span, in the order of the trace."""
    logs = _group_logs_by_span(tree)
    seen = tuple(make_span_view(span, logs.get(span.id, ())) for span in tree.spans)
    calls = any(view.kind == "inference" for view in seen)
    return seen if calls else tuple(map(_infer_model_call, seen))


def find_unread_attributes(tree: SpanTree) -> Iterator[str]:
    """Yield a warning for each message attribute that is too long to be read."""
    for span in tree.spans:
        for name, value in span.attributes.items():
            if exceeds_messages_limit(value) and name in MESSAGE_ATTRIBUTES:
                size = MAX_MESSAGES_CHARS // 2**20
                yield f"span {span.id}: {name} is longer than {size} MiB and was not read"


def _group_logs_by_span(tree: SpanTree) -> dict[str, list[SpanEvent]]:
    """Group log records by span; records without a span id go to the only model call, if any."""
    if not tree.logs:
        return {}
    calls = [span.id for span in tree.spans if classify_span(span) == "inference"]
    only_call = calls[0] if len(calls) == 1 else None
    found: defaultdict[str, list[SpanEvent]] = defaultdict(list)
    for log in tree.logs:
        owner = only_call if log.span_id is None else log.span_id
        if owner is not None:
            found[owner].append(log.event)
    return found


def _infer_model_call(seen: SpanView) -> SpanView:
    """Treat a span with a model and messages as a model call if the trace has no explicit one.

    agentevals 0.11.0 also requires an operation or a provider, and so loses the response.
    """
    has_model = bool(seen.span.attributes.get(semconv.REQUEST_MODEL))
    if seen.kind == "none" and has_model and (seen.input or seen.output):
        return replace(seen, kind="inference")
    return seen
