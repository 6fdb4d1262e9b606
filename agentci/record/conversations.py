"""Rebuilds conversations and turns from the model calls of an agent.

A call continues a conversation if its messages start with the conversation's history; ids of tool
calls decide between equal histories. A user message after a response without tool calls begins a
turn. A turn that runs while a tool call is open, and whose question is in the arguments of that
call, is a sub-agent's. A request that is sent again before the agent goes on, such as a retry or
one of several samples, belongs to the call that it repeats: one of the replies counts.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.values import Json, JsonObject
from agentci.record.exchanges import Exchange
from agentci.record.printed_answer import contains_answer
from agentci.recordings.telemetry.messages import (
    SpanMessage,
    SpanMessages,
    ToolCallPart,
    ToolResponsePart,
    extract_tool_responses,
)

# Shorter arguments of a tool call occur in many questions.
MIN_ARGUMENT_CHARACTERS: Final = 8
_ASSISTANT: Final = "assistant"
# Fields of a request that are no part of what is asked, besides numbers.
_SETTINGS: Final = frozenset({"model", "generationConfig", "metadata", "stream_options"})
# One part of a message, in a form that clients do not change when they send it again.
HistoryPart: TypeAlias = tuple[str, str]


class CallStep(Struct, kw_only=True, eq=False):
    """One model call of a turn.

    Attributes:
        messages: what is new in the request since the call before it.
        results: results of this call's tools by position, from later requests.
        subagents: by position of the tool call, the turns that it started.
        unused: the same request with other replies, with which the agent did not go on.
    """

    exchange: Exchange
    messages: SpanMessages
    results: dict[int, ToolResponsePart]
    subagents: "dict[int, list[RebuiltTurn]]"
    unused: tuple[Exchange, ...] = ()
    next_started: int | None = None


class RebuiltTurn(Struct, kw_only=True, eq=False):
    """A turn: a question, and the model calls until its answer.

    Attributes:
        conversation: number of the conversation.
        delegated: the turns that the same tool call of another turn started; None if it is no
            sub-agent's.
    """

    conversation: int
    steps: list[CallStep]
    delegated: "list[RebuiltTurn] | None" = None

    @property
    def started(self) -> int:
        """Start of the first call in nanoseconds since 1970."""
        return self.steps[0].exchange.started

    @property
    def ended(self) -> int:
        """End of the last call, also of sub-agents, in nanoseconds since 1970."""
        return max(each.ended for step in self.steps for each in (step.exchange, *step.unused))

    @property
    def question(self) -> str:
        """What the user asked."""
        return find_question(self.steps[0].messages)


class _Conversation(Struct, kw_only=True, eq=False):
    """Turns with one history.

    Attributes:
        repeated: the conversation whose last request its first one repeats; None if there is none.
        repeated_step: with that request.
        family: number of the first one of those that repeat each other.
    """

    number: int
    family: int
    turns: list[RebuiltTurn]
    history: tuple[HistoryPart, ...] = ()
    repeated: "_Conversation | None" = None
    repeated_step: CallStep | None = None

    @property
    def last(self) -> CallStep:
        return self.turns[-1].steps[-1]

    @property
    def open_calls(self) -> tuple[ToolCallPart, ...]:
        return self.last.exchange.reply.calls

    @property
    def is_single(self) -> bool:
        """Whether it has only one model call."""
        return len(self.turns) == 1 and len(self.turns[0].steps) == 1


def rebuild_turns(
    exchanges: Iterable[Exchange],
    *,
    joins_unanswered: bool = False,
    joins_answered: bool = False,
    printed: str = "",
) -> tuple[RebuiltTurn, ...]:
    """Rebuild the turns of one case, sorted by start; those of sub-agents are inside others.

    Args:
        joins_unanswered: whether a request that is sent again after an empty answer, or instead of
            the results of tools, belongs to the same turn; else it begins a conversation.
        joins_answered: whether it does so after any answer. Of several last answers, the last one
            counts.
        printed: what the command printed; a last answer that it contains counts instead.
    """
    conversations: list[_Conversation] = []
    for exchange in _drop_retried(sorted(exchanges, key=lambda one: one.started)):
        messages = exchange.request.messages
        given = make_history(messages)
        found = _find_conversation(exchange, given, conversations)
        repeated = _find_repeated(exchange, conversations) if joins_unanswered else None
        if repeated is not None and _is_answered(repeated) and not joins_answered:
            repeated = None
        if found is not None and not (repeated and repeated.family == found.family):
            new = _find_new_messages(found, messages, given)
        else:
            found = None if repeated else _find_handover(exchange, given, conversations)
            new = find_last_question(messages)
        if found is None:
            number = len(conversations)
            found = _Conversation(
                number=number,
                family=repeated.family if repeated else number,
                turns=[],
                repeated=repeated,
                repeated_step=repeated.last if repeated else None,
            )
            conversations.append(found)
        keeps_history = exchange.request.previous or exchange.request.conversation
        before = found.history if keeps_history else ()
        _add_step(found, exchange, new)
        found.history = (*before, *given, *make_history(exchange.reply.messages))
    _assign_subagents([turn for each in conversations for turn in each.turns])
    for each in reversed(conversations):
        _join_repeated(each, printed)
    turns = (turn for each in conversations for turn in each.turns if turn.delegated is None)
    return tuple(sorted(turns, key=lambda turn: turn.started))


def _drop_retried(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Drop failed calls that the client made again."""
    later: set[tuple[HistoryPart, ...]] = set()
    left: list[Exchange] = []
    for exchange in reversed(exchanges):
        given = make_history(exchange.request.messages)
        if not exchange.failed or given not in later:
            left.append(exchange)
        later.add(given)
    return left[::-1]


def _find_conversation(
    exchange: Exchange, given: Sequence[HistoryPart], conversations: Sequence[_Conversation]
) -> _Conversation | None:
    """Return the conversation that a call continues; None if it begins one."""
    candidates = [each for each in conversations if each.last.exchange.started < exchange.started]
    request = exchange.request
    if request.previous is not None:
        return next((c for c in candidates if c.last.exchange.reply.id == request.previous), None)
    if request.conversation is not None:
        same = (c for c in candidates if _get_conversation_id(c) == request.conversation)
        return next(same, None)
    answered = list_answered_ids(drop_answered(request.messages))
    by_id = [c for c in candidates if answered & list_call_ids(c.open_calls)]
    going_on = [c for c in candidates if has_beginning(given, c.history)]
    if both := [c for c in by_id if c in going_on]:
        return _choose_longest(_prefer_trace(both, exchange.trace))
    if len(by_id) == 1:
        return by_id[0]
    fitting = [c for c in going_on if not _contradicts(c, answered)]
    found = fitting or _find_rewritten(candidates, given, answered)
    return _choose_longest(_prefer_trace(found, exchange.trace))


def _find_repeated(
    exchange: Exchange, conversations: Sequence[_Conversation]
) -> _Conversation | None:
    """Return the conversation whose last request is repeated, perhaps with other settings."""
    if exchange.request.conversation is not None:
        return None
    asked = _select_content(exchange.body)
    latest = reversed(conversations)
    return next((c for c in latest if asked == _select_content(c.last.exchange.body)), None)


def _select_content(body: JsonObject) -> JsonObject:
    """Return the body of a request without the model and settings such as the temperature."""
    return {
        name: value
        for name, value in body.items()
        if not isinstance(value, int | float) and name not in _SETTINGS
    }


def _is_answered(conversation: _Conversation) -> bool:
    return not conversation.open_calls and bool(_get_text(conversation.last.exchange))


def _get_text(exchange: Exchange) -> str:
    """Return the text of a complete reply."""
    texts = (message.content.text or "" for message in exchange.reply.messages)
    return "" if exchange.failed else "".join(texts).strip()


def _join_repeated(found: _Conversation, printed: str) -> None:
    """Join a conversation to the one whose request its first one repeats, unless both went on."""
    repeated, step = found.repeated, found.repeated_step
    if repeated is None or step is None:
        return
    turn, own = found.turns[0], found.turns[0].steps[0]
    other = next(each for each in repeated.turns if step in each.steps)
    goes_on = repeated.last is not step or bool(step.subagents)
    own_goes_on = not found.is_single or bool(own.subagents)
    if turn.delegated is not other.delegated or (goes_on and own_goes_on):
        return
    replies = (step.exchange, *step.unused, own.exchange, *own.unused)
    used = step.exchange if goes_on else own.exchange
    if not goes_on and not own_goes_on:
        used = max(replies, key=lambda each: _rank_answer(each, printed))
    if own_goes_on:
        step.results, step.subagents, step.next_started = (
            own.results,
            own.subagents,
            own.next_started,
        )
        other.steps += turn.steps[1:]
        repeated.turns += found.turns[1:]
    step.exchange = used
    unused = (each for each in replies if each is not used)
    step.unused = tuple(sorted(unused, key=lambda each: each.started))
    for each in found.turns[1:]:
        each.conversation = repeated.number
    if turn.delegated is not None:
        turn.delegated.remove(turn)
    found.turns = []


def _rank_answer(exchange: Exchange, printed: str) -> tuple[bool, bool, int]:
    """Return a key by which the answer that counts is the highest."""
    text = "" if exchange.reply.calls else _get_text(exchange)
    return bool(text), bool(text) and contains_answer(printed, text), exchange.started


def _prefer_trace(found: Sequence[_Conversation], trace: str) -> Sequence[_Conversation]:
    """Return the conversations whose last call is of a trace; all if there are none."""
    return [c for c in found if trace and c.last.exchange.trace == trace] or found


def _find_rewritten(
    candidates: Iterable[_Conversation], given: Sequence[HistoryPart], answered: frozenset[str]
) -> list[_Conversation]:
    """Return the only conversation that a request repeats, apart from the assistant's texts.

    Frameworks add reasoning to these, or shorten them.
    """
    outline = make_outline(given)
    if len(outline) == len(given):
        return []
    found = [
        each
        for each in candidates
        if has_beginning(outline, make_outline(each.history)) and not _contradicts(each, answered)
    ]
    return found if len(found) == 1 else []


def _get_conversation_id(conversation: _Conversation) -> str | None:
    return conversation.last.exchange.request.conversation


def _contradicts(conversation: _Conversation, answered: frozenset[str]) -> bool:
    """Whether a request answers other tool calls than those of the conversation."""
    requested = list_call_ids(conversation.open_calls)
    return bool(answered and requested) and answered.isdisjoint(requested)


def _choose_longest(found: Sequence[_Conversation]) -> _Conversation | None:
    """Choose the conversation with the longest history, and of these the least recent one."""
    return max(found, key=lambda c: (len(c.history), -c.last.exchange.ended), default=None)


def _find_handover(
    exchange: Exchange, given: Sequence[HistoryPart], conversations: Sequence[_Conversation]
) -> _Conversation | None:
    """Return the conversation that another agent takes over after a tool call without a result.

    Its request begins with the question, followed by user messages that describe what happened.
    """
    for each in reversed(conversations):
        first = each.turns[-1].steps[0]
        asked = make_history(find_last_question(first.exchange.request.messages))
        rest = given[len(asked) :]
        if (
            each.open_calls
            and each.last.exchange.answered <= exchange.started
            and has_beginning(given, asked)
            and all(role == "user" for role, _ in rest)
        ):
            return each
    return None


def _find_new_messages(
    found: _Conversation, messages: SpanMessages, given: Sequence[HistoryPart]
) -> SpanMessages:
    if has_beginning(given, found.history):
        return drop_beginning(messages, found.history)
    return drop_answered(messages)


def _add_step(found: _Conversation, exchange: Exchange, new: SpanMessages) -> None:
    step = CallStep(exchange=exchange, messages=new, results={}, subagents={})
    if not found.turns or (not found.open_calls and find_question(new)):
        found.turns.append(RebuiltTurn(conversation=found.number, steps=[step]))
        return
    last = found.last
    last.results = _match_results(last.exchange.reply.calls, new)
    last.next_started = exchange.started
    found.turns[-1].steps.append(step)


def _match_results(
    calls: Sequence[ToolCallPart], messages: SpanMessages
) -> dict[int, ToolResponsePart]:
    """Match results to calls: by id, else by name, else in order."""
    left = list(extract_tool_responses(messages))
    matched: dict[int, ToolResponsePart] = {}
    for rule in (_has_same_id, _has_same_name, _has_no_id):
        for index, call in enumerate(calls):
            if index in matched:
                continue
            found = next((one for one in left if rule(call, one)), None)
            if found is not None:
                matched[index] = found
                left.remove(found)
    return matched


def _has_same_id(call: ToolCallPart, result: ToolResponsePart) -> bool:
    return call.id is not None and call.id == result.id


def _has_same_name(call: ToolCallPart, result: ToolResponsePart) -> bool:
    return _has_no_id(call, result) and call.name == result.name


def _has_no_id(call: ToolCallPart, result: ToolResponsePart) -> bool:
    return call.id is None or result.id is None


def _assign_subagents(turns: Sequence[RebuiltTurn]) -> None:
    """Add turns that a tool call started to the step of that call."""
    for turn in turns:
        for other in turns:
            if other.conversation != turn.conversation:
                turn.delegated = _start_subagent(other, turn)
            if turn.delegated is not None:
                break


def _start_subagent(caller: RebuiltTurn, turn: RebuiltTurn) -> list[RebuiltTurn] | None:
    """Add a turn to the tool call that started it, and return all of that call; else None."""
    asked = "".join(turn.question.split())
    for step in caller.steps:
        until = step.next_started
        if step.exchange.answered > turn.started or (until is not None and until < turn.ended):
            continue
        for index, call in enumerate(step.exchange.reply.calls):
            if any(_asks(text, asked) for text in _iterate_texts(call.arguments)):
                started = step.subagents.setdefault(index, [])
                started.append(turn)
                return started
    return None


def _asks(argument: str, question: str) -> bool:
    text = "".join(argument.split())
    return text == question or (len(text) >= MIN_ARGUMENT_CHARACTERS and text in question)


def _iterate_texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _iterate_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_texts(inner)


# What the history of a request repeats, and what is new in it


def make_history(messages: Iterable[SpanMessage]) -> tuple[HistoryPart, ...]:
    """List what messages contain, without instructions and reasoning.

    Consecutive texts of the assistant are one: clients split and join them.
    """
    parts: list[HistoryPart] = []
    for message in messages:
        _add_parts(parts, message)
    return tuple(parts)


def _add_parts(parts: list[HistoryPart], message: SpanMessage) -> None:
    for role, text in _list_parts(message):
        if role == _ASSISTANT and parts and parts[-1][0] == role:
            text = parts.pop()[1] + text  # noqa: PLW2901 (joins the two)
        parts.append((role, text))


def make_outline(parts: Iterable[HistoryPart]) -> tuple[HistoryPart, ...]:
    """Return a history without the texts of the assistant."""
    return tuple(part for part in parts if part[0] != _ASSISTANT)


def has_beginning(history: Sequence[HistoryPart], beginning: Sequence[HistoryPart]) -> bool:
    """Return whether a history starts with a beginning that is not empty."""
    size = len(beginning)
    return 0 < size < len(history) and tuple(history[:size]) == tuple(beginning)


def drop_beginning(messages: SpanMessages, beginning: Sequence[HistoryPart]) -> SpanMessages:
    """Return the messages that come after the beginning of their history."""
    parts: list[HistoryPart] = []
    for index, message in enumerate(messages, start=1):
        _add_parts(parts, message)
        if parts == [*beginning]:
            return messages[index:]
    return messages


def find_last_question(messages: SpanMessages) -> SpanMessages:
    """Return the messages from the last group of user messages on; all if there is none."""
    end = next((i for i in reversed(range(len(messages))) if _is_question(messages[i])), None)
    if end is None:
        return messages
    start = end
    while start > 0 and _is_question(messages[start - 1]):
        start -= 1
    return messages[start:]


def drop_answered(messages: SpanMessages) -> SpanMessages:
    """Return the messages after the last one of the assistant."""
    last = [i for i, message in enumerate(messages) if message.role == _ASSISTANT]
    return messages[last[-1] + 1 :] if last else messages


def find_question(messages: SpanMessages) -> str:
    """Join the text of the user; empty if there is none."""
    return "\n".join(one.content.text or "" for one in messages if _is_question(one))


def list_answered_ids(messages: SpanMessages) -> frozenset[str]:
    """Return the ids of the tool calls whose results are in the messages."""
    return frozenset(one.id for one in extract_tool_responses(messages) if one.id)


def list_call_ids(calls: Iterable[ToolCallPart]) -> frozenset[str]:
    """Return the ids of tool calls."""
    return frozenset(call.id for call in calls if call.id)


def _is_question(message: SpanMessage) -> bool:
    return message.role == "user" and bool(message.content.text)


def _list_parts(message: SpanMessage) -> Iterator[HistoryPart]:
    if message.role == "system":
        return
    content = message.content
    for response in content.responses:
        yield "result", _normalize_value(response.value)
    if text := "".join((content.text or "").split()):
        yield message.role, text
    elif message.role == "user" and content.has_more and not content.responses:
        yield message.role, "(other content)"
    for call in content.calls:
        yield "call", f"{call.name} {_normalize_value(call.arguments or {})}"


def _normalize_value(value: Json) -> str:
    return json.dumps(value, sort_keys=True)
