"""Conversations: each turn is judged by itself, then all that was said, as AgentV 4 does it."""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from agentci._util.text.javascript import stringify
from agentci.errors import EvaluatorError
from agentci.evaluators.agentv.agentv_evaluator import Judge
from agentci.evaluators.agentv.helpers import ASSISTANT, candidate_answer_of
from agentci.evaluators.agentv.recorded import recorded
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.requests import Need, Reply, Task
from agentci.model.transcript import Message, Transcript
from agentci.model.values import replace

USER, SYSTEM = "user", "system"

Round: TypeAlias = tuple[Message, ...]


class TurnOfTalk(Struct, frozen=True, kw_only=True):
    """What the agent is asked in one turn, and what a good answer is; messages as written."""

    asked: tuple[JsonObject, ...]
    expected: tuple[JsonObject, ...]


class Talk(Struct, frozen=True, kw_only=True):
    """A conversation as an eval file has it.

    Attributes:
        opening: messages before the first turn.
        window: how many rounds evaluators of a turn are told; None for all.
    """

    opening: tuple[JsonObject, ...]
    turns: tuple[TurnOfTalk, ...]
    window: int | None = None

    @property
    def begun(self) -> tuple[JsonObject, ...]:
        """What the agent is asked at first."""
        first = self.turns[0].asked if self.turns else ()
        return (*self.opening, *first)


class TalkJudge(Struct, frozen=True, kw_only=True):
    """An evaluator of one turn, or of the conversation.

    Attributes:
        turn: counted from 0; None for the conversation, whose answer is all that was said.
    """

    identity: Identity
    judge: Judge
    talk: Talk
    turn: int | None

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the evaluator needs."""
        return self.judge.needs

    def ask(self, case: Case) -> Task:
        """Have the evaluator judge its part of the run.

        Raises:
            EvaluatorError: the run has not as many turns as the conversation.
        """
        sample, transcript = recorded(case)
        rounds = _rounds_for(self.talk, transcript)
        if self.turn is None:
            said = tuple(_history(self.talk, rounds))
            text = "\n\n".join(map(_line, said))
            return self.judge.ask(
                replace(
                    case,
                    sample=replace(sample, input_messages=said, expected_messages=()),
                    transcript=replace(transcript, answer=text),
                )
            )
        said = tuple(_history(self.talk, rounds[: self.turn + 1]))
        part = replace(
            sample,
            id=f"{sample.id}/turn-{self.turn + 1}",
            input_messages=tuple(_windowed(said, self.talk.window)),
            expected_messages=self.talk.turns[self.turn].expected,
        )
        answers = tuple(m for m in rounds[self.turn] if m.role not in (USER, SYSTEM))
        return self.judge.ask(replace(case, sample=part, transcript=Transcript(messages=answers)))

    def read(self, reply: Reply) -> Judgement:
        """What the evaluator says."""
        return self.judge.read(reply)


def rounds_of(transcript: Transcript) -> tuple[Round, ...]:
    """The turns of a run: each begins with what a user says, once there was an answer.

    A run without users has a turn for every message of the assistant that says something.
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


def _rounds_for(talk: Talk, transcript: Transcript) -> tuple[Round, ...]:
    """The rounds that are turns of ``talk``, those of its opening left out."""
    rounds = rounds_of(transcript)
    scripted = sum(message.get("role") == ASSISTANT for message in talk.opening)
    if len(rounds) == len(talk.turns) + scripted:
        return rounds[scripted:]
    if len(rounds) != len(talk.turns):
        raise EvaluatorError(
            f"the recorded output has {len(rounds)} turns, the conversation {len(talk.turns)}"
        )
    return rounds


def _history(talk: Talk, rounds: tuple[Round, ...]) -> Iterator[JsonObject]:
    """All that is said up to the answer of the last of ``rounds``."""
    yield from talk.opening
    for turn, messages in zip(talk.turns, rounds, strict=False):
        yield from turn.asked
        answer = candidate_answer_of(Transcript(messages=messages))
        yield {"role": ASSISTANT, "content": answer}


def _windowed(said: tuple[JsonObject, ...], window: int | None) -> Iterator[JsonObject]:
    if window is None:
        yield from said
        return
    yield from (each for each in said if each["role"] == SYSTEM)
    yield from [each for each in said if each["role"] != SYSTEM][-2 * window :]


def _line(message: JsonObject) -> str:
    content = message.get("content")
    told = content if isinstance(content, str) else stringify(content)
    return f"{message['role']}: {told}"
