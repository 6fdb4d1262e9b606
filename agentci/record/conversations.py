"""Rebuilds conversations and turns from the model calls of an agent.

A call goes on a conversation if that one's history is the start of its own; ids of tool calls
decide between equal ones. A new message of the user after a response without tool calls begins a
turn. A turn that runs while a tool call is open, and was asked what the arguments of the call say,
is a sub-agent's.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci.model.json import Json
from agentci.record import history
from agentci.record.exchanges import Exchange
from agentci.record.history import HistoryPart
from agentci.recordings.telemetry.messages import (
    SpanMessages,
    ToolCallPart,
    ToolResponsePart,
    extract_tool_responses,
)

# Shorter arguments of a tool call are in many questions.
MIN_ARGUMENT_CHARACTERS: Final = 8


class CallStep(Struct, kw_only=True, eq=False):
    """One model call of a turn.

    Attributes:
        messages: what is new in the request since the call before it.
        results: results of this call's tools by position, from later requests.
        subagents: by position of the tool call, the turns that it started.
    """

    exchange: Exchange
    messages: SpanMessages
    results: dict[int, ToolResponsePart]
    subagents: "dict[int, list[RebuiltTurn]]"
    next_started: int | None = None


class RebuiltTurn(Struct, kw_only=True, eq=False):
    """A turn: a question, and the model calls until its answer.

    Attributes:
        conversation: number of the conversation.
        is_delegated: whether a tool call of another turn started it.
    """

    conversation: int
    steps: list[CallStep]
    is_delegated: bool = False

    @property
    def started(self) -> int:
        """Start of the first call in nanoseconds since 1970."""
        return self.steps[0].exchange.started

    @property
    def ended(self) -> int:
        """End of the last call, also of sub-agents, in nanoseconds since 1970."""
        return max(step.exchange.ended for step in self.steps)

    @property
    def question(self) -> str:
        """What the user asked."""
        return history.find_question(self.steps[0].messages)


class _Conversation(Struct, kw_only=True, eq=False):
    number: int
    turns: list[RebuiltTurn]
    history: tuple[HistoryPart, ...] = ()

    @property
    def last(self) -> CallStep:
        return self.turns[-1].steps[-1]

    @property
    def open_calls(self) -> tuple[ToolCallPart, ...]:
        return self.last.exchange.reply.calls


def rebuild_turns(exchanges: Iterable[Exchange]) -> tuple[RebuiltTurn, ...]:
    """Rebuild the turns of one case, sorted by start; those of sub-agents are inside of others."""
    conversations: list[_Conversation] = []
    for exchange in _drop_retried(sorted(exchanges, key=lambda one: one.started)):
        messages = exchange.request.messages
        given = history.make_history(messages)
        found = _find_conversation(exchange, given, conversations)
        if found is None:
            found = _find_handover(exchange, given, conversations)
            new = history.find_last_question(messages)
        else:
            new = _find_new_messages(found, messages, given)
        if found is None:
            found = _Conversation(number=len(conversations), turns=[])
            conversations.append(found)
        keeps_history = exchange.request.previous or exchange.request.conversation
        before = found.history if keeps_history else ()
        _add_step(found, exchange, new)
        found.history = (*before, *given, *history.make_history(exchange.reply.messages))
    turns = [turn for each in conversations for turn in each.turns]
    _assign_subagents(turns)
    own = (turn for turn in turns if not turn.is_delegated)
    return tuple(sorted(own, key=lambda turn: turn.started))


def _drop_retried(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Drop failed calls that the client made again."""
    later: set[tuple[HistoryPart, ...]] = set()
    left: list[Exchange] = []
    for exchange in reversed(exchanges):
        given = history.make_history(exchange.request.messages)
        if not exchange.failed or given not in later:
            left.append(exchange)
        later.add(given)
    return left[::-1]


def _find_conversation(
    exchange: Exchange, given: Sequence[HistoryPart], conversations: Sequence[_Conversation]
) -> _Conversation | None:
    """Return the conversation that a call goes on; None if it begins one."""
    candidates = [each for each in conversations if each.last.exchange.started < exchange.started]
    request = exchange.request
    if request.previous is not None:
        return next((c for c in candidates if c.last.exchange.reply.id == request.previous), None)
    if request.conversation is not None:
        same = (c for c in candidates if _get_conversation_id(c) == request.conversation)
        return next(same, None)
    answered = history.list_answered_ids(history.drop_answered(request.messages))
    by_id = [c for c in candidates if answered & history.list_call_ids(c.open_calls)]
    going_on = [c for c in candidates if history.has_beginning(given, c.history)]
    if both := [c for c in by_id if c in going_on]:
        return _choose_longest(_prefer_trace(both, exchange.trace))
    if len(by_id) == 1:
        return by_id[0]
    fitting = [c for c in going_on if not _contradicts(c, answered)]
    found = fitting or _find_rewritten(candidates, given, answered)
    return _choose_longest(_prefer_trace(found, exchange.trace))


def _prefer_trace(found: Sequence[_Conversation], trace: str) -> Sequence[_Conversation]:
    """Return the conversations whose last call is of a trace; all if there are none."""
    return [c for c in found if trace and c.last.exchange.trace == trace] or found


def _find_rewritten(
    candidates: Iterable[_Conversation], given: Sequence[HistoryPart], answered: frozenset[str]
) -> list[_Conversation]:
    """Return the only conversation that a request repeats but for the texts of the assistant.

    Frameworks add reasoning to them, or shorten them.
    """
    outline = history.make_outline(given)
    if len(outline) == len(given):
        return []
    found = [
        each
        for each in candidates
        if history.has_beginning(outline, history.make_outline(each.history))
        and not _contradicts(each, answered)
    ]
    return found if len(found) == 1 else []


def _get_conversation_id(conversation: _Conversation) -> str | None:
    return conversation.last.exchange.request.conversation


def _contradicts(conversation: _Conversation, answered: frozenset[str]) -> bool:
    """Whether a request answers other tool calls than those of the conversation."""
    requested = history.list_call_ids(conversation.open_calls)
    return bool(answered and requested) and answered.isdisjoint(requested)


def _choose_longest(found: Sequence[_Conversation]) -> _Conversation | None:
    """Choose the conversation with the longest history, of equal ones the one waiting longest."""
    return max(found, key=lambda c: (len(c.history), -c.last.exchange.ended), default=None)


def _find_handover(
    exchange: Exchange, given: Sequence[HistoryPart], conversations: Sequence[_Conversation]
) -> _Conversation | None:
    """Return the conversation that another agent takes over after a tool call without a result.

    Its request begins with the question, and then describes in the user's name what happened.
    """
    for each in reversed(conversations):
        first = each.turns[-1].steps[0]
        asked = history.make_history(history.find_last_question(first.exchange.request.messages))
        rest = given[len(asked) :]
        if (
            each.open_calls
            and each.last.exchange.answered <= exchange.started
            and history.has_beginning(given, asked)
            and all(role == "user" for role, _ in rest)
        ):
            return each
    return None


def _find_new_messages(
    found: _Conversation, messages: SpanMessages, given: Sequence[HistoryPart]
) -> SpanMessages:
    if history.has_beginning(given, found.history):
        return history.drop_beginning(messages, found.history)
    return history.drop_answered(messages)


def _add_step(found: _Conversation, exchange: Exchange, new: SpanMessages) -> None:
    step = CallStep(exchange=exchange, messages=new, results={}, subagents={})
    if not found.turns or (not found.open_calls and history.find_question(new)):
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
    """Put turns that a tool call started into the step of the call."""
    for turn in turns:
        for other in turns:
            if other.conversation != turn.conversation and _start_subagent(other, turn):
                turn.is_delegated = True
                break


def _start_subagent(caller: RebuiltTurn, turn: RebuiltTurn) -> bool:
    asked = "".join(turn.question.split())
    for step in caller.steps:
        until = step.next_started
        if step.exchange.answered > turn.started or (until is not None and until < turn.ended):
            continue
        for index, call in enumerate(step.exchange.reply.calls):
            if any(_asks(text, asked) for text in _iterate_texts(call.arguments)):
                step.subagents.setdefault(index, []).append(turn)
                return True
    return False


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
