"""Runs of tools: a framework's span around those of an MCP client and server is one run."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from agentci.model.json import Json
from agentci.recordings.telemetry.json_input import read_value
from agentci.recordings.telemetry.normalize import View
from agentci.recordings.telemetry.turn_roots import Node


class Run(Struct, frozen=True, kw_only=True):
    """One run of a tool, as its spans tell.

    Attributes:
        span_id, start: of the outermost span.
        duration: nanoseconds, of the outermost span.
        is_guessed: ``name`` comes from the span's name, as no span names the tool.
    """

    span_id: str
    start: int
    duration: int
    name: str
    is_guessed: bool
    id: str | None
    arguments: Json
    result: Json
    failed: bool


def runs_of(members: Iterable[Node]) -> tuple[Run, ...]:
    """The runs among spans that stand parents first, by start."""
    outermost: dict[Node, Node] = {}
    found: dict[Node, list[View]] = {}
    for node in members:
        if node.view.kind == "tool":
            above = node.tool_above
            outer = outermost[above] if above is not None and _is_same(above, node) else node
            outermost[node] = outer
            found.setdefault(outer, []).append(node.view)
    return tuple(sorted(map(_run, found.values()), key=lambda run: (run.start, run.span_id)))


def _is_same(outer: Node, inner: Node) -> bool:
    one, other = outer.view.tool, inner.view.tool
    return (one.name is not None and one.name == other.name) or (
        one.id is not None and one.id == other.id
    )


def _run(views: Sequence[View]) -> Run:
    outer, facts = views[0].span, [view.tool for view in views]
    name = next((fact.name for fact in facts if fact.name), None)
    return Run(
        span_id=outer.id,
        start=outer.start,
        duration=outer.duration,
        name=name or _guessed(outer.name),
        is_guessed=name is None,
        id=next((fact.id for fact in facts if fact.id), None),
        arguments=_value(fact.arguments for fact in facts),
        result=_value(fact.result for fact in facts),
        failed=any(view.span.failed for view in views),
    )


def _value(recorded: Iterable[Json]) -> Json:
    """The first that is there."""
    return read_value(next((one for one in recorded if one is not None), None))


def _guessed(span_name: str) -> str:
    words = span_name.split(maxsplit=2)
    return words[1] if span_name.startswith("execute_tool") and len(words) > 1 else span_name
