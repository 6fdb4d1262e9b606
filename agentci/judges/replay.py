"""Verdicts with the replies that gave them, and where those of earlier runs are found."""

from contextlib import AbstractContextManager, nullcontext
from typing import Final, NoReturn, Protocol

from msgspec import Struct

from agentci.errors import UnrecordedError
from agentci.model.embedding import CompareEmbeddings
from agentci.model.judging import ModelReply, ModelSettings, Question
from agentci.model.ruling import Verdict

REPLAY_ONLY: Final = "with `replay: only`"
OFFLINE: Final = "with --offline"


class Told(Struct, frozen=True, kw_only=True):
    """A verdict, and the reply that gave it, in this run or an earlier one."""

    verdict: Verdict
    reply: ModelReply
    is_recorded: bool = False


class Records(Protocol):
    """The replies to one question that gave verdicts, counted from 0."""

    def alone(self, number: int) -> AbstractContextManager[object]:
        """Have nobody else look for the same one until it is kept."""
        ...

    def find(self, number: int) -> ModelReply | None:
        """One that is known already; None where there is none."""
        ...

    def keep(self, number: int, reply: ModelReply) -> None:
        """Take one for later runs."""
        ...

    def hear(self, reply: ModelReply) -> None:
        """Take note of any reply, whether it gives a verdict or not."""
        ...


class NoRecords:
    """Nothing is known, and nothing is kept."""

    def alone(self, number: int) -> AbstractContextManager[object]:
        """Wait for nobody."""
        del number
        return nullcontext()

    def find(self, number: int) -> None:
        """Nothing."""

    def keep(self, number: int, reply: ModelReply) -> None:
        """Do nothing."""

    def hear(self, reply: ModelReply) -> None:
        """Do nothing."""


class OfflineAsker:
    """Asks nobody."""

    def ask(self, question: Question, settings: ModelSettings, *, until: float) -> NoReturn:
        """Say that nothing is asked.

        Raises:
            UnrecordedError: always.
        """
        del question, settings, until
        raise unrecorded(OFFLINE)

    def embed(self, request: CompareEmbeddings, *, until: float) -> NoReturn:
        """Say the same.

        Raises:
            UnrecordedError: always.
        """
        del request, until
        raise unrecorded(OFFLINE)


def unrecorded(why: str) -> UnrecordedError:
    """What is wrong where a reply is missing and nobody may be asked, and on whose say."""
    return UnrecordedError(f"no reply to this question is recorded, and {why} no model is asked")
