"""What every evaluator is, whatever dialect it was written in."""

from dataclasses import dataclass
from typing import Protocol

from agentci.model.case import Case
from agentci.model.exchange import Reply, Request
from agentci.model.judgement import Judgement
from agentci.model.place import Place
from agentci.model.program import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What reports show of an evaluator.

    Attributes:
        name: unique in its config.
        type: the ``type`` of its entry: ``code``, ``builtin``.
        bar: what has to be reached, in words.
        required: False makes it advisory.
        place: its entry in the config.
        needs_golden: it compares with golden cases, and has nothing to say without.
        weight: how much its score counts in the score of its case.
    """

    name: str
    type: str
    bar: str
    threshold: float | None
    required: bool
    place: Place
    needs_golden: bool = False
    weight: float = 1.0


class Evaluator(Protocol):
    """Two pure steps around something that an engine does."""

    @property
    def identity(self) -> Identity:
        """What reports show of it."""
        ...

    @property
    def needs(self) -> tuple[Wanted, ...]:
        """The programs that have to be there before it is asked."""
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
