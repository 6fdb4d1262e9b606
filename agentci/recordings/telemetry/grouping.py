"""Groups stored traces into conversations: by a shared id, else by history."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions.registry import SESSION_ATTRIBUTES
from agentci.recordings.telemetry.history import TraceHistory, join_by_history, make_history
from agentci.recordings.telemetry.model_calls import ModelCall, find_model_calls, sort_model_calls
from agentci.recordings.telemetry.span_views import make_span_views
from agentci.recordings.telemetry.spans import Span, find_identifier
from agentci.recordings.telemetry.stored_trace import StoredTrace, TraceSpool, load_tree
from agentci.recordings.telemetry.trace_tree import SpanTree, merge_trees
from agentci.recordings.telemetry.turn_roots import group_spans_by_root

GroupBy: TypeAlias = Literal["auto", "trace", "conversation"]


class TraceGroup(Struct, frozen=True, kw_only=True):
    """Traces that are evaluated as one run.

    Attributes:
        key: what the traces share (a session id, say); the trace id for a single trace.
        traces: in first-seen order of the traces, then of the files.
    """

    key: str
    traces: tuple[StoredTrace, ...]


def group_traces(
    recorded: Iterable[StoredTrace],
    spool: TraceSpool,
    *,
    group_by: GroupBy,
    multi_turn_eval_cases: bool,
) -> tuple[TraceGroup, ...]:
    """Group traces into conversations, in first-seen order."""
    traces: dict[str, list[StoredTrace]] = {}
    for stored in recorded:
        traces.setdefault(stored.id, []).append(stored)
    keys = _find_conversation_keys(
        traces, spool, group_by=group_by, multi_turn_eval_cases=multi_turn_eval_cases
    )
    if group_by != "trace":
        conversations = group_by == "conversation" or multi_turn_eval_cases
        keys |= _join_by_history(traces, spool, keys, conversations=conversations)
    members: dict[str, list[StoredTrace]] = {}
    for trace_id, parts in traces.items():
        members.setdefault(keys.get(trace_id, trace_id), []).extend(parts)
    return tuple(TraceGroup(key=key, traces=tuple(parts)) for key, parts in members.items())


def load_trees(recorded: Iterable[StoredTrace], spool: TraceSpool) -> list[SpanTree]:
    """Load the traces of a group, sorted by start; spans recorded twice count once."""
    traces: dict[str, list[SpanTree]] = {}
    for stored in recorded:
        apart: list[SpanTree] = []
        tree = load_tree(stored, spool)
        for part in traces.get(stored.id, ()):
            if not {span.id for span in part.spans}.isdisjoint(span.id for span in tree.spans):
                tree = merge_trees(part, tree)
            else:
                apart.append(part)
        traces[stored.id] = [*apart, tree]
    return sorted((tree for parts in traces.values() for tree in parts), key=_tree_start)


def find_conversation_id(trees: Sequence[SpanTree]) -> str | None:
    """Return the id that the traces of a conversation share; None if there is none."""
    key = _find_conversation_key(_sort_spans(trees))
    return None if key is None else key.text


def _join_by_history(
    traces: Mapping[str, Sequence[StoredTrace]],
    spool: TraceSpool,
    keys: Mapping[str, str],
    *,
    conversations: bool,
) -> Mapping[str, str]:
    """Map traces without a key that continue another trace to the first trace of theirs.

    Args:
        conversations: also join the questions of a conversation.
    """
    found: list[tuple[int, TraceHistory]] = []
    candidates = {
        id_: parts
        for id_, parts in traces.items()
        if id_ not in keys and (conversations or all(one.is_model_call for one in parts))
    }
    for id_, parts in candidates.items() if len(candidates) > 1 else ():
        trees = load_trees(parts, spool)
        calls = [call for tree in trees for call in _find_model_calls(tree)]
        history = make_history(id_, calls)
        if history is not None:
            found.append((_tree_start(trees[0])[0], history))
    found.sort(key=lambda pair: pair[0])
    return join_by_history((history for _, history in found), conversations=conversations)


def _find_model_calls(tree: SpanTree) -> tuple[ModelCall, ...]:
    """Find the model calls of a trace's agents, without those of their sub-agents."""
    found = group_spans_by_root(make_span_views(tree))
    calls = (call for spans in found for call in find_model_calls(spans.members))
    return sort_model_calls(call for call in calls if not call.delegated)


class _ConversationKey(Struct, frozen=True, kw_only=True):
    text: str
    is_session: bool


def _find_conversation_keys(
    traces: Mapping[str, Sequence[StoredTrace]],
    spool: TraceSpool,
    *,
    group_by: GroupBy,
    multi_turn_eval_cases: bool,
) -> dict[str, str]:
    """Map trace ids to conversation ids; empty if traces are not grouped."""
    surely = group_by == "conversation" or (group_by == "auto" and multi_turn_eval_cases)
    perhaps = group_by == "auto" and any(
        stored.may_have_session for parts in traces.values() for stored in parts
    )
    if not (surely or perhaps):
        return {}
    keys = {
        id_: _find_conversation_key(_sort_spans(load_trees(parts, spool)))
        for id_, parts in traces.items()
    }
    found = {trace_id: key for trace_id, key in keys.items() if key is not None}
    if not (surely or any(key.is_session for key in found.values())):
        return {}
    return {trace_id: key.text for trace_id, key in found.items()}


def _find_conversation_key(spans: Sequence[Span]) -> _ConversationKey | None:
    attributes, resources = [span.attributes for span in spans], [span.resource for span in spans]
    if session := find_identifier(resources, semconv.SESSION_NAME):
        return _ConversationKey(text=session, is_session=True)
    for name in SESSION_ATTRIBUTES:
        if shared := find_identifier([*attributes, *resources], name):
            # Langfuse and MLflow write JSON text.
            return _ConversationKey(text=shared.strip('"') or shared, is_session=False)
    return None


def _sort_spans(trees: Iterable[SpanTree]) -> list[Span]:
    return sorted((span for tree in trees for span in tree.spans), key=lambda span: span.start)


def _tree_start(tree: SpanTree) -> tuple[int, str]:
    return tree.spans[0].start, tree.id
