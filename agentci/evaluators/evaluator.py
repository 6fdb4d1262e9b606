"""The interface of an evaluator: what it needs, what it asks for, and how it reads the response."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from agentci.model.case import Case
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.requests import ConstantJudgement, Prerequisite, Request, Response


def extract_judgement(reply: Response) -> Judgement:
    """The judgement that was made."""
    if not isinstance(reply, ConstantJudgement):
        raise TypeError(f"nothing was asked for, and {type(reply).__name__} came")
    return reply.judgement


N = TypeVar("N")


class Evaluator(Protocol):
    """Two pure steps around something that an engine does."""

    @property
    def identity(self) -> EvaluatorIdentity:
        """What reports show of it."""
        ...

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """What has to be there before it is asked: programs, panels and services."""
        ...

    def ask(self, case: Case) -> Request:
        """Say what has to be done to judge ``case``."""
        ...

    def read(self, reply: Response) -> Judgement:
        """Judge by what came back.

        Raises:
            EvaluatorError: the reply is off protocol.
        """
        ...


def collect_needs(evaluators: Iterable[Evaluator], kind: type[N]) -> tuple[N, ...]:
    """All that evaluators need of one kind, each once."""
    distinct = {id(each): each for each in evaluators}.values()
    needs = (need for each in distinct for need in each.needs)
    return tuple(dict.fromkeys(need for need in needs if isinstance(need, kind)))
