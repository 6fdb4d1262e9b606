"""Where turns begin: the agents, workflows and roots to which all spans of a trace belong."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci.recordings.telemetry.message import is_captured, is_overlooked
from agentci.recordings.telemetry.normalize import View
from agentci.recordings.telemetry.span_kinds import Kind

AGENTIC: Final[frozenset[Kind]] = frozenset({"agent", "workflow"})


class Node(Struct, frozen=True, kw_only=True, eq=False):
    """A span and what stands above it.

    Attributes:
        anchor: the nearest anchor above or at it.
        under_agent: an agent, a workflow or a tool is among its ancestors.
        delegated: a tool is among its ancestors.
        call_above: the nearest model call above, unless an agent, workflow or tool is between.
        tool_above: the nearest tool above, unless an agent, workflow or model call is between.
    """

    view: View
    anchor: View
    under_agent: bool = False
    delegated: bool = False
    call_above: "Node | None" = None
    tool_above: "Node | None" = None


class Family(Struct, frozen=True, kw_only=True):
    """An anchor and the spans that belong to it, parents before their children."""

    anchor: View
    members: tuple[Node, ...]

    @property
    def is_agentic(self) -> bool:
        """Whether an agent or a workflow anchors it, and not just the root of a trace."""
        return self.anchor.kind in AGENTIC

    @property
    def is_turn(self) -> bool:
        """Whether there is enough in it for a turn."""
        kinds = {node.view.kind for node in self.members}
        if not self.is_agentic:
            return "inference" in kinds
        return not kinds.isdisjoint({"inference", "tool"}) or _tells(self.anchor)


def families(views: Sequence[View]) -> tuple[Family, ...]:
    """The spans of a trace by anchor, in the order of a walk from its roots."""
    found: defaultdict[str, list[Node]] = defaultdict(list)
    for node in _walk(views):
        found[node.anchor.span.id].append(node)
    return tuple(
        Family(anchor=members[0].anchor, members=tuple(members)) for members in found.values()
    )


def roots(views: Sequence[View]) -> list[View]:
    """The spans without a parent in the trace."""
    known = {view.span.id for view in views}
    return [view for view in views if view.span.parent_id not in known]


def _walk(views: Sequence[View]) -> Iterator[Node]:
    children: defaultdict[str, list[View]] = defaultdict(list)
    for view in views:
        if view.span.parent_id is not None:
            children[view.span.parent_id].append(view)
    ahead = [Node(view=view, anchor=view) for view in reversed(roots(views))]
    while ahead:
        node = ahead.pop()
        yield node
        ahead.extend(_below(node, view) for view in reversed(children[node.view.span.id]))


def _below(parent: Node, view: View) -> Node:
    above = parent.view.kind
    in_agent = above in AGENTIC
    is_anchor = view.kind in AGENTIC and not (parent.under_agent or in_agent or above == "tool")
    return Node(
        view=view,
        anchor=view if is_anchor else parent.anchor,
        under_agent=parent.under_agent or in_agent or above == "tool",
        delegated=parent.delegated or above == "tool",
        call_above=_nearest(parent, parent.call_above, "inference", "tool"),
        tool_above=_nearest(parent, parent.tool_above, "tool", "inference"),
    )


def _nearest(parent: Node, farther: Node | None, wanted: Kind, barrier: Kind) -> Node | None:
    if parent.view.kind == wanted:
        return parent
    is_barrier = parent.view.kind == barrier or parent.view.kind in AGENTIC
    return None if is_barrier else farther


def _tells(anchor: View) -> bool:
    """Whether an agent's own span has messages, or failed."""
    lists = (anchor.input, anchor.output)
    return anchor.span.failed or any(map(is_captured, lists)) or any(map(is_overlooked, lists))
