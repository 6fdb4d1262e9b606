"""Evaluators of other packages, held to what every evaluator is: their faults are theirs."""

from collections.abc import Callable
from typing import TypeVar

from agentci.errors import EvaluatorError
from agentci.evaluators.evaluator import Evaluator
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.requests import Need, Reply, Request

T = TypeVar("T")


class ForeignEvaluator:
    """An evaluator that another package made.

    Args:
        title: how messages call its type.

    Raises:
        TypeError: it is none.
    """

    def __init__(self, evaluator: Evaluator, *, title: str) -> None:
        self.identity: Identity = _checked(evaluator.identity, Identity, "identity")
        self.needs: tuple[Need, ...] = _checked(evaluator.needs, tuple, "needs")
        for each in self.needs:
            _checked(each, Need, "needs")
        self._evaluator = evaluator
        self._title = title

    def ask(self, case: Case) -> Request:
        """See :class:`Evaluator`."""
        return self._answer("ask", Request, lambda: self._evaluator.ask(case))

    def read(self, reply: Reply) -> Judgement:
        """See :class:`Evaluator`."""
        return self._answer("read", Judgement, lambda: self._evaluator.read(reply))

    def _answer(self, method: str, wanted: object, ask: Callable[[], T]) -> T:
        try:
            return _checked(ask(), wanted, method)
        except EvaluatorError:
            raise
        except Exception as error:
            raise EvaluatorError(
                f"{self._title} does not work: {type(error).__name__}: {error};"
                " tell the authors of that package"
            ) from error


def _checked(found: T, wanted: object, name: str) -> T:
    if not isinstance(found, wanted):  # type: ignore[arg-type]  # (a class, or a union of some)
        raise TypeError(f"`{name}` gave a {type(found).__name__}")
    return found
