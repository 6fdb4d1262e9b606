"""Builds the turns of a run, and the run of a message list, from messages and tool calls."""

from collections.abc import Collection
from typing import Final

from msgspec import Struct, field

from agentci._util.text.format import format_count
from agentci.model.trace import ModelStep, SubagentRun, ToolCall, ToolResponse, Turn
from agentci.model.values import Json, replace
from agentci.recordings.json_documents import DocumentFormatError
from agentci.recordings.telemetry.json_input import parse_int64
from agentci.recordings.transcripts.reader import (
    TranscriptRun,
    UsageSum,
    as_text,
    join_text,
    parse_arguments,
    read_output,
    sum_costs,
)

NO_FACTS: Final = ModelStep()
MAX_WARNINGS: Final = 5


class _CallDraft(Struct):
    call: ToolCall
    response: ToolResponse | None = None
    failed: bool | None = None


class _TextDraft(Struct):
    text: str
    message_id: str | None
    calls_before: int


class _TurnDraft(Struct):
    question: str | None
    calls: list[_CallDraft] = field(default_factory=list)
    texts: list[_TextDraft] = field(default_factory=list)
    steps: list[ModelStep] = field(default_factory=list)


class TurnBuilder:
    """Collects turns: each starts with a text of the user, and ends before the next.

    Attributes:
        lost: signs that a tool call was not read.
    """

    def __init__(self) -> None:
        self._turns: list[_TurnDraft] = []
        self._calls: dict[str, _CallDraft] = {}
        self._is_open = False
        self._next_step: ModelStep | None = None
        self._step_key: str | None = None
        self._is_in_step = False
        self._names: set[str] = set()
        self.lost: list[str] = []

    def start_turn(self, question: str | None) -> None:
        """Start a turn with what the user wrote; None if the format does not record it."""
        self._turns.append(_TurnDraft(question=question))
        self._is_open = True
        self._next_step = self._step_key = None
        self._is_in_step = False

    def end_turn(self) -> None:
        """End the turn: what follows belongs to a new one."""
        self._is_open = False
        self._is_in_step = False

    def drop_idle_turn(self) -> None:
        """Remove the last turn if the agent did nothing in it."""
        if self._turns and not self._turns[-1].calls and not self._turns[-1].texts:
            self._turns.pop()
            self._is_open = False

    def start_step(self, step: ModelStep = NO_FACTS, *, key: str | None = None) -> None:
        """Note that a reply of the model follows.

        Args:
            key: the same for all records of one reply; the last tells its tokens.
        """
        steps = self._turns[-1].steps if self._turns else []
        if key is not None and key == self._step_key and steps:
            steps[-1], self._is_in_step = step, True
            return
        self._step_key, self._is_in_step, self._next_step = key, True, step
        if self._is_open:
            self._current()

    def continue_step(self) -> None:
        """Note that a part of a reply follows, which starts one if none is going on."""
        if not self._is_in_step:
            self.start_step()

    def end_step(self) -> None:
        """Note that the model's reply is complete, as it gets the results of tools."""
        self._is_in_step = False

    def measure_step(self, step: ModelStep) -> None:
        """Replace the tokens and the cost of the reply that is going on."""
        if self._is_in_step and self._next_step is not None:
            self._next_step = step
        elif self._is_in_step:
            self._turns[-1].steps[-1] = step

    def add_text(self, text: Json, *, message_id: str | None = None) -> None:
        """Add a text of the agent; texts of one message are joined unless a call is between."""
        if not isinstance(text, str) or not text.strip():
            return
        turn = self._current()
        last = turn.texts[-1] if turn.texts else None
        if (
            last is not None
            and message_id is not None
            and last.message_id == message_id
            and last.calls_before == len(turn.calls)
        ):
            last.text += f"\n{text}"
        else:
            turn.texts.append(
                _TextDraft(text=text, message_id=message_id, calls_before=len(turn.calls))
            )

    def add_call(self, name: Json, args: Json, call_id: Json = None) -> None:
        """Add a tool call, unless it repeats one that has no result yet.

        Args:
            args: as recorded; JSON in a string is parsed.

        Raises:
            DocumentFormatError: if it has no name.
        """
        if not isinstance(name, str) or not name:
            raise DocumentFormatError("a tool call has no name")
        turn = self._current()
        own_id = as_text(call_id)
        step = len(turn.steps) - 1 if self._is_in_step else None
        call = ToolCall(name=name, args=parse_arguments(args), id=own_id, step=step)
        draft = _CallDraft(call=call)
        if own_id is not None:
            before = self._calls.get(own_id)
            if (
                before is not None
                and before.response is None
                and (before.call.name, before.call.args) == (call.name, call.args)
            ):
                return
            self._calls[own_id] = draft
        turn.calls.append(draft)
        self._names.add(name)

    def replace_call(self, call_id: str, name: Json, args: Json) -> bool:
        """Update a call that has no result yet; return whether there is one with this id."""
        draft = self._calls.get(call_id)
        if draft is None or draft.response is not None or draft.call.name != name:
            return False
        draft.call = replace(draft.call, args=parse_arguments(args))
        return True

    def add_result(
        self, call_id: Json, output: Json, *, failed: bool | None = None, name: str | None = None
    ) -> None:
        """Add the result of a tool call, which is found by its id, else by name and position.

        Args:
            failed: whether the tool failed; None if the recording does not say so.
        """
        draft = self._find_call(call_id, name)
        if draft is None:
            shown = call_id if isinstance(call_id, str) else name or "unknown"
            self.lost.append(f"a tool result (`{shown[:80]}`) belongs to no tool call")
            return
        draft.response = ToolResponse(
            name=draft.call.name, output=read_output(output), id=draft.call.id, failed=bool(failed)
        )
        draft.failed = failed

    def time_call(self, call_id: str, start: Json, end: Json) -> None:
        """Note when a call started and ended, in milliseconds since 1970."""
        draft, began, ended = self._calls.get(call_id), parse_int64(start), parse_int64(end)
        if draft is not None and began is not None and ended is not None:
            draft.call = replace(
                draft.call, start=began * 1_000_000, duration_ms=max(ended - began, 0)
            )

    @property
    def call_names(self) -> Collection[str]:
        """The names of all tools that were called."""
        return self._names

    def is_waiting(self, name: str) -> bool:
        """Return whether a call of this tool in the last turn has no result."""
        return self._find_call(None, name) is not None

    def has_result(self, call_id: str) -> bool:
        """Return whether the call with this id has a result."""
        draft = self._calls.get(call_id)
        return draft is not None and draft.response is not None

    def _find_call(self, call_id: Json, name: str | None) -> _CallDraft | None:
        if isinstance(call_id, str) and call_id:
            return self._calls.get(call_id)
        waiting = [
            each
            for turn in self._turns[-1:]
            for each in turn.calls
            if each.response is None and name in (None, each.call.name)
        ]
        return waiting[0] if waiting else None

    def _current(self) -> _TurnDraft:
        if not self._is_open:
            ahead = self._next_step, self._step_key, self._is_in_step
            self.start_turn(None)
            self._next_step, self._step_key, self._is_in_step = ahead
        turn = self._turns[-1]
        if self._next_step is not None:
            turn.steps.append(self._next_step)
            self._next_step = None
        return turn

    def build(self) -> tuple[Turn, ...]:
        """Return the turns."""
        return tuple(_make_turn(draft, index) for index, draft in enumerate(self._turns, start=1))


def _make_turn(draft: _TurnDraft, number: int) -> Turn:
    last = draft.texts[-1] if draft.texts else None
    answer = last if last is not None and last.calls_before == len(draft.calls) else None
    return Turn(
        id=str(number),
        user_text=draft.question or "",
        user_text_recorded=draft.question is not None,
        answer_parts=() if answer is None else (answer.text,),
        tool_calls=tuple(replace(each.call, failed=each.failed) for each in draft.calls),
        tool_responses=tuple(
            replace(each.response, call_index=index)
            for index, each in enumerate(draft.calls)
            if each.response is not None
        ),
        intermediate_texts=tuple(each.text for each in draft.texts if each is not answer),
        model_steps=tuple(draft.steps),
    )


class MessageListBuilder:
    """The turns, tokens, costs and models of one message list, and of its sub-agents.

    Attributes:
        name: of a sub-agent; None if it is not recorded.
    """

    def __init__(self) -> None:
        self.turns = TurnBuilder()
        self.usage = UsageSum()
        self._costs: list[float | None] = []
        self._models: set[str] = set()
        self._subagents: dict[str, MessageListBuilder] = {}
        self.name: str | None = None

    def subagent(self, call_id: str, name: str | None) -> "MessageListBuilder":
        """Return the builder of the sub-agent that a tool call started; note its name."""
        found = self._subagents.setdefault(call_id, MessageListBuilder())
        found.name = found.name or name
        return found

    def add_question(self, content: Json) -> None:
        """Start a turn with the content of a user message; images and sound have no text."""
        self.turns.start_turn(join_text(content) or "")

    def add_model(self, name: Json) -> None:
        """Note the model of a message."""
        if isinstance(name, str) and name:
            self._models.add(name)

    def add_cost(self, cost: float | None) -> None:
        """Add the cost of a reply, in US dollars; None if it was not recorded."""
        self._costs.append(cost)

    def build(self, line: int, run_id: str | None = None) -> TranscriptRun:
        """Return the run."""
        return TranscriptRun(
            id=run_id,
            line=line,
            turns=self.turns.build(),
            usage=self.usage.total,
            models=tuple(sorted(self._models)),
            cost_usd=sum_costs(self._costs),
            lost=tuple(self.turns.lost),
            subagents=tuple(
                SubagentRun(name=inner.name, call_id=call_id, turns=inner.turns.build())
                for call_id, inner in self._subagents.items()
            ),
        )


def summarize_warnings(warnings: list[str]) -> tuple[str, ...]:
    """Return the first warnings, and how many others there are."""
    unique = list(dict.fromkeys(warnings))
    if len(unique) <= MAX_WARNINGS:
        return tuple(unique)
    more = format_count(len(unique) - MAX_WARNINGS, "other warning")
    return (*unique[:MAX_WARNINGS], f"and {more} about this run")
