"""Conversations: each turn is evaluated, then the whole conversation, as AgentV 4 does."""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from agentci._util.text.format import format_count
from agentci._util.text.javascript import stringify_json
from agentci.errors import EvaluatorError
from agentci.evaluators.agentv.agentv_evaluator import AgentvEvaluator
from agentci.evaluators.agentv.findings import (
    ASSISTANT,
    extract_candidate_answer,
    get_agentv_case,
    get_recorded_run,
)
from agentci.evaluators.evaluator import Definition, Facts
from agentci.model.case import AgentvCase, Case, Expectation
from agentci.model.requests import EvaluatorIdentity, Judgement, Prerequisite, Response, Task
from agentci.model.trace import Message, Transcript
from agentci.model.values import JsonObject, replace

USER, SYSTEM = "user", "system"

Round: TypeAlias = tuple[Message, ...]


class ConversationTurn(Struct, frozen=True, kw_only=True):
    """The input and the expected messages of one turn, as written."""

    input_messages: tuple[JsonObject, ...]
    expected_messages: tuple[JsonObject, ...]


class Conversation(Struct, frozen=True, kw_only=True):
    """A conversation of an eval file.

    Attributes:
        preamble: messages before the first turn.
        window: how many of the latest rounds an evaluator of a turn sees; None for all.
    """

    preamble: tuple[JsonObject, ...]
    turns: tuple[ConversationTurn, ...]
    window: int | None = None

    @property
    def first_input(self) -> tuple[JsonObject, ...]:
        """The input of the first turn, with the preamble."""
        first = self.turns[0].input_messages if self.turns else ()
        return (*self.preamble, *first)


class ConversationEvaluator(Struct, frozen=True, kw_only=True):
    """An evaluator of one turn or of the whole conversation.

    Attributes:
        turn: index from 0; None for the conversation, whose response is the text of all messages.
    """

    identity: EvaluatorIdentity
    evaluator: AgentvEvaluator
    conversation: Conversation
    turn: int | None

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The prerequisites of the evaluator."""
        return self.evaluator.needs

    @property
    def definition(self) -> Definition:
        """The definition of the evaluator, and the part of the conversation that it scores."""
        return {
            **self.evaluator.definition,
            "turn": self.turn,
            "window": None if self.turn is None else self.conversation.window,
        }

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return what the evaluator reads of its part of the conversation."""
        agentv_case = get_agentv_case(expectation)
        preamble = self.conversation.preamble
        rounds: tuple[Round, ...] = ((),) * len(self.conversation.turns)
        part = self._make_part(agentv_case, rounds)
        return {
            "turns": [len(rounds), _count_answers(preamble)],
            # The conversation is also the response to evaluate.
            "input": part.input_messages if self.turn is None else None,
            "part": self.evaluator.read_expectation(Expectation(agentv_case=part)),
        }

    def ask(self, case: Case) -> Task:
        """Have the evaluator score its part of the run.

        Raises:
            EvaluatorError: the run and the conversation differ in their number of turns.
        """
        agentv_case, transcript = get_recorded_run(case)
        rounds = _select_rounds(self.conversation, transcript)
        part = self._make_part(agentv_case, rounds)
        if self.turn is None:
            text = "\n\n".join(map(_format_message, part.input_messages))
            recorded = replace(transcript, answer=text)
        else:
            answers = (each for each in rounds[self.turn] if each.role not in (USER, SYSTEM))
            recorded = Transcript(
                messages=tuple(answers), tool_calls_recorded=transcript.tool_calls_recorded
            )
        return self.evaluator.ask(replace(case, agentv_case=part, transcript=recorded))

    def _make_part(self, agentv_case: AgentvCase, rounds: tuple[Round, ...]) -> AgentvCase:
        """Make the case of the turn or of the conversation."""
        if self.turn is None:
            history = tuple(_iterate_history(self.conversation, rounds))
            return replace(agentv_case, input_messages=history, expected_messages=())
        history = tuple(_iterate_history(self.conversation, rounds[: self.turn + 1]))
        return replace(
            agentv_case,
            id=f"{agentv_case.id}/turn-{self.turn + 1}",
            input_messages=tuple(_apply_window(history, self.conversation.window)),
            expected_messages=self.conversation.turns[self.turn].expected_messages,
        )

    def read(self, response: Response) -> Judgement:
        """Return the evaluator's judgement."""
        return self.evaluator.read(response)


def split_rounds(transcript: Transcript) -> tuple[Round, ...]:
    """Split a run into turns; a user message after a response begins a new turn.

    In a run without user messages, each assistant message with content ends a turn.
    """
    has_users = any(message.role == USER for message in transcript.messages)
    begin = _begins_with_user if has_users else _begins_after_answer
    rounds: list[list[Message]] = []
    for message in transcript.messages:
        if not rounds or begin(message, rounds[-1]):
            rounds.append([])
        rounds[-1].append(message)
    return tuple(map(tuple, rounds))


def _begins_with_user(message: Message, before: list[Message]) -> bool:
    return message.role == USER and any(each.role not in (USER, SYSTEM) for each in before)


def _begins_after_answer(message: Message, before: list[Message]) -> bool:
    return message.role == ASSISTANT and any(
        each.role == ASSISTANT and each.content is not None for each in before
    )


def _select_rounds(conversation: Conversation, transcript: Transcript) -> tuple[Round, ...]:
    """Return the rounds that are turns of ``conversation``, without those of its preamble."""
    rounds = split_rounds(transcript)
    preamble_answers = _count_answers(conversation.preamble)
    if len(rounds) == len(conversation.turns) + preamble_answers:
        return rounds[preamble_answers:]
    if len(rounds) != len(conversation.turns):
        raise EvaluatorError(
            f"the recorded run has {format_count(len(rounds), 'turn')}, but the conversation has"
            f" {len(conversation.turns)}"
        )
    return rounds


def _count_answers(messages: tuple[JsonObject, ...]) -> int:
    return sum(message.get("role") == ASSISTANT for message in messages)


def _iterate_history(conversation: Conversation, rounds: tuple[Round, ...]) -> Iterator[JsonObject]:
    """Yield all messages up to the response of the last of ``rounds``."""
    yield from conversation.preamble
    for turn, messages in zip(conversation.turns, rounds, strict=False):
        yield from turn.input_messages
        answer = extract_candidate_answer(Transcript(messages=messages))
        yield {"role": ASSISTANT, "content": answer}


def _apply_window(history: tuple[JsonObject, ...], window: int | None) -> Iterator[JsonObject]:
    if window is None:
        yield from history
        return
    yield from (each for each in history if each["role"] == SYSTEM)
    yield from [each for each in history if each["role"] != SYSTEM][-2 * window :]


def _format_message(message: JsonObject) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else stringify_json(content)
    return f"{message['role']}: {text}"
