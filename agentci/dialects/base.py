"""What every evaluator is, whatever dialect it was written in."""

from typing import Protocol

from agentci.model.case import Case
from agentci.model.exchange import Need, Reply, Request
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement


class Evaluator(Protocol):
    """Two pure steps around something that an engine does."""

    @property
    def identity(self) -> Identity:
        """What reports show of it."""
        ...

    @property
    def needs(self) -> tuple[Need, ...]:
        """The programs and the panels that have to be there before it is asked."""
        ...

    def ask(self, case: Case) -> Request:
        """Say what has to be done to judge ``case``."""
        ...

    def read(self, reply: Reply) -> Judgement:
        """Judge by what came back.

        Raises:
            EvaluatorError: the reply is off protocol.
        """
        ...
