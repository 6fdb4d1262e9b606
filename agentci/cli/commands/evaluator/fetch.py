"""``agentci evaluator fetch``: put remote evaluators into the cache."""

from collections.abc import Sequence

from agentci._util.files import say
from agentci._util.parallel import side_by_side
from agentci._util.text.escape import one_line
from agentci.config.settings import Access
from agentci.errors import FetchError, InputError
from agentci.model.problem import Problem
from agentci.model.program import RemoteProgram
from agentci.remote.fetch import Fetched, fetch
from agentci.remote.options import Stock
from agentci.runner.prepare_programs import load_lock, stock_of
from agentci.runner.services import World


def fetch_all(programs: Sequence[RemoteProgram], *, access: Access, world: World) -> int:
    """Fetch ``programs``, and say where each is and what pins it.

    Raises:
        InputError: some cannot be had; the others are in the cache.
    """
    stock = stock_of(access, world, lock=load_lock(world))
    outcomes = side_by_side(lambda each: _fetched(each, stock), programs)
    for outcome in outcomes:
        if not isinstance(outcome, Problem):
            say(_told(outcome), world.out)
    problems = [each for each in outcomes if isinstance(each, Problem)]
    if problems:
        raise InputError(problems)
    return 0


def _fetched(program: RemoteProgram, stock: Stock) -> Fetched | Problem:
    try:
        fetched = fetch(stock.sources.named(program.source).complete(program), stock)
    except FetchError as error:
        return Problem(message=str(error), hint=error.hint)
    # A run does without a cache; here it is all that is asked for.
    return Problem(message=fetched.notices[0]) if fetched.notices else fetched


def _told(fetched: Fetched) -> str:
    facts = {"commit": fetched.commit, "pin": fetched.pin, "path": fetched.stored.path}
    lines = [f"  {name}: {one_line(str(fact))}" for name, fact in facts.items() if fact]
    return "".join(f"{line}\n" for line in (one_line(fetched.program.ref), *lines))
