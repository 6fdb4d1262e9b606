"""Turn a config into evaluators and a gate that are ready to run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from agentci.config.overrides import Overrides, ProgramResolver, find_metric_option_problems
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError
from agentci.evaluators.agentevals.builtin import make_builtin_evaluator
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.evaluators.metrics import HOSTED_METRICS, JUDGED_METRIC_PURPOSES
from agentci.model.case import AgentvCase, ResultsSource, RunSource
from agentci.model.gate import GatePolicy
from agentci.model.program import Agent
from agentci.model.result import TrialSettings
from agentci.model.values import COMMAND_LINE, GroupBy, Place, Problem

if TYPE_CHECKING:
    from agentci.evaluators.fields import TokenPriceSpec

DEFAULT_METRIC: Final = "tool_trajectory_avg_score"


class EvalFileCase(Struct, frozen=True, kw_only=True):
    """A case of an eval file with its evaluators."""

    eval_case: AgentvCase
    evaluators: tuple[ComparableEvaluator, ...]


class Suite(Struct, frozen=True, kw_only=True):
    """One config: evaluators, recorded runs or cases, and the gate.

    Attributes:
        file: the config file, as shown to the user.
        evaluators: the evaluators for all cases.
        names: the names of all evaluators, including those excluded by ``--only``.
        title: AgentV's name of an eval file; empty if it sets none.
        eval_cases: the cases of an eval file; None if the recorded runs are the cases.
        agent: the agent to run for cases without a recorded output.
        trials: the settings for several runs per case; None for a single run.
        traces: paths and globs as written; empty if the command line provides them.
        run_sources: the entries of the config that these paths and globs are from.
        eval_sets: paths and globs as written.
        dataset: the path as written.
        results: where results of other tools are, and what they must reach.
        given_results: paths and globs of the command line, which replace those of ``results``.
        prices: of models, by their patterns.
        trace_format: None to detect the format from the content.
        places: the positions of the values of the top-level keys.
        notices: warnings and notes about the config.
    """

    file: str
    evaluators: tuple[ComparableEvaluator, ...]
    gate: GatePolicy
    names: tuple[str, ...]
    title: str = ""
    eval_cases: tuple[EvalFileCase, ...] | None = None
    agent: Agent | None = None
    trials: TrialSettings | None = None
    traces: tuple[str, ...] = ()
    run_sources: tuple[RunSource, ...] = ()
    group_by: GroupBy = "auto"
    eval_sets: tuple[str, ...] = ()
    dataset: str | None = None
    results: tuple[ResultsSource, ...] = ()
    given_results: tuple[str, ...] = ()
    prices: "Mapping[str, TokenPriceSpec]" = field(default_factory=dict)
    trace_format: str | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    notices: tuple[Problem, ...] = ()

    @property
    def has_results(self) -> bool:
        """Whether it takes results of other tools."""
        return bool(self.results or self.given_results)

    @property
    def place(self) -> Place:
        """The position for problems that concern the whole config."""
        return Place(file=self.file)

    def place_of(self, key: str) -> Place:
        """The position of the value of a top-level key, or of the suite if the key is not set."""
        return self.places.get(key, self.place)


def make_metric_suite(overrides: Overrides, results: Sequence[str] = ()) -> Suite:
    """Make a suite without a config, from the metrics and results of the command line.

    Without either it uses the default metric of agentevals.

    Raises:
        InputError: a metric does not exist or is given twice.
    """
    metrics = overrides.metrics or (() if results else (DEFAULT_METRIC,))
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
        given_results=tuple(results),
    )


def make_case_suite() -> Suite:
    """Make a suite without a config, for the checks of eval cases."""
    return Suite(file=COMMAND_LINE.file, evaluators=(), gate=GatePolicy(), names=())


def _make_metric_evaluator(metric: str, overrides: Overrides) -> ComparableEvaluator:
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
    # Imported here because they load pydantic, as in read_suite.
    from agentci.evaluators.agentevals.builtin_entry import BuiltinEntry  # noqa: PLC0415
    from agentci.evaluators.judge_config import JudgeSettings  # noqa: PLC0415
    from agentci.evaluators.judged_metrics import make_judged_evaluator  # noqa: PLC0415

    return make_judged_evaluator(
        BuiltinEntry(name=metric, type="builtin", threshold=overrides.threshold),
        JudgeSettings(budget_id=COMMAND_LINE.file, model=overrides.judge_model),
        place=COMMAND_LINE,
        place_of=lambda _: COMMAND_LINE,
        turn_mismatch_fails=True,
    )


def read_suite(document: YamlDocument, overrides: Overrides, programs: ProgramResolver) -> Suite:
    """Read a config into a suite.

    Args:
        programs: finds the programs that the config names.

    Raises:
        InputError: the config has errors; lists all its problems.
    """
    # pydantic takes half of the start-up time, and a run without a config does not need it.
    from agentci.config.build import build_evaluators, make_gate_policy  # noqa: PLC0415
    from agentci.config.models import make_results_sources  # noqa: PLC0415

    built = build_evaluators(document, overrides, programs)
    config = built.config
    problems = (*built.problems, *_find_missing_paths(document, overrides))
    if config is None or any(problem.severity == "error" for problem in problems):
        raise InputError(problems)
    return Suite(
        file=document.file,
        evaluators=built.evaluators,
        gate=make_gate_policy(
            config.gate,
            [each.identity.name for each in built.evaluators],
            has_results=bool(config.results),
        ),
        names=built.names,
        traces=config.globs,
        run_sources=config.run_sources,
        group_by=config.group_by or "auto",
        eval_sets=config.eval_sets,
        dataset=config.dataset,
        results=make_results_sources(config.results, document),
        prices=config.prices,
        trace_format=config.trace_format,
        places={key: document.place_of((key,)) for key in document.data},
        notices=built.problems,
    )


def _find_missing_paths(document: YamlDocument, overrides: Overrides) -> Iterator[Problem]:
    """Find keys without the path of the cases, whose checks would be missing without a message."""
    for key in ("eval_set", "dataset"):
        is_replaced = key == "eval_set" and overrides.eval_sets
        if key in document.data and document.data[key] is None and not is_replaced:
            yield Problem(
                message=f"`{key}` has no value",
                place=document.place_of((key,), key=True),
                hint="name a file, or remove the key",
            )


def read_inputs(document: YamlDocument) -> Suite:
    """Read the recorded runs and the eval set of a config, without its evaluators.

    Raises:
        InputError: the top level of the config is invalid.
    """
    from agentci.config.discovery import reject_eval_set  # noqa: PLC0415 (likewise)
    from agentci.config.models import EvalConfig  # noqa: PLC0415 (loads pydantic, as above)
    from agentci.config.validate import read_part  # noqa: PLC0415 (likewise)

    reject_eval_set(document)
    config, found = read_part(document, EvalConfig, at=(), noun="config")
    problems = [*document.problems, *found]
    if config is None or any(each.severity == "error" for each in problems):
        raise InputError(problems)
    return Suite(
        file=document.file,
        evaluators=(),
        gate=GatePolicy(),
        names=(),
        traces=config.globs,
        run_sources=config.run_sources,
        group_by=config.group_by or "auto",
        eval_sets=config.eval_sets,
        trace_format=config.trace_format,
        places={key: document.place_of((key,)) for key in document.data},
    )
