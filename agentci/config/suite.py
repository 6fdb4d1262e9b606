"""A config as evaluators and a gate, ready to be run."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from agentci.config.overrides import Overrides, ProgramResolver, find_metric_option_problems
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError
from agentci.evaluators.agentevals.builtin import make_builtin_evaluator
from agentci.evaluators.evaluator import Evaluator
from agentci.evaluators.metrics.registry import HOSTED_METRICS, JUDGED_METRIC_PURPOSES
from agentci.model.case import AgentvCase
from agentci.model.choices import GroupBy
from agentci.model.gate import GatePolicy
from agentci.model.problem import COMMAND_LINE, Place, Problem
from agentci.model.program import Agent
from agentci.model.result import TrialSettings

DEFAULT_METRIC: Final = "tool_trajectory_avg_score"


class EvalFileCase(Struct, frozen=True, kw_only=True):
    """A case of an eval file, and what judges it."""

    eval_case: AgentvCase
    evaluators: tuple[Evaluator, ...]


class Suite(Struct, frozen=True, kw_only=True):
    """One config: what judges, what is judged, and what has to be reached.

    Attributes:
        file: the config as shown to the user.
        evaluators: those of all cases.
        names: of all its evaluators, also of those that are left out (``--only``).
        eval_cases: the cases that it brings; None where recordings are the cases.
        agent: what is run for those that have no recorded output.
        trials: how often, where that is more than once.
        traces: paths and globs as they are written; empty leaves them to the command line.
        eval_set, dataset: paths as they are written.
        trace_format: None where it is to be seen from the content.
        places: the values of the top-level keys.
        notices: what is worth knowing about the config; no errors.
    """

    file: str
    evaluators: tuple[Evaluator, ...]
    gate: GatePolicy
    names: tuple[str, ...]
    eval_cases: tuple[EvalFileCase, ...] | None = None
    agent: Agent | None = None
    trials: TrialSettings | None = None
    traces: tuple[str, ...] = ()
    group_by: GroupBy = "auto"
    eval_set: str | None = None
    dataset: str | None = None
    trace_format: str | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    notices: tuple[Problem, ...] = ()

    @property
    def place(self) -> Place:
        """What is to blame where something is missing as a whole."""
        return Place(file=self.file)

    def place_of(self, key: str) -> Place:
        """The place of the value of a top-level key, that of the suite where there is none."""
        return self.places.get(key, self.place)


def make_metric_suite(overrides: Overrides) -> Suite:
    """Judge without a config: by the metrics of the command line, else by agentevals' default.

    Raises:
        InputError: there is no such metric, or none is left to run.
    """
    metrics = overrides.metrics or (DEFAULT_METRIC,)
    if problems := tuple(find_metric_option_problems(metrics)):
        raise InputError(problems)
    return Suite(
        file=COMMAND_LINE.file,
        evaluators=tuple(
            _make_metric_evaluator(metric, overrides)
            for metric in metrics
            if metric in (overrides.only or metrics)
        ),
        gate=GatePolicy(),
        names=metrics,
    )


def _make_metric_evaluator(metric: str, overrides: Overrides) -> Evaluator:
    if metric in HOSTED_METRICS:
        from agentci.evaluators.agentevals.vertex_metric import make_hosted_evaluator  # noqa: PLC0415 (as below)

        return make_hosted_evaluator(metric, place=COMMAND_LINE, threshold=overrides.threshold)
    if metric not in JUDGED_METRIC_PURPOSES:
        return make_builtin_evaluator(
            metric,
            place=COMMAND_LINE,
            threshold=overrides.threshold,
            match_type=overrides.trajectory_match_type,
        )
    # They load pydantic, as below.
    from agentci.evaluators.agentevals.entries import BuiltinEntry  # noqa: PLC0415
    from agentci.evaluators.agentevals.judged_builtin import make_judged_evaluator  # noqa: PLC0415
    from agentci.evaluators.judge_config import JudgeSettings  # noqa: PLC0415

    return make_judged_evaluator(
        BuiltinEntry(name=metric, type="builtin", threshold=overrides.threshold),
        JudgeSettings(payer=COMMAND_LINE.file, model=overrides.judge_model),
        place=COMMAND_LINE,
        place_of=lambda _: COMMAND_LINE,
        turn_mismatch_fails=True,
    )


def read_suite(document: YamlDocument, overrides: Overrides, programs: ProgramResolver) -> Suite:
    """Make a config ready to be run.

    Args:
        programs: knows those that the config names.

    Raises:
        InputError: with all problems of the config.
    """
    # It loads pydantic, which is half of our start-up; a run without a config does not need it.
    from agentci.config.build import build_evaluators, make_gate_policy  # noqa: PLC0415

    built = build_evaluators(document, overrides, programs)
    config = built.config
    if config is None or any(problem.severity == "error" for problem in built.problems):
        raise InputError(built.problems)
    return Suite(
        file=document.file,
        evaluators=built.evaluators,
        gate=make_gate_policy(config.gate, [each.identity.name for each in built.evaluators]),
        names=built.names,
        traces=config.globs,
        group_by=config.group_by or "auto",
        eval_set=config.eval_set,
        dataset=config.dataset,
        trace_format=config.trace_format,
        places={key: document.place_of((key,)) for key in document.data},
        notices=built.problems,
    )
