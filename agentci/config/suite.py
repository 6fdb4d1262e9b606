"""A config as evaluators and a gate, ready to be run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from agentci.config.document import Document
from agentci.config.names import option_problems
from agentci.config.options import Options
from agentci.dialects.agentevals.builtin import assemble_builtin
from agentci.dialects.base import Evaluator
from agentci.errors import InputError
from agentci.model.choices import GroupBy
from agentci.model.json import JsonObject
from agentci.model.place import Place
from agentci.model.policy import GatePolicy
from agentci.model.problem import Problem

COMMAND_LINE: Final = Place(file="<command line>")
DEFAULT_METRIC: Final = "tool_trajectory_avg_score"

Locate: TypeAlias = Callable[[str, Place], Path]
Supports: TypeAlias = Callable[[Path], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the command line says of evaluators, in place of what configs say.

    Attributes:
        metrics: built-in metrics to judge by, beside the config or without one.
        threshold, trajectory_match_type, judge_model: for ``metrics``, or where there are none
            for all built-in evaluators; never for programs.
        only: names of the evaluators to keep; empty keeps all.
    """

    metrics: tuple[str, ...] = ()
    threshold: float | None = None
    trajectory_match_type: str | None = None
    judge_model: str | None = None
    only: tuple[str, ...] = ()

    @property
    def fields(self) -> JsonObject:
        """The fields that are given, by their names in entries."""
        fields: JsonObject = {
            "threshold": self.threshold,
            "trajectory_match_type": self.trajectory_match_type,
            "judge_model": self.judge_model,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One config: what judges, what is judged, and what has to be reached.

    Attributes:
        file: the config as shown to the user.
        place: what is to blame where something is missing as a whole.
        names: of all its evaluators, also of those that are left out (``--only``).
        traces: paths and globs as they are written; empty leaves them to the command line.
        eval_set: path as it is written.
        trace_format: None where it is to be seen from the content.
        places: the values of the top-level keys.
        notices: what is worth knowing about the config; no errors.
    """

    file: str
    place: Place
    evaluators: tuple[Evaluator, ...]
    gate: GatePolicy
    names: tuple[str, ...]
    traces: tuple[str, ...] = ()
    group_by: GroupBy = "auto"
    eval_set: str | None = None
    trace_format: str | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    notices: tuple[Problem, ...] = ()

    def place_of(self, key: str) -> Place:
        """The place of the value of a top-level key, that of the suite where there is none."""
        return self.places.get(key, self.place)


def suite_of_metrics(overrides: Overrides) -> Suite:
    """Judge without a config: by the metrics of the command line, else by agentevals' default.

    Raises:
        InputError: there is no such metric, or none is left to run.
    """
    metrics = overrides.metrics or (DEFAULT_METRIC,)
    if problems := tuple(option_problems(metrics)):
        raise InputError(problems)
    return Suite(
        file=COMMAND_LINE.file,
        place=COMMAND_LINE,
        evaluators=tuple(
            assemble_builtin(
                metric,
                place=COMMAND_LINE,
                threshold=overrides.threshold,
                match_type=overrides.trajectory_match_type,
            )
            for metric in metrics
            if metric in (overrides.only or metrics)
        ),
        gate=GatePolicy(),
        names=metrics,
    )


def read_suite(
    document: Document, *, overrides: Overrides, locate: Locate, supports: Supports | None = None
) -> Suite:
    """Make a config ready to be run.

    Args:
        locate: finds the file that a config names at a place; raises InputError where it is
            missing or out of bounds.
        supports: says why a program cannot be run, None where it can; see ``agentci.runtimes``.

    Raises:
        InputError: with all problems of the config.
    """
    # It loads pydantic, which is half of our start-up; a run without a config does not need it.
    from agentci.config.building import build, gate_policy  # noqa: PLC0415

    find = partial(_find, locate=locate, supports=supports)
    options = Options(metrics=overrides.metrics, fields=overrides.fields, place=COMMAND_LINE)
    built = build(document, options, only=overrides.only, find=find)
    config = built.config
    if config is None or any(problem.severity == "error" for problem in built.problems):
        raise InputError(built.problems)
    return Suite(
        file=document.file,
        place=Place(file=document.file),
        evaluators=built.evaluators,
        gate=gate_policy(config.gate, [each.identity.name for each in built.evaluators]),
        names=built.names,
        traces=config.globs,
        group_by=config.group_by or "auto",
        eval_set=config.eval_set,
        trace_format=config.trace_format,
        places={key: document.place_of((key,)) for key in document.data},
        notices=built.problems,
    )


def _find(named: str, *, place: Place, locate: Locate, supports: Supports | None) -> Path:
    path = locate(named, place)
    reason = None if supports is None else supports(path)
    if reason is not None:
        raise InputError.of(reason, place=place)
    return path
