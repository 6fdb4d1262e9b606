"""``agentci run``: judge recordings, write reports, decide."""

import secrets
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentci.commands.plan import show_plan
from agentci.engines.world import World
from agentci.errors import InputError
from agentci.gate import decide, totals
from agentci.model.problem import Problem
from agentci.model.result import EXIT_INVALID, Decision, Report, Result
from agentci.pipeline import Outcome, judge_all
from agentci.preflight import Plan, prepare
from agentci.progress import Progress
from agentci.reporters.annotations import render_annotations
from agentci.reporters.base import Reporter
from agentci.reporters.console import render_console
from agentci.reporters.outputs import outputs, outputs_without_report, render_outputs
from agentci.reporters.problems import render_problems
from agentci.reporters.registry import reporters
from agentci.settings import Settings
from agentci.sinks import append, open_folder, say, write_files


def run(settings: Settings, world: World) -> int:
    """Judge what ``settings`` name and return the exit code of the gate's decision.

    Reports are written before the code is decided on, also where the input is wrong and where the
    run breaks off.
    """
    if settings.plan:
        return show_plan(settings, world)
    try:
        open_folder(settings.output_dir, world.workspace)
    except InputError as error:
        return refuse(error.problems, world)
    try:
        plan, outcome = _judged(settings, world)
        report = _publish(_report(plan, outcome, settings, world), settings, world)
    except Exception:
        _set_outputs(outputs_without_report("error"), world)
        raise
    if outcome.bug is not None:
        raise outcome.bug
    return report.decision.exit_code


def refuse(problems: Sequence[Problem], world: World) -> int:
    """Tell of problems that leave not even a place for reports; outputs are set all the same."""
    untold = _set_outputs(outputs_without_report("invalid"), world)
    _tell((*problems, *untold), world)
    return EXIT_INVALID


def _judged(settings: Settings, world: World) -> tuple[Plan, Outcome]:
    try:
        plan = prepare(settings, world)
    except InputError as error:
        plan = Plan(suites=(), problems=error.problems, uncovered=0)
    progress = Progress(len(plan.checks), world, quiet=settings.quiet)
    jobs = settings.jobs or world.processors
    outcome = judge_all(plan.checks, world=world, jobs=jobs, tell=progress.count)
    progress.finish()
    return plan, outcome


def _report(plan: Plan, outcome: Outcome, settings: Settings, world: World) -> Report:
    complete = outcome.complete and not world.interruption.asked()
    by_config: dict[str, list[Result]] = {suite.file: [] for suite in plan.suites}
    for result in outcome.results:
        by_config[result.config].append(result)
    decision = decide(
        [(suite.gate, by_config[suite.file]) for suite in plan.suites],
        problems=plan.problems,
        uncovered=plan.uncovered,
        complete=complete,
        fail_on=settings.fail_on,
    )
    return Report(
        complete=complete,
        decision=_interrupted(decision, plan, outcome, world),
        totals=totals(outcome.results),
        results=outcome.results,
        problems=plan.problems,
    )


def _interrupted(decision: Decision, plan: Plan, outcome: Outcome, world: World) -> Decision:
    number = world.interruption.signal_number
    if number is None:
        return decision
    done = f"{len(outcome.results)} of {len(plan.checks)} checks were judged"
    why = f"interrupted by {signal.Signals(number).name}: {done}"
    return replace(decision, open=False, exit_code=128 + number, why=(why, *decision.why))


def _publish(report: Report, settings: Settings, world: World) -> Report:
    """Put the report wherever it is read, files first; the result says what could not be."""
    made = reporters(junit_dialect=settings.junit_dialect)
    texts, refused = _write(report, made, settings, world)
    if refused:
        report = _unwritten(report, refused)
        texts, _ = _write(report, made, settings, world)
    paths = {
        each.name: world.workspace.name_of(Path(settings.output_dir, each.file_name))
        for each in made
        if each.file_name not in refused
    }
    untold = (
        *(_add_summary(texts["summary.md"], world) if settings.summary else ()),
        *_set_outputs(outputs(report, paths), world),
    )
    say(
        render_console(
            report, quiet=settings.quiet, verbose=settings.verbose, colour=world.out.isatty()
        ),
        world.out,
    )
    if world.github.active and settings.annotations:
        say(render_annotations(report), world.out)
    if untold:
        _tell(untold, world)
    return report


def _write(
    report: Report, made: Sequence[Reporter], settings: Settings, world: World
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Write one after the other, so that none is lost where a later one breaks.

    Returns:
        All texts, and why a file could not be written, both by the file's name.
    """
    texts: dict[str, str] = {}
    refused: dict[str, str] = {}
    for each in made:
        texts[each.file_name] = each.render(report)
        refused |= _put(each.file_name, texts[each.file_name], settings, world)
    return texts, refused


def _put(name: str, text: str, settings: Settings, world: World) -> Mapping[str, str]:
    """Look at the folder again, which an evaluator may have removed or replaced."""
    try:
        folder = open_folder(settings.output_dir, world.workspace)
    except InputError as error:
        return {name: error.problems[0].message}
    return write_files(folder, {name: text}, world.workspace)


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


def _add_summary(text: str, world: World) -> tuple[Problem, ...]:
    return _added("GITHUB_STEP_SUMMARY", world.github.summary_file, text)


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
