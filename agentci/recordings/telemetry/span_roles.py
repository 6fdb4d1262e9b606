"""Finds the roles of spans: where turns begin, and the logical model calls.

A framework's span around a provider's span is one model call, not two.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from agentci.recordings.telemetry.messages import (
    SpanMessages,
    extract_text,
    extract_tool_calls,
    has_content,
    has_fallback_content,
)
from agentci.recordings.telemetry.span_views import ModelCallUsage, SpanView
from agentci.recordings.telemetry.spans import OperationKind

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
        input=_choose_messages([view.input for view in views]),
        output=_choose_messages([view.output for view in views]),
        model=_find_first(views, lambda view: view.request_model)
        or _find_first(views, lambda view: view.response_model),
        usage=_find_first(views, lambda view: view.usage),
        cost_usd=_find_first(views, lambda view: view.cost_usd),
        finish_reasons=_find_first(views, lambda view: view.finish_reasons) or (),
    )


def _choose_messages(lists: Sequence[SpanMessages]) -> SpanMessages:
    return next(filter(has_content, lists), None) or next(filter(None, lists), ())


def _find_first(views: Sequence[SpanView], read: Callable[[SpanView], T | None]) -> T | None:
    return next((value for view in views if (value := read(view))), None)
