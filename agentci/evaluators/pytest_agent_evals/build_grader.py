"""Makes evaluators of entries of ``type: grader``."""

from agentci.evaluators.agentevals.build import identity_of, installs, run_of
from agentci.evaluators.context import Surroundings
from agentci.evaluators.pytest_agent_evals.entries import GraderEntry
from agentci.evaluators.pytest_agent_evals.find_function import check_function
from agentci.evaluators.pytest_agent_evals.grader import Grader
from agentci.model.values import replace


def build_grader(entry: GraderEntry, surroundings: Surroundings) -> Grader:
    """Make the evaluator; raises InputError where its surroundings do."""
    program = surroundings.locate(entry.file, "grader")
    if not installs(entry):
        program = replace(program, requirements=None)
    file = surroundings.read(entry.file, "grader")
    check_function(file, entry.function, surroundings.place_of("grader"))
    return Grader(
        identity=identity_of(entry, surroundings),
        function=entry.function,
        run=replace(run_of(entry, program, network=entry.network), grades=True),
        program_place=surroundings.place_of("grader"),
    )
