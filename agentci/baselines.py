"""Reads earlier reports, and puts a run beside one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agentci.comparison.trends import compare
from agentci.comparison.verdict import bars_of
from agentci.errors import InputError
from agentci.model.comparison import Comparison
from agentci.model.policy import Gate
from agentci.model.result import Report, Result
from agentci.workspace import Workspace, is_file, is_folder, read_file

REPORT_NAME: Final = "results.json"
MAX_REPORT_BYTES: Final = 256 * 1024**2


def beside(
    named: str, results: Sequence[Result], gates: Sequence[Gate], workspace: Workspace
) -> Comparison | None:
    """Compare ``results`` with those of the report ``named``; None where none is named.

    A baseline that is not there or cannot be read is no reason to judge nothing: the comparison
    says what is wrong with it.
    """
    if not named:
        return None
    try:
        report = read_earlier(named, workspace)
    except InputError as error:
        return Comparison(baseline=named, refused=f"the baseline is of no use: {error.problems[0]}")
    if not report.complete:
        why = "the baseline is of no use: its run was broken off"
        return Comparison(baseline=named, refused=why)
    return compare(report.results, results, bars_of(gates), baseline=named)


def read_earlier(
    named: str, workspace: Workspace, *, limit_bytes: int = MAX_REPORT_BYTES
) -> Report:
    """Read a report, or that of a folder.

    Raises:
        InputError: there is none, or it is none of this version.
    """
    # It loads pydantic, for what others hand in.
    from agentci.merging.reading import read_report  # noqa: PLC0415

    path: Path = workspace.cwd / named
    path = path / REPORT_NAME if is_folder(path) else path
    if not is_file(path):
        raise InputError.of(
            f"there is no report {named}", hint=f"name a {REPORT_NAME}, or the folder that has it"
        )
    name = workspace.name_of(path)
    return read_report(read_file(path, name=name, limit_bytes=limit_bytes), file=name)
