"""``agentci run``: judge recordings, write reports, decide."""

import secrets
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentci.commands.plan import show_plan
from agentci.engines.world import World
from agentci.errors import InputError
from agentci.gate import decide, totals
from agentci.model.problem import Problem
from agentci.model.result import Decision, Report, Result
from agentci.pipeline import Outcome, judge_all
from agentci.preflight import Plan, prepare
from agentci.progress import Progress
from agentci.reporters.annotations import render_annotations
from agentci.reporters.console import render_console
from agentci.reporters.outputs import outputs, outputs_without_report, render_outputs
from agentci.reporters.problems import render_problems
from agentci.reporters.registry import reporters
from agentci.settings import Settings
from agentci.sinks import append, open_folder, write_files

EXIT_INVALID = 2


def run(settings: Settings, world: World) -> int:
    """Judge what ``settings`` name and return the exit code of the gate's decision.

    Reports are written before the code is decided on, also where the input is wrong and where the
    run breaks off.
    """
    if settings.plan:
        return show_plan(settings, world)
    try:
        folder = open_folder(settings.output_dir, world.workspace)
    except InputError as error:
        return refuse(error.problems, world)
    try:
        plan = prepare(settings, world)
    except InputError as error:
        plan = Plan(suites=(), problems=error.problems, uncovered=0)
    progress = Progress(len(plan.checks), world, quiet=settings.quiet)
    outcome = judge_all(
        plan.checks, world=world, jobs=settings.jobs or world.processors, tell=progress.count
    )
    progress.finish()
    report = _report(plan, outcome, settings, world)
    _publish(report, folder, settings, world)
    if outcome.bug is not None:
        raise outcome.bug
    return report.decision.exit_code


def refuse(problems: Sequence[Problem], world: World) -> int:
    """Tell of problems that leave not even a place for reports; outputs are set all the same."""
    world.out.write(render_problems(problems, "github" if world.github.active else "text"))
    if world.github.output_file is not None:
        values = outputs_without_report("invalid")
        append(world.github.output_file, render_outputs(values, _delimiter()))
    return EXIT_INVALID


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


def _publish(report: Report, folder: Path, settings: Settings, world: World) -> None:
    made = reporters(junit_dialect=settings.junit_dialect)
    texts = {reporter.file_name: reporter.render(report) for reporter in made}
    write_files(folder, texts, world.workspace)
    world.out.write(
        render_console(
            report,
            quiet=settings.quiet,
            verbose=settings.verbose,
            colour=world.out.isatty(),
        )
    )
    github = world.github
    if github.active and settings.annotations:
        world.out.write(render_annotations(report))
    if github.summary_file is not None and settings.summary:
        append(github.summary_file, texts["summary.md"])
    if github.output_file is not None:
        paths = {made_.name: world.workspace.name_of(folder / made_.file_name) for made_ in made}
        append(github.output_file, render_outputs(outputs(report, paths), _delimiter()))


def _delimiter() -> str:
    return f"agentci-{secrets.token_hex(16)}"
