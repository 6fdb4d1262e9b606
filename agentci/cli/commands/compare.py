"""``agentci compare``: two reports, side by side."""

from collections.abc import Iterator

from agentci._util.text.escape import inert, plain_line
from agentci.gate.comparison import compare
from agentci.gate.regression import bars_of
from agentci.github.baseline.read import read_earlier
from agentci.model.result import Report
from agentci.reports.console import comparison_lines
from agentci.runner.services import World


def show_comparison(base: str, head: str, world: World) -> int:
    """Print what became of each evaluator's checks.

    Raises:
        InputError: one of the reports cannot be used.
    """
    before, after = (read_earlier(named, world.workspace) for named in (base, head))
    comparison = compare(before.results, after.results, bars_of(after.gates), baseline=base)
    lines = [*comparison_lines(comparison), *_broken_off(base, before), *_broken_off(head, after)]
    world.out.write(inert("".join(f"{line}\n" for line in lines)))
    return 0


def _broken_off(named: str, report: Report) -> Iterator[str]:
    if not report.complete:
        run = f"the run of {plain_line(named)}"
        yield f"{run} was broken off: what it did not judge is not compared"
