"""Finds where turns begin: the agents, workflows and roots to which the spans of a trace belong."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci.recordings.telemetry.messages import has_content, has_fallback_content
from agentci.recordings.telemetry.span_views import SpanView
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
