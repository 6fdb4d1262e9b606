"""``agentci compare``: two reports, side by side."""

from agentci.baselines.reading import read_earlier
from agentci.comparison.trends import compare
from agentci.comparison.verdict import bars_of
from agentci.engines.world import World
from agentci.reporters.console import comparison_lines
from agentci.text.escape import inert


def show_comparison(base: str, head: str, world: World) -> int:
    """Print what became of each evaluator's checks.

    Raises:
        InputError: one of the reports cannot be used.
    """
    before, after = (read_earlier(named, world.workspace) for named in (base, head))
    comparison = compare(before.results, after.results, bars_of(after.gates), baseline=base)
    lines = "".join(f"{line}\n" for line in comparison_lines(comparison))
    world.out.write(inert(lines))
    return 0
