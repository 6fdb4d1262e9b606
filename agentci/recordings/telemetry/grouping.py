"""Groups stored traces into conversations: by a shared id, else by history.

Traces are joined by history where later model calls repeat the messages of earlier ones.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias

from msgspec import Struct

from agentci.model.values import replace
from agentci.recordings.telemetry import messages, semconv
from agentci.recordings.telemetry.conventions.registry import SESSION_ATTRIBUTES
from agentci.recordings.telemetry.messages import SpanMessage, SpanMessages
from agentci.recordings.telemetry.span_views import (
    ModelCall,
    find_model_calls,
    group_spans_by_root,
    make_span_views,
    sort_model_calls,
)
from agentci.recordings.telemetry.spans import Span, SpanTree, find_identifier, merge_trees
from agentci.recordings.telemetry.stored_trace import StoredTrace, TraceSpool, load_tree


class TraceHistory(Struct, frozen=True, kw_only=True):
    """The messages of a trace that tell which trace it continues.

    Attributes:
        given: hashes of the beginnings of its first input: of one message, of two...
        returned: hash of its last input with its last output.
        requested: ids of the tool calls in its last output.
        answered: ids of the tool responses at the end of its first input.
        asks: whether its first input ends with a message of the user.
    """

    trace_id: str
    given: tuple[int, ...]
    returned: int
    requested: frozenset[str]
    answered: frozenset[str]
    asks: bool


def make_history(trace_id: str, calls: Sequence[ModelCall]) -> TraceHistory | None:
    """Make the history of a trace; None if its content was not captured."""
    if not calls or not calls[0].input:
        return None
    first, last = calls[0].input, max(calls, key=lambda call: (call.end, call.start))
    ending = _find_last_responses(first)
    return TraceHistory(
        trace_id=trace_id,
        given=tuple(_hash_beginnings(first)),
        returned=([0, *_hash_beginnings((*last.input, *last.output))])[-1],
        requested=frozenset(_find_ids(messages.extract_tool_calls(last.output))),
        answered=frozenset(_find_ids(messages.extract_tool_responses(ending))),
        asks=not ending,
    )


def join_by_history(histories: Iterable[TraceHistory], *, conversations: bool) -> Mapping[str, str]:
    """Map each trace that certainly continues another one to the first trace of both.

    It is sure if one trace only precedes, and no other continues it.

    Args:
        histories: sorted by start.
        conversations: also join a trace that asks the next question.
    """
    ended: defaultdict[int, list[TraceHistory]] = defaultdict(list)
    requests: defaultdict[str, list[TraceHistory]] = defaultdict(list)
    following: defaultdict[str, list[str]] = defaultdict(list)
    for history in histories:
        if conversations or not history.asks:
            previous = _find_previous(history, ended, requests)
            if previous is not None:
                following[previous.trace_id].append(history.trace_id)
        ended[history.returned].append(history)
        for call_id in history.requested:
            requests[call_id].append(history)
    first: dict[str, str] = {}
    for previous_id, later in following.items():
        if len(later) == 1:
            first[later[0]] = previous_id
    return {trace_id: _find_first(trace_id, first) for trace_id in first}


def _find_previous(
    history: TraceHistory,
    ended: Mapping[int, Sequence[TraceHistory]],
    requests: Mapping[str, Sequence[TraceHistory]],
) -> TraceHistory | None:
    for beginning in reversed(history.given):
        if found := ended.get(beginning):
            return found[0] if len(found) == 1 else None
    if len(history.given) > len(history.answered) or not history.answered:
        return None
    # The model keeps the history, and only the tool results are sent.
    asked = {each.trace_id: each for one in history.answered for each in requests.get(one, ())}
    return next(iter(asked.values())) if len(asked) == 1 else None


def _find_first(trace_id: str, previous: Mapping[str, str]) -> str:
    while trace_id in previous:
        trace_id = previous[trace_id]
    return trace_id


def _hash_beginnings(listed: SpanMessages) -> Iterator[int]:
    own = [_hash_message(one) for one in listed if one.role != "system"]
    return accumulate(own, lambda before, one: hash((before, one)))


def _hash_message(message: SpanMessage) -> int:
    content, other = message.content, message.fallback
    calls = content.calls or other.calls
    responses = content.responses or other.responses
    return hash(
        (
            (content.text or other.text or "").strip(),
            tuple((one.name, json.dumps(one.arguments, sort_keys=True)) for one in calls),
            tuple((one.id, json.dumps(one.value, sort_keys=True)) for one in responses),
        )
    )


def _find_last_responses(listed: SpanMessages) -> SpanMessages:
    count = next(
        (index for index, one in enumerate(reversed(listed)) if not one.is_tool_response),
        len(listed),
    )
    return listed[len(listed) - count :]


def _find_ids(
    parts: Iterable[messages.ToolCallPart | messages.ToolResponsePart],
) -> Iterator[str]:
    return (part.id for part in parts if part.id is not None)


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
        joined = _join_by_history(traces, spool, keys, conversations=conversations)
        keys |= {trace_id: _ConversationKey(text=first) for trace_id, first in joined.items()}
    members: dict[_ConversationKey, list[StoredTrace]] = {}
    for trace_id, parts in traces.items():
        key = keys.get(trace_id, _ConversationKey(text=trace_id))
        members.setdefault(replace(key, is_session=False), []).extend(parts)
    return tuple(TraceGroup(key=key.text, traces=tuple(parts)) for key, parts in members.items())


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
    keys: Mapping[str, "_ConversationKey"],
    *,
    conversations: bool,
) -> Mapping[str, str]:
    """Map traces without a key that continue another trace to the first trace of both.

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
    """What the traces of a conversation share; ``run`` sets recordings of one case apart."""

    text: str
    is_session: bool = False
    run: str = ""


def _find_conversation_keys(
    traces: Mapping[str, Sequence[StoredTrace]],
    spool: TraceSpool,
    *,
    group_by: GroupBy,
    multi_turn_eval_cases: bool,
) -> dict[str, _ConversationKey]:
    """Map trace ids to keys of conversations; empty if traces are not grouped."""
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
    return found


def _find_conversation_key(spans: Sequence[Span]) -> _ConversationKey | None:
    attributes, resources = [span.attributes for span in spans], [span.resource for span in spans]
    if session := find_identifier(resources, semconv.SESSION_NAME):
        run = find_identifier(resources, semconv.RECORDED_RUN)
        return _ConversationKey(text=session, is_session=True, run=run or "")
    for name in SESSION_ATTRIBUTES:
        if shared := find_identifier([*attributes, *resources], name):
            # Langfuse and MLflow write JSON text.
            return _ConversationKey(text=shared.strip('"') or shared, is_session=False)
    return None


def _sort_spans(trees: Iterable[SpanTree]) -> list[Span]:
    return sorted((span for tree in trees for span in tree.spans), key=lambda span: span.start)


def _tree_start(tree: SpanTree) -> tuple[int, str]:
    return tree.spans[0].start, tree.id
