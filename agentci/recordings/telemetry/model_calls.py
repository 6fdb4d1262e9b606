"""Logical model calls: a framework's span around a provider's span is one call, not two."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from agentci.recordings.telemetry.message import Messages, is_captured
from agentci.recordings.telemetry.normalize import Usage, View
from agentci.recordings.telemetry.turn_roots import Node

T = TypeVar("T")


class Call(Struct, frozen=True, kw_only=True):
    """One call of a model.

    Attributes:
        id: the outermost span.
        start, end: nanoseconds, over all its spans.
        delegated: made on behalf of a tool, by a sub-agent say.
        model: the requested one, else the one that answered.
    """

    id: str
    start: int
    end: int
    delegated: bool
    input: Messages
    output: Messages
    model: str | None
    usage: Usage | None
    finish_reasons: tuple[str, ...]


def calls_of(members: Sequence[Node]) -> tuple[Call, ...]:
    """The model calls among spans that stand parents first, by start and end."""
    nodes = [node for node in members if node.view.kind == "inference"]
    leaves: Counter[Node] = Counter()
    inner = set(nodes)
    for node in reversed(nodes):
        leaves[node] = leaves[node] or 1
        if node.call_above is not None:
            leaves[node.call_above] += leaves[node]
            inner.discard(node.call_above)
    return in_order(_call(_chain(node, leaves)) for node in nodes if node in inner)


def in_order(calls: Iterable[Call]) -> tuple[Call, ...]:
    """Calls by start and end."""
    return tuple(sorted(calls, key=lambda call: (call.start, call.end)))


def _chain(leaf: Node, leaves: Counter[Node]) -> list[Node]:
    """A leaf and the spans that wrap it and nothing else."""
    chain = [leaf]
    while (wrapper := chain[-1].call_above) is not None and leaves[wrapper] == 1:
        chain.append(wrapper)
    return chain


def _call(chain: Sequence[Node]) -> Call:
    views = [node.view for node in chain]
    return Call(
        id=views[-1].span.id,
        start=min(view.span.start for view in views),
        end=max(view.span.end for view in views),
        delegated=chain[0].delegated,
        input=_messages([view.input for view in views]),
        output=_messages([view.output for view in views]),
        model=_first(views, lambda view: view.request_model)
        or _first(views, lambda view: view.response_model),
        usage=_first(views, lambda view: view.usage),
        finish_reasons=_first(views, lambda view: view.finish_reasons) or (),
    )


def _messages(lists: Sequence[Messages]) -> Messages:
    return next(filter(is_captured, lists), None) or next(filter(None, lists), ())


def _first(views: Sequence[View], read: Callable[[View], T | None]) -> T | None:
    return next((value for view in views if (value := read(view))), None)
