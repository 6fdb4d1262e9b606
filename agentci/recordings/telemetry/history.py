"""Joins traces by history: later model calls repeat the messages of earlier ones."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from msgspec import Struct

from agentci.recordings.telemetry import messages
from agentci.recordings.telemetry.messages import SpanMessage, SpanMessages
from agentci.recordings.telemetry.model_calls import ModelCall


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
    """Map the traces that surely continue another trace to the first trace of theirs.

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
