"""Evaluator types: how config entries become evaluators, also for types from plugins."""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeGuard, TypeVar

from msgspec import Struct

from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.evaluator import Evaluator
from agentci.evaluators.fields import Entry
from agentci.evaluators.judge_config import JudgeSettings
from agentci.model.case import Case
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.problem import Place
from agentci.model.program import LocalProgram, RemoteProgram
from agentci.model.requests import Prerequisite, Request, Response
from agentci.model.values import replace


class LocateProgram(Protocol):
    """Finds programs."""

    def __call__(self, named: str, field: str = "path") -> LocalProgram:
        """The program at the path ``named``, which stands in ``field`` of the entry.

        Raises:
            InputError: it is missing, out of bounds, or nothing that can be run.
        """
        ...


class TextFile(Struct, frozen=True, kw_only=True):
    """A file of the user's.

    Attributes:
        name: as it is shown.
    """

    name: str
    text: str


class EvaluatorContext(Struct, frozen=True, kw_only=True):
    """What an entry cannot say of itself.

    Attributes:
        place: the entry in its config.
        find_place: the value of one of its fields; the entry where it has none of that name.
        locate: finds the program at a path that the entry gives.
        read: reads the file whose path stands in a field, by that path and the name of the field;
            raises InputError where it is missing, out of bounds, or no text.
        complete: fills in what the entry leaves to the source of a remote program; raises
            InputError where there is no such source, or no such place in it.
        judges: who judges, for those that ask models.
        turn_mismatch_fails: what the gate makes of missing or unexpected turns.
    """

    place: Place
    find_place: Callable[[str], Place]
    locate: LocateProgram
    read: Callable[[str, str], TextFile]
    complete: Callable[[RemoteProgram], RemoteProgram]
    judges: JudgeSettings
    turn_mismatch_fails: bool


T = TypeVar("T")


class PluginEvaluator:
    """An evaluator that another package made.

    Args:
        title: how messages call its type.

    Raises:
        TypeError: it is none.
    """

    def __init__(self, evaluator: Evaluator, *, title: str) -> None:
        self.identity: EvaluatorIdentity = _check_type(
            evaluator.identity, EvaluatorIdentity, "identity"
        )
        self.needs: tuple[Prerequisite, ...] = _check_type(evaluator.needs, tuple, "needs")
        for each in self.needs:
            _check_type(each, Prerequisite, "needs")
        self._evaluator = evaluator
        self._title = title

    def ask(self, case: Case) -> Request:
        """See :class:`Evaluator`."""
        return self._call("ask", Request, lambda: self._evaluator.ask(case))

    def read(self, reply: Response) -> Judgement:
        """See :class:`Evaluator`."""
        return self._call("read", Judgement, lambda: self._evaluator.read(reply))

    def _call(self, method: str, wanted: object, ask: Callable[[], T]) -> T:
        try:
            return _check_type(ask(), wanted, method)
        except EvaluatorError:
            raise
        except Exception as error:
            raise EvaluatorError(
                f"{self._title} does not work: {type(error).__name__}: {error};"
                " tell the authors of that package"
            ) from error


def _check_type(found: T, wanted: object, name: str) -> T:
    if not isinstance(found, wanted):  # type: ignore[arg-type]  # (a class, or a union of some)
        raise TypeError(f"`{name}` gave a {type(found).__name__}")
    return found


E = TypeVar("E", bound=Entry)


class EvaluatorType(Struct, Generic[E], frozen=True, kw_only=True):
    """How entries of one type are read, and what becomes of them.

    Attributes:
        entry: its fields; from it come the JSON Schema, the messages and the documents.
        build: makes the evaluator; raises InputError where its surroundings do.
    """

    entry: type[E]
    build: Callable[[E, EvaluatorContext], Evaluator]


def is_evaluator_type(found: object) -> TypeGuard[EvaluatorType[Any]]:
    """Whether what a package brings can be held to what it should be."""
    return (
        isinstance(found, EvaluatorType) and _is_entry_model(found.entry) and callable(found.build)
    )


def wrap_plugin_type(found: EvaluatorType[E], *, title: str) -> EvaluatorType[E]:
    """A type that another package brings, whose faults are told as those of ``title``."""

    def build(entry: E, surroundings: EvaluatorContext) -> Evaluator:
        try:
            return PluginEvaluator(found.build(entry, surroundings), title=title)
        except InputError:
            raise
        except Exception as error:
            raise InputError.from_message(
                f"{title} does not work: {type(error).__name__}: {error}",
                hint="tell the authors of that package",
            ) from error

    return replace(found, build=build)


def _is_entry_model(model: object) -> bool:
    return isinstance(model, type) and issubclass(model, Entry)
