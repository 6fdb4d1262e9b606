"""Which traces make one conversation: by what they share, as agentevals 0.11.0 has it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.ids import first_name
from agentci.recordings.telemetry.span import Span
from agentci.recordings.telemetry.stored_trace import Recorded, Spool, tree_of
from agentci.recordings.telemetry.trace_tree import SpanTree, united

GroupBy: TypeAlias = Literal["auto", "trace", "conversation"]


class Group(Struct, frozen=True, kw_only=True):
    """Recordings that are judged as one.

    Attributes:
        key: what they share; the trace id where they are one trace.
        recorded: in first-seen order of the traces, then of the files.
    """

    key: str
    recorded: tuple[Recorded, ...]


def groups_of(
    recorded: Iterable[Recorded], spool: Spool, *, group_by: GroupBy, multi_turn_goldens: bool
) -> tuple[Group, ...]:
    """The groups in first-seen order."""
    traces: dict[str, list[Recorded]] = {}
    for one in recorded:
        traces.setdefault(one.id, []).append(one)
    keys = _keys(traces, spool, group_by=group_by, multi_turn_goldens=multi_turn_goldens)
    members: dict[str, list[Recorded]] = {}
    for trace_id, parts in traces.items():
        members.setdefault(keys.get(trace_id, trace_id), []).extend(parts)
    return tuple(Group(key=key, recorded=tuple(parts)) for key, parts in members.items())


def trees_of(recorded: Iterable[Recorded], spool: Spool) -> list[SpanTree]:
    """The recordings of a group by start; what is recorded twice counts once."""
    traces: dict[str, list[SpanTree]] = {}
    for one in recorded:
        apart: list[SpanTree] = []
        whole = tree_of(one, spool)
        for part in traces.get(one.id, ()):
            if _share_spans(part, whole):
                whole = united(part, whole)
            else:
                apart.append(part)
        traces[one.id] = [*apart, whole]
    return sorted((tree for parts in traces.values() for tree in parts), key=_start)


def golden_id(trees: Iterable[SpanTree]) -> str | None:
    """The golden case that a recording names."""
    return next((tree.golden_id for tree in trees if tree.golden_id), None)


def conversation_of(trees: Sequence[SpanTree]) -> str | None:
    """What a recording shares with others of its conversation; None where it says nothing."""
    key = _key(_spans(trees))
    return None if key is None else key.text


class _Key(Struct, frozen=True, kw_only=True):
    text: str
    is_session: bool


def _keys(
    traces: Mapping[str, Sequence[Recorded]],
    spool: Spool,
    *,
    group_by: GroupBy,
    multi_turn_goldens: bool,
) -> dict[str, str]:
    """What traces share, of those that share it with others if any do."""
    surely = group_by == "conversation" or (group_by == "auto" and multi_turn_goldens)
    perhaps = group_by == "auto" and any(
        one.may_have_session for parts in traces.values() for one in parts
    )
    if not (surely or perhaps):
        return {}
    keys = {id_: _key(_spans(trees_of(parts, spool))) for id_, parts in traces.items()}
    found = {trace_id: key for trace_id, key in keys.items() if key is not None}
    if not (surely or any(key.is_session for key in found.values())):
        return {}
    return {trace_id: key.text for trace_id, key in found.items()}


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
