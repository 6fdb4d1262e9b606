"""The interface of an evaluator: its needs, its request, and how it reads the response."""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeGuard, TypeVar

from agentci._util.text.patterns import matches_any
from agentci.evaluators.definition import Definition, Facts
from agentci.model.case import Case, Expectation
from agentci.model.requests import (
    ConstantJudgement,
    EvaluatorIdentity,
    ExecutionRequest,
    Judgement,
    Prerequisite,
    Request,
    RequiredVariables,
    Response,
)

R = TypeVar("R")
N = TypeVar("N")


def check_response(response: object, expected: type[R]) -> R:
    """Return a response of the type that belongs to the request.

    Raises:
        TypeError: if it is of another type, which is a bug of the engine.
    """
    if not isinstance(response, expected):
        raise TypeError(f"expected a {expected.__name__}, got a {type(response).__name__}")
    return response


def extract_judgement(response: Response) -> Judgement:
    """Return the judgement of a ``ConstantJudgement``."""
    return check_response(response, ConstantJudgement).judgement


class Evaluator(Protocol):
    """Two pure steps around work that an engine does: make a request, read the response."""

    @property
    def identity(self) -> EvaluatorIdentity:
        """The evaluator as reports show it."""

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """What must be ready before a request: programs, judges, services and variables."""

    def ask(self, case: Case) -> Request:
        """Return the request that evaluates ``case``."""

    def read(self, response: Response) -> Judgement:
        """Convert a response to a judgement.

        Raises:
            EvaluatorError: if the response violates the protocol.
        """


class ComparableEvaluator(Evaluator, Protocol):
    """An evaluator that states what its results depend on, for fingerprints.

    Checks of two runs are compared if ``definition`` and what ``read_expectation`` returns are
    equal.
    """

    @property
    def definition(self) -> Definition:
        """All that decides its results besides the case, by the keys of configs."""

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return all that ``ask`` uses of the expectation of a case, and no more."""


def is_comparable(evaluator: Evaluator) -> TypeGuard[ComparableEvaluator]:
    """Return whether an evaluator states what its results depend on."""
    return hasattr(evaluator, "read_expectation")


def covers_case(evaluator: Evaluator, case_id: str, eval_case_id: str | None = None) -> bool:
    """Return whether an evaluator is for a case; one without patterns of ids is for all.

    Args:
        eval_case_id: id of the eval case; None if there is none.
    """
    by_case: Mapping[str, Evaluator] | None = getattr(evaluator, "by_case", None)
    if by_case is not None:
        return eval_case_id in by_case
    patterns: tuple[str, ...] = getattr(evaluator, "cases", ())
    ids = (case_id, case_id if eval_case_id is None else eval_case_id)
    return not patterns or any(matches_any(patterns, each) for each in ids)


def find_required_variables(
    identity: EvaluatorIdentity, run: ExecutionRequest
) -> tuple[RequiredVariables, ...]:
    """Return what an evaluator needs for the variables of the program that it runs."""
    if not (run.variables or run.cache_dirs):
        return ()
    return (
        RequiredVariables(
            names=run.variables,
            cache_dirs=run.cache_dirs,
            name=identity.name,
            place=identity.place,
        ),
    )


def collect_needs(evaluators: Iterable[Evaluator], kind: type[N]) -> tuple[N, ...]:
    """Collect the needs of one kind from all evaluators, each once."""
    distinct = {id(each): each for each in evaluators}.values()
    needs = (need for each in distinct for need in each.needs)
    return tuple(dict.fromkeys(need for need in needs if isinstance(need, kind)))
