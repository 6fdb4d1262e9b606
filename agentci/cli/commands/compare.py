"""``agentci compare``: compare two reports or result files, evaluator by evaluator."""

from collections.abc import Iterator
from typing import TextIO

from agentci._util.text.escape import flatten_line, neutralize_commands
from agentci._util.workspace import Workspace, is_file
from agentci.errors import InputError
from agentci.github.baseline.compare import BaselineResults, compare_results, match_configs
from agentci.github.baseline.read import read_baseline_report
from agentci.model.problem import COMMAND_LINE, Problem
from agentci.model.result import Report
from agentci.reports.console import list_comparison, list_worse


def show_comparison(base: str, head: str, workspace: Workspace, out: TextIO) -> int:
    """Print the comparison of each evaluator's checks.

    Raises:
        InputError: one of the reports is invalid, or is of a run without results.
    """
    before, after = (_read_report(named, workspace) for named in (base, head))
    reports = {base: before, head: after}
    if problems := [
        _make_empty_problem(named, report)
        for named, report in reports.items()
        if not report.results
    ]:
        raise InputError(problems)
    baseline = BaselineResults(name=base, results=before.results, gates=before.gates)
    comparison = compare_results(
        match_configs(baseline, after.results), after.results, after.gates, complete=after.complete
    )
    lines = [
        *list_comparison(comparison),
        *list_worse(comparison),
        *_list_warnings(before),
        *_list_warnings(after),
        *_find_incomplete_warnings(base, before),
        *_find_incomplete_warnings(head, after),
    ]
    out.write(neutralize_commands("".join(f"{line}\n" for line in lines)))
    return 0


def _read_report(named: str, workspace: Workspace) -> Report:
    """Read a report, or the result file of another tool.

    Raises:
        InputError: it is neither, or it is invalid.
    """
    path = workspace.cwd / named
    if is_file(path):
        from agentci.runner.recorded_results import (  # noqa: PLC0415 (other files do not need it)
            is_agentci_report,
            make_results_report,
        )

        resolved = workspace.resolve_given(path)
        if not is_agentci_report(resolved):
            return make_results_report(resolved, workspace)
    return read_baseline_report(named, workspace, outcomes_only=True)


def _make_empty_problem(named: str, report: Report) -> Problem:
    errors = [f"{each}" for each in report.problems if each.severity == "error"]
    why = f": its input was invalid ({errors[0]})" if errors else ""
    return Problem(
        message=f"{flatten_line(named)} has no results{why}", hint="compare runs with results"
    )


def _list_warnings(report: Report) -> Iterator[str]:
    """List the warnings about a result file of another tool; those of reports were shown before."""
    if any(gate.config == COMMAND_LINE.file for gate in report.gates):
        yield from (f"warning: {each}" for each in report.problems if each.severity == "warning")


def _find_incomplete_warnings(named: str, report: Report) -> Iterator[str]:
    if not report.complete:
        run = f"the run of {flatten_line(named)}"
        yield f"warning: {run} was interrupted; checks that did not run are not compared"
