"""What a type of evaluators is: an entry model, and what makes evaluators of such entries."""

from collections.abc import Callable
from typing import Any, Generic, TypeGuard, TypeVar

from msgspec import Struct

from agentci.errors import InputError
from agentci.evaluators.context import Surroundings
from agentci.evaluators.evaluator import Evaluator
from agentci.evaluators.evaluator_plugin import ForeignEvaluator
from agentci.evaluators.fields import Entry
from agentci.model.values import replace

E = TypeVar("E", bound=Entry)


class EvaluatorType(Struct, Generic[E], frozen=True, kw_only=True):
    """How entries of one type are read, and what becomes of them.

    Attributes:
        entry: its fields; from it come the JSON Schema, the messages and the documents.
        build: makes the evaluator; raises InputError where its surroundings do.
    """

    entry: type[E]
    build: Callable[[E, Surroundings], Evaluator]


def is_type(found: object) -> TypeGuard[EvaluatorType[Any]]:
    """Whether what a package brings can be held to what it should be."""
    return isinstance(found, EvaluatorType) and _is_entry(found.entry) and callable(found.build)


def foreign_type(found: EvaluatorType[E], *, title: str) -> EvaluatorType[E]:
    """A type that another package brings, whose faults are told as those of ``title``."""

    def build(entry: E, surroundings: Surroundings) -> Evaluator:
        try:
            return ForeignEvaluator(found.build(entry, surroundings), title=title)
        except InputError:
            raise
        except Exception as error:
            raise InputError.of(
                f"{title} does not work: {type(error).__name__}: {error}",
                hint="tell the authors of that package",
            ) from error

    return replace(found, build=build)


def _is_entry(model: object) -> bool:
    return isinstance(model, type) and issubclass(model, Entry)
