"""Read the report of an earlier run."""

from agentci._util.workspace import Workspace, is_file, is_folder, limit_input
from agentci.errors import InputError
from agentci.model.result import Report
from agentci.reports.merge.read import read_report_file
from agentci.reports.merge.report_files import MAX_REPORT_BYTES, REPORT_NAME
from agentci.reports.run_content import ChunkWriter


def read_baseline_report(
    named: str,
    workspace: Workspace,
    *,
    limit_bytes: int = MAX_REPORT_BYTES,
    outcomes_only: bool = False,
    contents: ChunkWriter | None = None,
) -> Report:
    """Read ``results.json``, or that of a folder.

    Args:
        outcomes_only: leave out what only explains the results, to compare with them.
        contents: where the contents of its cases are stored; None if they are not needed.

    Raises:
        InputError: it does not exist, is too large, or has another version.
    """
    path = workspace.cwd / named
    path = path / REPORT_NAME if is_folder(path) else path
    if not is_file(path):
        raise InputError.from_message(
            f"there is no report {named}", hint=f"name a {REPORT_NAME} or its folder"
        )
    name = workspace.display_path(path)
    found = workspace.resolve_given(path)
    with limit_input(name):
        return read_report_file(
            found,
            file=name,
            limit_bytes=limit_bytes,
            outcomes_only=outcomes_only,
            contents=contents,
        )


def explain_incomplete(report: Report) -> str:
    """Explain why a report is not of a whole run, as the end of a sentence; empty if it is."""
    if not report.complete:
        return "belongs to an interrupted run"
    if report.shard_info is not None:
        return f"covers only {report.shard_info.shard}"
    if not report.results:
        return "has no results"
    return ""
