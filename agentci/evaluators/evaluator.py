"""What every evaluator is, whatever dialect it was written in."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.requests import Need, Reply, Request

N = TypeVar("N")


class Evaluator(Protocol):
    """Two pure steps around something that an engine does."""

    @property
    def identity(self) -> Identity:
        """What reports show of it."""
        ...

    @property
    def needs(self) -> tuple[Need, ...]:
        """What has to be there before it is asked: programs, panels and services."""
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


def needs_of(evaluators: Iterable[Evaluator], kind: type[N]) -> tuple[N, ...]:
    """All that evaluators need of one kind, each once."""
    distinct = {id(each): each for each in evaluators}.values()
    needs = (need for each in distinct for need in each.needs)
    return tuple(dict.fromkeys(need for need in needs if isinstance(need, kind)))
