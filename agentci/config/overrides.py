"""What comes to a config from outside: options of the command line, and the files around it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.config.rules import find_metric_problem
from agentci.model.choices import MatchType
from agentci.model.json import JsonObject
from agentci.model.problem import Place, Problem
from agentci.model.program import LocalProgram, RemoteProgram

if TYPE_CHECKING:
    from agentci.evaluators.evaluator_type import EvaluatorType, TextFile


class ProgramResolver(Protocol):
    """What knows which programs there are."""

    @property
    def executors(self) -> Collection[str]:
        """Names of what runs programs."""
        ...

    @property
    def folder(self) -> str:
        """Absolute path of that of the config, where programs that judge are run."""
        ...

    def type_named(self, name: str) -> "EvaluatorType[Any] | None":
        """The type of evaluators that another package brings under ``name``.

        Raises:
            InputError: it is broken.
        """
        ...

    def find(self, named: str, place: Place) -> LocalProgram:
        """Find the program whose path is named at ``place``.

        Raises:
            InputError: it is missing, out of bounds, or cannot be run.
        """
        ...

    def read(self, named: str, place: Place) -> "TextFile":
        """Read the file whose path is named at ``place``.

        Raises:
            InputError: it is missing, out of bounds, or no text.
        """
        ...

    def complete(self, program: RemoteProgram, place_of: Callable[[str], Place]) -> RemoteProgram:
        """Fill in what an entry, whose fields are at ``place_of``, leaves to the program's source.

        Raises:
            InputError: there is no such source, or no such place in it.
        """
        ...


class Overrides(Struct, frozen=True, kw_only=True):
    """What is to be judged by, and how, whatever a config says.

    Attributes:
        metrics: built-in metrics to judge by, beside the config or without one; they take the
            place of entries of the same names.
        threshold, trajectory_match_type: as in agentevals 0.11.0 for ``metrics``, or where there
            are none for all built-in evaluators; never for programs.
        judge_model: as in ``Judges``.
        only: names of the evaluators to keep; empty keeps all.
    """

    metrics: tuple[str, ...] = ()
    threshold: float | None = None
    trajectory_match_type: MatchType | None = None
    judge_model: str = ""
    only: tuple[str, ...] = ()

    @property
    def fields(self) -> JsonObject:
        """The fields that are given, by their names in entries."""
        fields: JsonObject = {
            "threshold": self.threshold,
            "trajectory_match_type": self.trajectory_match_type,
        }
        return {name: value for name, value in fields.items() if value is not None}


def find_metric_option_problems(metrics: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with the metrics of the command line."""
    for metric in dict.fromkeys(metrics):
        if (problem := find_metric_problem(metric)) is not None:
            yield problem
        if metrics.count(metric) > 1:
            yield Problem(message=f"--metric {metric} is given twice", hint="give it once")


def find_only_option_problems(only: Sequence[str], names: Sequence[str]) -> Iterator[Problem]:
    """Names of evaluators to run alone that are none of ``names``, of all that there are."""
    for name in dict.fromkeys(only):
        if name not in names:
            yield Problem(
                message=f"there is no evaluator {quote_name(name)} to run alone (--only)",
                hint=suggest_name(name, names) or f"there is {join_with_or(names)}",
            )
