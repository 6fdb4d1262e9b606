"""Puts what was found wherever it is read: files, the log, the page and the outputs of a step."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agentci._util.files import append, open_folder, say, size_of, write_files
from agentci._util.text import truncate
from agentci._util.text.escape import one_line
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.github.annotations import remark
from agentci.github.read_event import read_event
from agentci.model.problem import Problem
from agentci.model.result import EXIT_INVALID, Report
from agentci.model.values import replace
from agentci.reports import github_limits
from agentci.reports.action_outputs import outputs, outputs_without_report, render_outputs
from agentci.reports.comment import Comment
from agentci.reports.console import render_console
from agentci.reports.problems import render_problems
from agentci.reports.registry import reporters
from agentci.reports.report_format import Reporter
from agentci.reports.summary.page import MAX_BYTES, Summary
from agentci.runner.services import World


def publish(report: Report, settings: Settings, world: World) -> Report:
    """Put the report wherever it is read, files first; the result says what could not be."""
    comment = Comment(run_url=world.github.run_url, commit=read_event(world.github).head_sha)
    made = reporters(junit_dialect=settings.junit_dialect, comment=comment)
    if refused := _write(report, made, settings, world):
        report = _unwritten(report, refused)
        refused |= _write(report, made, settings, world)
    paths = {
        each.name: world.workspace.name_of(Path(settings.output_dir, each.file_name))
        for each in made
        if each.file_name not in refused
    }
    untold = (
        *(_add_summary(report, world) if settings.summary else ()),
        *_set_outputs(outputs(report, paths), world),
    )
    say(
        render_console(
            report, quiet=settings.quiet, verbose=settings.verbose, colour=world.out.isatty()
        ),
        world.out,
    )
    if world.github.active and settings.annotations:
        remark(report, settings, world)
    if untold:
        _tell(untold, world)
    if settings.commenting != "never" or settings.check_run:
        answer(report, settings, world)
    return report


def answer(report: Report, settings: Settings, world: World) -> None:
    """Tell the pull request, which nothing else waits for, and nothing hangs on."""
    from agentci.github.post import answers  # noqa: PLC0415 (of no use to most runs)

    for each in answers(report, settings, world):
        if each.severity != "notice":
            _tell((each,), world)
        elif not settings.quiet:
            say(f"{one_line(each.message)}\n", world.out)


def refuse(problems: Sequence[Problem], world: World) -> int:
    """Tell of problems that leave not even a place for reports; outputs are set all the same."""
    untold = _set_outputs(outputs_without_report("invalid"), world)
    _tell((*problems, *untold), world)
    return EXIT_INVALID


def publish_crash(world: World) -> None:
    """Set the outputs of a run that a bug of ours broke off."""
    _set_outputs(outputs_without_report("error"), world)


def _write(
    report: Report, made: Sequence[Reporter], settings: Settings, world: World
) -> dict[str, str]:
    """Write one after the other, so that none is lost where a later one breaks.

    Returns:
        Why a file could not be written, by its name.
    """
    refused: dict[str, str] = {}
    for each in made:
        refused |= _put(each.file_name, each.render(report), settings, world)
    return refused


def _put(name: str, pieces: Iterable[str], settings: Settings, world: World) -> Mapping[str, str]:
    """Look at the folder again, which an evaluator may have removed or replaced."""
    try:
        folder = open_folder(settings.output_dir, world.workspace)
    except InputError as error:
        return {name: error.problems[0].message}
    return write_files(folder, {name: pieces}, world.workspace)


def _unwritten(report: Report, refused: Mapping[str, str]) -> Report:
    """The report with what could not be written, which never leaves the gate open."""
    problems = [
        Problem(message=f"{name} cannot be written: {why}") for name, why in refused.items()
    ]
    why = (*(problem.message for problem in problems), *report.decision.why)
    code = report.decision.exit_code or EXIT_INVALID
    return replace(
        report,
        problems=(*report.problems, *problems),
        decision=replace(report.decision, open=False, exit_code=code, why=why),
    )


def _add_summary(report: Report, world: World) -> tuple[Problem, ...]:
    """GitHub would drop a page that is too long, with what else the step wrote there."""
    file = world.github.summary_file
    room = github_limits.SUMMARY_BYTES - (0 if file is None else size_of(file))
    text = "".join(Summary(max_bytes=min(MAX_BYTES, room)).render(report))
    if truncate.size(text) > room:
        message = "GITHUB_STEP_SUMMARY has no room left for the summary"
        shown = f"GitHub shows {github_limits.SUMMARY_BYTES // 1024**2} MiB a step"
        hint = f"{shown}: give agentci one of its own"
        return (Problem(message=message, hint=hint, severity="warning"),)
    return _added("GITHUB_STEP_SUMMARY", file, text)


def _set_outputs(values: Mapping[str, str], world: World) -> tuple[Problem, ...]:
    text = render_outputs(values, f"agentci-{secrets.token_hex(16)}")
    return _added("GITHUB_OUTPUT", world.github.output_file, text)


def _added(variable: str, file: Path | None, text: str) -> tuple[Problem, ...]:
    """Hand ``text`` to the runner, if it takes any."""
    refused = None if file is None else append(file, text)
    if refused is None:
        return ()
    message = f"{variable} cannot be written: {refused}"
    hint = "the runner gives every step such a file; later steps do not see this one's"
    return (Problem(message=message, hint=hint, severity="warning"),)


def _tell(problems: Sequence[Problem], world: World) -> None:
    say(render_problems(problems, "github" if world.github.active else "text"), world.out)
