"""``agentci compare``: compare two reports, evaluator by evaluator."""

from collections.abc import Iterator
from typing import TextIO

from agentci._util.text.escape import flatten_line, neutralize_commands
from agentci._util.workspace import Workspace
from agentci.gate.comparison import compare_runs
from agentci.github.baseline.read import read_baseline_report
from agentci.model.result import Report
from agentci.reports.console import comparison_lines


def show_comparison(base: str, head: str, workspace: Workspace, out: TextIO) -> int:
    """Print the comparison of each evaluator's checks.

    Raises:
        InputError: one of the reports is invalid.
    """
    before, after = (
        read_baseline_report(named, workspace, outcomes_only=True) for named in (base, head)
    )
    comparison = compare_runs(before.results, after.results, after.gates, baseline=base)
    lines = [
        *comparison_lines(comparison),
        *_find_incomplete_warnings(base, before),
        *_find_incomplete_warnings(head, after),
    ]
    out.write(neutralize_commands("".join(f"{line}\n" for line in lines)))
    return 0


def _find_incomplete_warnings(named: str, report: Report) -> Iterator[str]:
    if not report.complete:
        run = f"the run of {flatten_line(named)}"
        yield f"warning: {run} was interrupted; checks that did not run are not compared"
