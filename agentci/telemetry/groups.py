"""Which traces make one conversation: by what they share, as agentevals 0.11.0 has it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentci.telemetry import semconv
from agentci.telemetry.identity import first_name
from agentci.telemetry.span import Span
from agentci.telemetry.tree import SpanTree, united

GroupBy: TypeAlias = Literal["auto", "trace", "conversation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Recordings that are judged as one.

    Attributes:
        key: what they share; the trace id where they are one trace.
        trees: by start.
    """

    key: str
    trees: tuple[SpanTree, ...]


def groups_of(
    trees: Sequence[SpanTree], *, group_by: GroupBy, multi_turn_goldens: bool
) -> tuple[Group, ...]:
    """The groups in first-seen order; what is recorded twice counts once."""
    traces = _by_trace(trees)
    keys = {trace_id: _key(_spans(parts)) for trace_id, parts in traces.items()}
    sessions = multi_turn_goldens or any(
        key is not None and key.is_session for key in keys.values()
    )
    together = group_by == "conversation" or (group_by == "auto" and sessions)
    members: dict[str, list[SpanTree]] = {}
    for trace_id, parts in traces.items():
        key = keys[trace_id] if together else None
        members.setdefault(trace_id if key is None else key.text, []).extend(parts)
    return tuple(
        Group(key=key, trees=tuple(sorted(parts, key=_start))) for key, parts in members.items()
    )


def golden_id(group: Group) -> str | None:
    """The golden case that a recording names."""
    return next((tree.golden_id for tree in group.trees if tree.golden_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    text: str
    is_session: bool


def _by_trace(trees: Iterable[SpanTree]) -> dict[str, list[SpanTree]]:
    """The recordings of each trace, of which those that share spans are made one."""
    traces: dict[str, list[SpanTree]] = {}
    for tree in trees:
        apart: list[SpanTree] = []
        whole = tree
        for part in traces.get(tree.id, ()):
            if _share_spans(part, whole):
                whole = united(part, whole)
            else:
                apart.append(part)
        traces[tree.id] = [*apart, whole]
    return traces


def _share_spans(one: SpanTree, other: SpanTree) -> bool:
    return not {span.id for span in one.spans}.isdisjoint(span.id for span in other.spans)


def _key(spans: Sequence[Span]) -> _Key | None:
    attributes, resources = [span.attributes for span in spans], [span.resource for span in spans]
    if session := first_name(resources, semconv.SESSION_NAME):
        return _Key(text=session, is_session=True)
    for name in (semconv.CONVERSATION_ID, semconv.SESSION_ID):
        if shared := first_name([*attributes, *resources], name):
            return _Key(text=shared, is_session=False)
    return None


def _spans(trees: Iterable[SpanTree]) -> list[Span]:
    return sorted(
        (span for tree in trees for span in tree.spans),
        key=lambda span: span.start,
    )


def _start(tree: SpanTree) -> tuple[int, str]:
    return tree.spans[0].start, tree.id
