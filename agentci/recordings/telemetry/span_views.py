"""Normalizes each span of a trace to one view, and finds its role.

Roles are where turns begin, and the logical model calls. A framework's span around a provider's
span is one model call, not two.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

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
    extract_text,
    extract_tool_calls,
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
    """Return the kind that the first convention states; "none" only if no convention states one."""
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
    """Whether a tool failed by one of its sources; None if none says so and some do not know."""
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


AGENT_KINDS: Final[frozenset[OperationKind]] = frozenset({"agent", "workflow"})


class SpanNode(Struct, frozen=True, kw_only=True, eq=False):
    """A span and its position in the trace.

    Attributes:
        turn_root: the nearest turn root: the span itself or an ancestor.
        under_agent: whether an agent, a workflow or a tool is among its ancestors.
        delegated: whether a tool is among its ancestors.
        enclosing_call: the nearest model call above, unless an agent, workflow or tool is between.
        enclosing_tool: the nearest tool above, unless an agent, workflow or model call is between.
    """

    view: SpanView
    turn_root: SpanView
    under_agent: bool = False
    delegated: bool = False
    enclosing_call: "SpanNode | None" = None
    enclosing_tool: "SpanNode | None" = None


class TurnSpans(Struct, frozen=True, kw_only=True):
    """A turn root and the spans that belong to it, parents before their children."""

    root: SpanView
    members: tuple[SpanNode, ...]

    @property
    def is_agentic(self) -> bool:
        """Whether the root is an agent or a workflow, and not only the root of a trace."""
        return self.root.kind in AGENT_KINDS

    @property
    def is_turn(self) -> bool:
        """Whether the spans contain enough for a turn."""
        kinds = {node.view.kind for node in self.members}
        if not self.is_agentic:
            return "inference" in kinds
        return not kinds.isdisjoint({"inference", "tool"}) or _has_messages_or_failed(self.root)


def group_spans_by_root(views: Sequence[SpanView]) -> tuple[TurnSpans, ...]:
    """Group the spans of a trace by turn root, depth first."""
    found: defaultdict[str, list[SpanNode]] = defaultdict(list)
    for node in _walk_spans(views):
        found[node.turn_root.span.id].append(node)
    return tuple(
        TurnSpans(root=members[0].turn_root, members=tuple(members)) for members in found.values()
    )


def find_parentless_views(views: Sequence[SpanView]) -> list[SpanView]:
    """Return the spans without a parent in the trace."""
    known = {view.span.id for view in views}
    return [view for view in views if view.span.parent_id not in known]


def _walk_spans(views: Sequence[SpanView]) -> Iterator[SpanNode]:
    children: defaultdict[str, list[SpanView]] = defaultdict(list)
    for view in views:
        if view.span.parent_id is not None:
            children[view.span.parent_id].append(view)
    ahead = [SpanNode(view=view, turn_root=view) for view in reversed(find_parentless_views(views))]
    while ahead:
        node = ahead.pop()
        yield node
        ahead.extend(_make_child_node(node, view) for view in reversed(children[node.view.span.id]))


def _make_child_node(parent: SpanNode, view: SpanView) -> SpanNode:
    above = parent.view.kind
    in_agent = above in AGENT_KINDS
    is_anchor = view.kind in AGENT_KINDS and not (parent.under_agent or in_agent or above == "tool")
    return SpanNode(
        view=view,
        turn_root=view if is_anchor else parent.turn_root,
        under_agent=parent.under_agent or in_agent or above == "tool",
        delegated=parent.delegated or above == "tool",
        enclosing_call=_find_nearest(parent, parent.enclosing_call, "inference", "tool"),
        enclosing_tool=_find_nearest(parent, parent.enclosing_tool, "tool", "inference"),
    )


def _find_nearest(
    parent: SpanNode, farther: SpanNode | None, kind: OperationKind, barrier: OperationKind
) -> SpanNode | None:
    if parent.view.kind == kind:
        return parent
    is_barrier = parent.view.kind == barrier or parent.view.kind in AGENT_KINDS
    return None if is_barrier else farther


def _has_messages_or_failed(anchor: SpanView) -> bool:
    lists = (anchor.input, anchor.output)
    return (
        anchor.span.failed or any(map(has_content, lists)) or any(map(has_fallback_content, lists))
    )


T = TypeVar("T")


class ModelCall(Struct, frozen=True, kw_only=True):
    """One call of a model.

    Attributes:
        id: id of the outermost span.
        start, end: nanoseconds since 1970, over all its spans.
        delegated: whether it was made inside a tool, for example by a sub-agent.
        model: the requested model, else the one that responded.
    """

    id: str
    start: int
    end: int
    delegated: bool
    input: SpanMessages
    output: SpanMessages
    model: str | None
    usage: ModelCallUsage | None
    cost_usd: float | None
    finish_reasons: tuple[str, ...]


def find_model_calls(members: Sequence[SpanNode]) -> tuple[ModelCall, ...]:
    """Find the model calls among spans ordered parents first; sorted by start and end."""
    nodes = [node for node in members if node.view.kind == "inference"]
    leaves: Counter[SpanNode] = Counter()
    inner = set(nodes)
    for node in reversed(nodes):
        leaves[node] = leaves[node] or 1
        if node.enclosing_call is not None:
            leaves[node.enclosing_call] += leaves[node]
            inner.discard(node.enclosing_call)
    chains = [_find_wrapper_chain(node, leaves) for node in nodes if node in inner]
    return sort_model_calls(map(_make_model_call, _merge_same_responses(chains)))


def sort_model_calls(calls: Iterable[ModelCall]) -> tuple[ModelCall, ...]:
    """Sort calls by start, then end."""
    return tuple(sorted(calls, key=lambda call: (call.start, call.end)))


def _find_wrapper_chain(leaf: SpanNode, leaves: Counter[SpanNode]) -> list[SpanNode]:
    """Return a leaf span and the spans that wrap only it."""
    chain = [leaf]
    while (wrapper := chain[-1].enclosing_call) is not None and leaves[wrapper] == 1:
        chain.append(wrapper)
    return chain


def _merge_same_responses(chains: Iterable[list[SpanNode]]) -> list[list[SpanNode]]:
    """Merge the spans of calls that two instrumentations recorded side by side.

    They have the same response id at the same time. The id alone may be that of a test server,
    which always returns the same.
    """
    merged: list[list[SpanNode]] = []
    by_response: defaultdict[str, list[list[SpanNode]]] = defaultdict(list)
    for chain in chains:
        response_id = _find_first([node.view for node in chain], lambda view: view.response_id)
        same = by_response[response_id] if response_id is not None else []
        other = next((one for one in same if _are_one_call(one[0].view, chain[0].view)), None)
        if other is None:
            same.append(chain)
            merged.append(chain)
        else:
            other.extend(chain)
    return merged


def _are_one_call(one: SpanView, other: SpanView) -> bool:
    overlap = one.span.start < other.span.end and other.span.start < one.span.end
    outputs = [list(extract_tool_calls(view.output)) for view in (one, other) if view.output]
    texts = {extract_text(view.output) for view in (one, other) if view.output}
    return overlap and len(texts) <= 1 and len({len(calls) for calls in outputs}) <= 1


def _make_model_call(chain: Sequence[SpanNode]) -> ModelCall:
    views = [node.view for node in chain]
    return ModelCall(
        id=views[-1].span.id,
        start=min(view.span.start for view in views),
        end=max(view.span.end for view in views),
        delegated=chain[0].delegated,
        input=_choose_call_messages([view.input for view in views]),
        output=_choose_call_messages([view.output for view in views]),
        model=_find_first(views, lambda view: view.request_model)
        or _find_first(views, lambda view: view.response_model),
        usage=_find_first(views, lambda view: view.usage),
        cost_usd=_find_first(views, lambda view: view.cost_usd),
        finish_reasons=_find_first(views, lambda view: view.finish_reasons) or (),
    )


def _choose_call_messages(lists: Sequence[SpanMessages]) -> SpanMessages:
    return next(filter(has_content, lists), None) or next(filter(None, lists), ())


def _find_first(views: Sequence[SpanView], read: Callable[[SpanView], T | None]) -> T | None:
    for view in views:
        if value := read(view):
            return value
    return None
