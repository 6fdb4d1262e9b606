"""``agentci validate``: check configs and the files that they name, and run nothing."""

from collections.abc import Sequence

from agentci.config.overrides import Overrides
from agentci.datasets import read_rows
from agentci.discovery import find_configs
from agentci.engines.world import World
from agentci.errors import InputError
from agentci.eval_sets import gaps, read_goldens
from agentci.model.choices import ProblemFormat
from agentci.model.problem import Problem
from agentci.model.result import EXIT_INVALID
from agentci.outputs import named_outputs
from agentci.reporters.problems import render_problems
from agentci.seating import panel_problems, panels_of
from agentci.suites import LoadedSuite, load_suite


def validate(configs: Sequence[str], form: ProblemFormat, world: World) -> int:
    """Print all problems of all configs; the exit code is 0 where there is no error."""
    try:
        paths = find_configs(configs, world.workspace)
    except InputError as error:
        paths, problems = (), list(error.problems)
    else:
        problems = []
    for path in paths:
        try:
            loaded = load_suite(path, Overrides(), world)
            goldens = read_goldens(loaded, world.workspace)
            read_rows(loaded, world.workspace, carries_runs=not loaded.suite.traces)
            problems += _missing_outputs(loaded)
            problems += [*loaded.notices, *gaps(loaded.suite, goldens)]
            problems += panel_problems(panels_of(loaded.suite.evaluators))
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


def _errors(problems: Sequence[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)
