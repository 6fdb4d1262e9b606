"""Evaluator types: how config entries become evaluators, including types from plugins."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeGuard, TypeVar

from msgspec import Struct

from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.evaluator import (
    Definition,
    Evaluator,
    Facts,
    define_entry,
    define_expectation,
    define_program,
)
from agentci.evaluators.fields import Entry
from agentci.evaluators.judge_config import JudgeSettings, define_judge
from agentci.model.case import Case, Expectation
from agentci.model.judges import RequiredJudge
from agentci.model.program import LocalProgram, RemoteProgram, RequiredProgram
from agentci.model.requests import EvaluatorIdentity, Judgement, Prerequisite, Request, Response
from agentci.model.values import Place, replace

REPORT_TO_AUTHORS: Final = "report this to the authors of the plugin"


class LocateProgram(Protocol):
    """A function that finds programs."""

    def __call__(self, named: str, field: str = "path") -> LocalProgram:
        """Find the program at the path ``named``, which is the value of ``field`` in the entry.

        Raises:
            InputError: if it is missing, outside the allowed folders or not runnable.
        """


class TextFile(Struct, frozen=True, kw_only=True):
    """A text file of the user.

    Attributes:
        name: its name as shown to the user.
    """

    name: str
    text: str


class EvaluatorContext(Struct, frozen=True, kw_only=True):
    """What a type needs besides the entry to build an evaluator.

    Attributes:
        place: the entry's place in its config.
        find_place: returns the place of one of the entry's fields, or of the entry if it lacks the
            field.
        locate: finds the program at a path given in the entry.
        read: reads a file, given its path and the name of the field with the path; raises
            InputError if the file is missing, outside the allowed folders or not text.
        complete: fills in what the entry of a remote program leaves to its source; raises
            InputError if the source or the program in it does not exist.
        judges: judge settings of the config, for types that use a judge model.
        turn_mismatch_fails: whether missing or unexpected turns fail a case by default.
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
    """An evaluator from a plugin, checked for the types that it returns.

    It is defined by its entry, its needs and the files that it read, and may read the whole
    expectation.

    Args:
        texts: the text files that it read.
        title: name of its type in messages.

    Raises:
        TypeError: if it is not an evaluator.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        entry: Entry,
        texts: Sequence[str] = (),
        *,
        title: str,
    ) -> None:
        self.identity: EvaluatorIdentity = _check_type(
            evaluator.identity, EvaluatorIdentity, "identity"
        )
        self.needs: tuple[Prerequisite, ...] = _check_type(evaluator.needs, tuple, "needs")
        for each in self.needs:
            _check_type(each, Prerequisite, "needs")
        self.definition: Definition = define_entry(
            entry, needs=[_define_need(each) for each in self.needs], texts=[*texts]
        )
        self._evaluator = evaluator
        self._title = title

    def read_expectation(self, expectation: Expectation) -> Facts:
        """See ``ComparableEvaluator``."""
        return define_expectation(expectation)

    def ask(self, case: Case) -> Request:
        """See :class:`Evaluator`."""
        return self._call("ask", Request, lambda: self._evaluator.ask(case))

    def read(self, response: Response) -> Judgement:
        """See :class:`Evaluator`."""
        return self._call("read", Judgement, lambda: self._evaluator.read(response))

    def _call(self, method: str, expected: object, call: Callable[[], T]) -> T:
        try:
            return _check_type(call(), expected, method)
        except EvaluatorError:
            raise
        except Exception as error:
            raise EvaluatorError(
                f"{self._title} failed: {type(error).__name__}: {error}; {REPORT_TO_AUTHORS}"
            ) from error


def _define_need(need: Prerequisite) -> Facts:
    if isinstance(need, RequiredProgram):
        return define_program(need.program)
    return define_judge(need.judge) if isinstance(need, RequiredJudge) else None


def _check_type(found: T, expected: object, name: str) -> T:
    if not isinstance(found, expected):  # type: ignore[arg-type]  # (a class or a union)
        raise TypeError(f"`{name}` returned a {type(found).__name__}")
    return found


E = TypeVar("E", bound=Entry)


class EvaluatorType(Struct, Generic[E], frozen=True, kw_only=True):
    """How entries of one type are read, and how evaluators are built from them.

    Attributes:
        entry: the model of the entry; its fields define the JSON Schema, messages and reference
            docs.
        build: builds the evaluator; raises InputError if a function of the context does. For
            agentci's own types it is a ``ComparableEvaluator``; ``wrap_plugin_type`` makes one
            of a plugin's evaluator.
    """

    entry: type[E]
    build: Callable[[E, EvaluatorContext], Evaluator]


def is_evaluator_type(found: object) -> TypeGuard[EvaluatorType[Any]]:
    """Return whether an object from a plugin is a valid evaluator type."""
    return (
        isinstance(found, EvaluatorType) and _is_entry_model(found.entry) and callable(found.build)
    )


def wrap_plugin_type(found: EvaluatorType[E], *, title: str) -> EvaluatorType[E]:
    """Wrap a type from a plugin so that its errors are reported under ``title``."""

    def build(entry: E, context: EvaluatorContext) -> Evaluator:
        texts: list[str] = []

        def read(path: str, field: str) -> TextFile:
            file = context.read(path, field)
            texts.append(file.text)
            return file

        try:
            evaluator = found.build(entry, replace(context, read=read))
            return PluginEvaluator(evaluator, entry, texts, title=title)
        except InputError:
            raise
        except Exception as error:
            raise InputError.from_message(
                f"{title} failed: {type(error).__name__}: {error}", hint=REPORT_TO_AUTHORS
            ) from error

    return replace(found, build=build)


def _is_entry_model(model: object) -> bool:
    return isinstance(model, type) and issubclass(model, Entry)
