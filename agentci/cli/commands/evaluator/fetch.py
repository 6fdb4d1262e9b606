"""``agentci evaluator fetch``: download remote evaluators into the cache."""

from collections.abc import Sequence
from typing import TextIO

from agentci._util.files import write_to_stream
from agentci._util.parallel import parallel_map
from agentci._util.text.escape import escape_for_log_line
from agentci.config.settings import FetchSettings
from agentci.errors import FetchError, InputError
from agentci.model.problem import Problem
from agentci.model.program import RemoteProgram
from agentci.remote.fetch import FetchedProgram, FetchOptions, fetch_program
from agentci.runner.prepare_programs import load_lock, make_fetch_options
from agentci.runner.services import Services


def fetch_evaluators(
    programs: Sequence[RemoteProgram], *, access: FetchSettings, services: Services, out: TextIO
) -> int:
    """Fetch ``programs`` and print the path and the pin of each.

    Raises:
        InputError: some cannot be fetched; the others are in the cache.
    """
    fetch_options = make_fetch_options(access, services, lock=load_lock(services))
    outcomes = parallel_map(lambda each: _fetch_program(each, fetch_options), programs)
    for outcome in outcomes:
        if not isinstance(outcome, Problem):
            write_to_stream(_format_fetched(outcome), out)
    problems = [each for each in outcomes if isinstance(each, Problem)]
    if problems:
        raise InputError(problems)
    return 0


def _fetch_program(program: RemoteProgram, options: FetchOptions) -> FetchedProgram | Problem:
    try:
        fetched = fetch_program(options.sources.get(program.source).complete(program), options)
    except FetchError as error:
        return Problem(message=str(error), hint=error.hint)
    # A run works without the cache; here filling it is the purpose.
    return Problem(message=fetched.notices[0]) if fetched.notices else fetched


def _format_fetched(fetched: FetchedProgram) -> str:
    facts = {"commit": fetched.commit, "pin": fetched.pin, "path": fetched.cached.path}
    lines = [f"  {name}: {escape_for_log_line(str(fact))}" for name, fact in facts.items() if fact]
    return "".join(f"{line}\n" for line in (escape_for_log_line(fetched.program.ref), *lines))
