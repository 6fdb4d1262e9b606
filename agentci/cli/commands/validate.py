"""``agentci validate`` and ``agentci schema``: check configs, print the schemas for editors."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TextIO

from agentci.config.agentv.schema import make_eval_file_schema
from agentci.config.case_file import make_cases_schema
from agentci.config.discovery import find_configs
from agentci.config.overrides import Overrides
from agentci.config.schema import make_config_schema
from agentci.errors import InputError
from agentci.evaluators.evaluator import collect_needs
from agentci.model.judges import RequiredJudge
from agentci.model.requests import RequiredService
from agentci.model.result import EXIT_INVALID_INPUT
from agentci.model.values import Problem, ProblemFormat
from agentci.remote.lock_file import lock_schema
from agentci.reports.problems import render_problems
from agentci.reports.results_schema import make_results_schema
from agentci.runner.load_configs import (
    find_refused_variables,
    find_unread_eval_set,
    load_suite,
)
from agentci.runner.load_inputs import (
    find_expectation_problems,
    find_folder_problems,
    find_uncompared_problems,
    find_unknown_cases,
    load_eval_set,
    load_suite_dataset,
)
from agentci.runner.load_outputs import find_named_outputs
from agentci.runner.services import Services
from agentci.runner.suite_files import LoadedSuite


def print_schema(name: str, out: TextIO) -> int:
    """Print the schema ``config``, ``cases``, ``evalfile`` (AgentV's), ``results`` or ``lock``."""
    schemas: Mapping[str, Callable[[], object]] = {
        "config": make_config_schema,
        "cases": make_cases_schema,
        "evalfile": make_eval_file_schema,
        "results": make_results_schema,
        "lock": lock_schema,
    }
    schema = schemas[name]()
    out.write(f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n")
    return 0


def validate_configs(
    configs: Sequence[str],
    form: ProblemFormat,
    services: Services,
    out: TextIO,
    *,
    eval_sets: Sequence[str] = (),
    judge_model: str = "",
) -> int:
    """Print all problems of all configs; the exit code is 0 without errors.

    Args:
        eval_sets, judge_model: as ``--eval-set`` and ``--judge-model`` of ``run``.
    """
    paths, missing = find_configs(configs, services.workspace)
    problems = [*missing]
    suites: list[LoadedSuite] = []
    for path in paths:
        try:
            overrides = Overrides(judge_model=judge_model, eval_sets=tuple(eval_sets))
            loaded = load_suite(path, overrides, services)
            suites.append(loaded)
            eval_set = load_eval_set(loaded, services.workspace, given=eval_sets)
            dataset = load_suite_dataset(
                loaded, services.workspace, carries_runs=not loaded.suite.traces
            )
            problems += find_folder_problems(loaded, services.workspace)
            problems += find_unknown_cases(loaded.suite, eval_set, dataset)
            problems += _find_missing_outputs(loaded)
            problems += find_refused_variables(loaded.suite, services)
            problems += _find_model_problems(loaded)
            problems += [*loaded.notices, *find_expectation_problems(loaded.suite, eval_set)]
        except InputError as error:
            problems += error.problems
    for loaded in () if eval_sets else suites:
        unread = find_unread_eval_set(loaded, suites, services)
        problems += find_uncompared_problems(loaded.suite, (), unread)
    out.write(render_problems(problems, form, files=len(paths)))
    return EXIT_INVALID_INPUT if _has_errors(problems) else 0


def _find_missing_outputs(loaded: LoadedSuite) -> Sequence[Problem]:
    """Find recorded outputs that an eval file names and that do not exist."""
    try:
        if loaded.suite.eval_cases is not None:
            find_named_outputs(loaded)
    except InputError as error:
        return error.problems
    return ()


def _find_model_problems(loaded: LoadedSuite) -> Iterator[Problem]:
    """Find judges and grading services that could not be used even with a key."""
    if judges := collect_needs(loaded.suite.evaluators, RequiredJudge):
        from agentci.runner.prepare import find_judge_problems  # noqa: PLC0415 (rarely used)

        yield from find_judge_problems(judges)
    if services := collect_needs(loaded.suite.evaluators, RequiredService):
        from agentci.runner.prepare import find_service_problems  # noqa: PLC0415 (rarely used)

        yield from find_service_problems(services)


def _has_errors(problems: Sequence[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)
