"""Puts what was found wherever it is read: files, the log, the page and the outputs of a step."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agentci._util.files import (
    append_text,
    get_file_size,
    prepare_output_folder,
    write_output_files,
    write_to_stream,
)
from agentci._util.text import truncate
from agentci._util.text.escape import escape_for_log_line
from agentci._util.workspace import Workspace
from agentci.cli.session import Session
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.github.annotations import print_annotations
from agentci.github.context import GitHubContext
from agentci.github.events import read_event
from agentci.model.problem import Problem
from agentci.model.result import EXIT_INVALID_INPUT, Report
from agentci.model.values import replace
from agentci.reports import github_limits
from agentci.reports.action_outputs import make_outputs, make_outputs_without_report, render_outputs
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.job_summary import MAX_BYTES, SummaryReport
from agentci.reports.problems import render_problems
from agentci.reports.registry import make_reporters
from agentci.reports.report_format import Reporter


def publish_report(report: Report, settings: Settings, session: Session) -> Report:
    """Put the report wherever it is read, files first; the result says what could not be."""
    workspace, github = session.services.workspace, session.workflow.context
    comment = CommentReport(run_url=github.run_url, commit=read_event(github).head_sha)
    made = make_reporters(junit_dialect=settings.junit_dialect, comment=comment)
    if refused := _write_reports(report, made, settings, workspace):
        report = _add_write_problems(report, refused)
        refused |= _write_reports(report, made, settings, workspace)
    paths = {
        each.name: workspace.display_path(Path(settings.output_dir, each.file_name))
        for each in made
        if each.file_name not in refused
    }
    untold = (
        *(_add_summary(report, github) if settings.summary else ()),
        *_write_outputs(make_outputs(report, paths), github),
    )
    write_to_stream(
        render_console(
            report, quiet=settings.quiet, verbose=settings.verbose, colour=session.out.isatty()
        ),
        session.out,
    )
    if github.active and settings.annotations:
        print_annotations(report, settings, session.workflow, session.out)
    if untold:
        _print_problems(untold, session)
    if settings.commenting != "never" or settings.check_run:
        publish_to_pull_request(report, settings, session)
    return report


def publish_to_pull_request(report: Report, settings: Settings, session: Session) -> None:
    """Tell the pull request, which nothing else waits for, and nothing hangs on."""
    from agentci.github.post import post_results  # noqa: PLC0415 (of no use to most runs)

    for each in post_results(report, settings, session.workflow):
        if each.severity != "note":
            _print_problems((each,), session)
        elif not settings.quiet:
            write_to_stream(f"{escape_for_log_line(each.message)}\n", session.out)


def publish_input_problems(problems: Sequence[Problem], session: Session) -> int:
    """Tell of problems that leave not even a place for reports; outputs are set all the same."""
    untold = _write_outputs(make_outputs_without_report("invalid"), session.workflow.context)
    _print_problems((*problems, *untold), session)
    return EXIT_INVALID_INPUT


def publish_crash(github: GitHubContext) -> None:
    """Set the outputs of a run that a bug of ours broke off."""
    _write_outputs(make_outputs_without_report("error"), github)


def _write_reports(
    report: Report, made: Sequence[Reporter], settings: Settings, workspace: Workspace
) -> dict[str, str]:
    """Write one after the other, so that none is lost where a later one breaks.

    Returns:
        Why a file could not be written, by its name.
    """
    refused: dict[str, str] = {}
    for each in made:
        refused |= _write_report(each.file_name, each.render(report), settings, workspace)
    return refused


def _write_report(
    name: str, pieces: Iterable[str], settings: Settings, workspace: Workspace
) -> Mapping[str, str]:
    """Look at the folder again, which an evaluator may have removed or replaced."""
    try:
        folder = prepare_output_folder(settings.output_dir, workspace)
    except InputError as error:
        return {name: error.problems[0].message}
    return write_output_files(folder, {name: pieces}, workspace)


def _add_write_problems(report: Report, refused: Mapping[str, str]) -> Report:
    """The report with what could not be written, which never leaves the gate open."""
    problems = [
        Problem(message=f"{name} cannot be written: {why}") for name, why in refused.items()
    ]
    why = (*(problem.message for problem in problems), *report.decision.reasons)
    code = report.decision.exit_code or EXIT_INVALID_INPUT
    return replace(
        report,
        problems=(*report.problems, *problems),
        decision=replace(report.decision, passed=False, exit_code=code, reasons=why),
    )


def _add_summary(report: Report, github: GitHubContext) -> tuple[Problem, ...]:
    """GitHub would drop a page that is too long, with what else the step wrote there."""
    file = github.summary_file
    room = github_limits.SUMMARY_BYTES - (0 if file is None else get_file_size(file))
    text = "".join(SummaryReport(max_bytes=min(MAX_BYTES, room)).render(report))
    if truncate.count_utf8_bytes(text) > room:
        message = "GITHUB_STEP_SUMMARY has no room left for the summary"
        shown = f"GitHub shows {github_limits.SUMMARY_BYTES // 1024**2} MiB a step"
        hint = f"{shown}: give agentci one of its own"
        return (Problem(message=message, hint=hint, severity="warning"),)
    return _append_to_runner_file("GITHUB_STEP_SUMMARY", file, text)


def _write_outputs(values: Mapping[str, str], github: GitHubContext) -> tuple[Problem, ...]:
    text = render_outputs(values, f"agentci-{secrets.token_hex(16)}")
    return _append_to_runner_file("GITHUB_OUTPUT", github.output_file, text)


def _append_to_runner_file(variable: str, file: Path | None, text: str) -> tuple[Problem, ...]:
    """Hand ``text`` to the runner, if it takes any."""
    refused = None if file is None else append_text(file, text)
    if refused is None:
        return ()
    message = f"{variable} cannot be written: {refused}"
    hint = "the runner gives every step such a file; later steps do not see this one's"
    return (Problem(message=message, hint=hint, severity="warning"),)


def _print_problems(problems: Sequence[Problem], session: Session) -> None:
    write_to_stream(
        render_problems(problems, "github" if session.workflow.context.active else "text"),
        session.out,
    )
