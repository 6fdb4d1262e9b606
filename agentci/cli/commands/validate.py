"""``agentci validate``: check configs and the files that they name, and run nothing."""

from collections.abc import Iterator, Sequence

from agentci.config.discovery import find_configs
from agentci.config.overrides import Overrides
from agentci.errors import InputError
from agentci.evaluators.evaluator import needs_of
from agentci.model.choices import ProblemFormat
from agentci.model.grading import WantedService
from agentci.model.judging import WantedPanel
from agentci.model.problem import Problem
from agentci.model.result import EXIT_INVALID
from agentci.reports.problems import render_problems
from agentci.runner.load_configs import LoadedSuite, load_suite
from agentci.runner.load_datasets import read_rows
from agentci.runner.load_eval_sets import gaps, read_goldens
from agentci.runner.load_outputs import named_outputs
from agentci.runner.services import World


def validate(configs: Sequence[str], form: ProblemFormat, world: World) -> int:
    """Print all problems of all configs; the exit code is 0 where there is no error."""
    paths, missing = find_configs(configs, world.workspace)
    problems = [*missing]
    for path in paths:
        try:
            loaded = load_suite(path, Overrides(), world)
            goldens = read_goldens(loaded, world.workspace)
            read_rows(loaded, world.workspace, carries_runs=not loaded.suite.traces)
            problems += _missing_outputs(loaded)
            problems += _of_models(loaded)
            problems += [*loaded.notices, *gaps(loaded.suite, goldens)]
        except InputError as error:
            problems += error.problems
    world.out.write(render_problems(problems, form, files=len(paths)))
    return EXIT_INVALID if _errors(problems) else 0


def _missing_outputs(loaded: LoadedSuite) -> Sequence[Problem]:
    """Recordings that an eval file names and that are not there."""
    try:
        if loaded.suite.samples is not None:
            named_outputs(loaded)
    except InputError as error:
        return error.problems
    return ()


def _of_models(loaded: LoadedSuite) -> Iterator[Problem]:
    """Judges, and services that grade, that could not be asked, whoever has the key."""
    if panels := needs_of(loaded.suite.evaluators, WantedPanel):
        from agentci.runner.prepare_judges import panel_problems  # noqa: PLC0415 (of no use to most configs)

        yield from panel_problems(panels)
    if services := needs_of(loaded.suite.evaluators, WantedService):
        from agentci.runner.prepare_graders import service_problems  # noqa: PLC0415 (likewise)

        yield from service_problems(services)


def _errors(problems: Sequence[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)
