"""Values from outside a config: command line options and the surrounding files."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from agentci._util.child_programs import is_adk_installed
from agentci._util.text.suggest import quote_name, suggest_name
from agentci.evaluators.metrics import (
    HOSTED_METRICS,
    INSTALL_ADK,
    JUDGED_METRIC_PURPOSES,
    METRICS,
    UNSUPPORTED_METRICS,
)
from agentci.model.program import LocalProgram, RemoteProgram
from agentci.model.values import JsonObject, MatchType, Place, Problem

if TYPE_CHECKING:
    from agentci.evaluators.evaluator_type import EvaluatorType, TextFile


class ProgramResolver(Protocol):
    """Finds the programs and plugins that a config names."""

    @property
    def executors(self) -> Collection[str]:
        """Names of the available executors, which run programs."""

    @property
    def folder(self) -> str:
        """Absolute path of the config's folder, in which evaluator programs run."""

    def type_named(self, name: str) -> "EvaluatorType[Any] | None":
        """The evaluator type that a plugin provides under ``name``; None if there is none.

        Raises:
            InputError: the plugin is broken.
        """

    def find(self, named: str, place: Place) -> LocalProgram:
        """Find the program whose path is written at ``place``.

        Raises:
            InputError: it does not exist, is outside the workspace, or cannot be run.
        """

    def read(self, named: str, place: Place) -> "TextFile":
        """Read the file whose path is written at ``place``.

        Raises:
            InputError: it does not exist, is outside the workspace, or is not text.
        """

    def read_variable(self, named: str, place: Place) -> str:
        """Return the value of the environment variable that is named at ``place``; "" if not set.

        Raises:
            InputError: configs may not name it.
        """

    def complete(self, program: RemoteProgram, place_of: Callable[[str], Place]) -> RemoteProgram:
        """Fill in the fields that an entry leaves to the program's source.

        Args:
            place_of: gives the positions of the entry's fields.

        Raises:
            InputError: the source does not exist, or does not contain the program.
        """


class Overrides(Struct, frozen=True, kw_only=True):
    """Options of the command line that take precedence over a config.

    Attributes:
        metrics: built-in metrics to add to the config, or to use without one; they replace
            entries of the same name.
        threshold, trajectory_match_type: as in agentevals 0.11.0, they apply to ``metrics``, or
            without any to all built-in evaluators; never to programs.
        judge_model: as in ``JudgeSettings``.
        only: names of the evaluators to keep; empty keeps all.
        cases: patterns of the ids of cases to check; empty for all.
        tags: tags that the cases of eval files must have.
        eval_sets: paths and globs of eval sets that replace the config's; empty for the config's.
    """

    metrics: tuple[str, ...] = ()
    threshold: float | None = None
    trajectory_match_type: MatchType | None = None
    judge_model: str = ""
    only: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    eval_sets: tuple[str, ...] = ()

    @property
    def fields(self) -> JsonObject:
        """The values that are set, by their field names in entries."""
        fields: JsonObject = {
            "threshold": self.threshold,
            "trajectory_match_type": self.trajectory_match_type,
        }
        return {name: value for name, value in fields.items() if value is not None}


def find_metric_option_problems(metrics: Sequence[str]) -> Iterator[Problem]:
    """Find problems with the metrics of the command line."""
    for metric in dict.fromkeys(metrics):
        if (problem := find_metric_problem(metric)) is not None:
            yield problem
        if metrics.count(metric) > 1:
            yield Problem(message=f"--metric {metric} is given twice", hint="remove one of them")


def find_only_option_problems(only: Sequence[str], names: Sequence[str]) -> Iterator[Problem]:
    """Report names given to ``--only`` that are not in ``names``, the names of all evaluators."""
    for name in dict.fromkeys(only):
        if name not in names:
            yield Problem(
                message=f"--only names unknown evaluator {quote_name(name)}",
                hint=suggest_name(name, names) or f"known evaluators: {', '.join(names)}",
            )


def find_metric_problem(name: str, place: Place | None = None) -> Problem | None:
    """Explain why ``name`` is not an available built-in metric; None if it is available."""
    if (
        name in METRICS
        or name in JUDGED_METRIC_PURPOSES
        or (name in HOSTED_METRICS and is_adk_installed())
    ):
        return None
    if name in HOSTED_METRICS:
        message = f"metric {name!r} needs Google's ADK, which is not installed"
        return Problem(message=message, place=place, hint=INSTALL_ADK)
    if name in UNSUPPORTED_METRICS:
        message = f"metric {name!r} is not supported by agentci"
        return Problem(message=message, place=place, hint=UNSUPPORTED_METRICS[name])
    return Problem(
        message=f"unknown built-in metric {quote_name(name)}",
        place=place,
        hint=suggest_name(
            name, [*METRICS, *JUDGED_METRIC_PURPOSES, *HOSTED_METRICS, *UNSUPPORTED_METRICS]
        )
        or f"known metrics: {', '.join([*METRICS, *JUDGED_METRIC_PURPOSES, *HOSTED_METRICS])}",
    )
