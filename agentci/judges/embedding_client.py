"""Has texts compared by the vectors that a model makes of them."""

from collections.abc import Callable
from typing import Protocol

from agentci.judges.embeddings import cosine_in
from agentci.judges.judge import NO_RECORDS, VERDICT_SECONDS
from agentci.judges.replay import REPLAY_ONLY, Records, unrecorded
from agentci.model.embedding import CompareEmbeddings, Likeness
from agentci.model.judging import ModelReply


class Embedder(Protocol):
    """Asks for embeddings, from any number of threads."""

    def embed(self, request: CompareEmbeddings, *, until: float) -> ModelReply:
        """Ask once; the text of the reply is the cosine.

        Args:
            until: as for askers.

        Raises:
            EvaluatorError: there is none.
        """
        ...


class Comparer:
    """Carries out ``CompareEmbeddings``, from any number of threads.

    Args:
        clock: seconds from any fixed point on.
    """

    def __init__(self, embedder: Embedder, *, clock: Callable[[], float]) -> None:
        self._embedder = embedder
        self._clock = clock

    def compare(self, request: CompareEmbeddings, records: Records = NO_RECORDS) -> Likeness:
        """Ask, unless it is known.

        Args:
            records: taken before anybody is asked.

        Raises:
            EvaluatorError: there are no two vectors that can be compared.
            SkippedError: nobody can be asked here.
        """
        with records.alone(0):
            known = records.find(0)
            if known is not None and (value := cosine_in(known)) is not None:
                return Likeness(cosine=value, reply=known, is_recorded=True)
            if request.panel.replay == "only":
                raise unrecorded(REPLAY_ONLY)
            reply = self._embedder.embed(request, until=self._clock() + VERDICT_SECONDS)
            records.keep(0, reply)
            return Likeness(cosine=float(reply.text), reply=reply)
