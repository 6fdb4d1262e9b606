"""``agentci run``: judge recordings, write reports, decide."""

import signal
from collections.abc import Iterable

from agentci._util.files import open_folder
from agentci.cli.commands.plan import show_plan
from agentci.cli.publish import publish, publish_crash, refuse
from agentci.config.settings import BASE, Settings
from agentci.errors import InputError, InterruptionError
from agentci.gate.decision import decide, decide_shard, judged_by, totals
from agentci.gate.regression import reasons_of
from agentci.github.checkout import commit_at
from agentci.model.comparison import Comparison
from agentci.model.problem import Problem
from agentci.model.result import Decision, Report
from agentci.model.values import replace
from agentci.runner.keep_transcripts import ExchangeLog
from agentci.runner.open_response_cache import close_replies, open_replies
from agentci.runner.plan import Plan, prepare
from agentci.runner.prepare_graders import engage
from agentci.runner.prepare_judges import seat, spending_of
from agentci.runner.prepare_programs import equip
from agentci.runner.progress import Progress
from agentci.runner.run_checks import Outcome, judge_all
from agentci.runner.services import World
from agentci.runner.sharding import take


def run(settings: Settings, world: World) -> int:
    """Judge what ``settings`` name and return the exit code of the gate's decision.

    Reports are written before the code is decided on, also where the input is wrong and where the
    run breaks off.
    """
    if settings.plan:
        return show_plan(settings, world)
    world.interruption.at_once = False
    try:
        open_folder(settings.output_dir, world.workspace)
    except InputError as error:
        return refuse(error.problems, world)
    try:
        plan, outcome = _judged(settings, world)
        report = _kept(_report(plan, outcome, settings, world), settings, world)
        report = publish(report, settings, world)
    except Exception:
        publish_crash(world)
        raise
    if outcome.bug is not None:
        raise outcome.bug
    return report.decision.exit_code


def _judged(settings: Settings, world: World) -> tuple[Plan, Outcome]:
    plan, world = _planned(settings, world)
    # The shard is taken last, so that all shards of a run tell the same of its input.
    plan = take(plan, settings.shard)
    progress = Progress(len(plan.checks), world, quiet=settings.quiet)
    jobs = settings.jobs or world.processors
    replies, problems = open_replies(plan, settings, world)
    try:
        log = ExchangeLog(settings.exchanges)
        world = replace(world, replies=replies, exchanges=log)
        outcome, found = _outcome(plan, jobs, progress, settings, world)
    finally:
        problems = (*problems, *close_replies(replies))
    progress.finish()
    told = replace(plan, problems=(*plan.problems, *found, *problems))
    return told, replace(outcome, spending=spending_of(plan, world), exchanges=log.worst())


def _outcome(
    plan: Plan, jobs: int, progress: Progress, settings: Settings, world: World
) -> tuple[Outcome, Iterable[Problem]]:
    """What all checks come to, and what came up in the runs of the agents that they wait for."""
    if all(check.attempts is None for check in plan.checks):
        return judge_all(plan.checks, world=world, jobs=jobs, tell=progress.count), ()
    from agentci.runner.record_outputs import keep  # noqa: PLC0415 (likewise)
    from agentci.runner.trial_runner import Agents  # noqa: PLC0415 (of no use to most runs)

    agents = Agents(
        world=world,
        jobs=jobs,
        offline=settings.access.offline,
        tell=progress.count,
        note=progress.note,
        keep=lambda runs: keep(runs, plan.gates, settings, world),
    )
    return agents.judge(plan), agents.problems


def _planned(settings: Settings, world: World) -> tuple[Plan, World]:
    """What is to be judged, and the world that has all it takes.

    Nothing where that is wrong, or reading it was broken off.
    """
    try:
        try:
            world.interruption.at_once = True
            plan, world = equip(prepare(settings, world), settings, world)
            plan, world = seat(plan, settings, world)
            return plan, engage(plan, settings, world)
        finally:
            world.interruption.at_once = False
    except InputError as error:
        return Plan(suites=(), problems=error.problems), world
    except InterruptionError:
        return Plan(suites=(), problems=()), world


def _report(plan: Plan, outcome: Outcome, settings: Settings, world: World) -> Report:
    complete = outcome.complete and not world.interruption.asked()
    commit = commit_at(world.workspace, world.github)
    comparison = _comparison(plan, outcome, commit, settings, world)
    decision = _decision(plan, outcome, comparison, settings, complete=complete)
    return Report(
        complete=complete,
        decision=_interrupted(decision, plan, outcome, world),
        totals=totals(outcome.results),
        results=outcome.results,
        problems=(*plan.problems, *_shortcomings(world)),
        provenance=plan.provenance,
        gates=plan.gates,
        portion=plan.portion,
        spending=outcome.spending,
        comparison=comparison,
        commit=commit,
        exchanges=outcome.exchanges,
    )


def _comparison(
    plan: Plan, outcome: Outcome, commit: str, settings: Settings, world: World
) -> Comparison | None:
    """The run beside its baseline; what is a part of a run is compared once it is merged."""
    if not settings.baseline or plan.portion is not None:
        return None
    from agentci.github.baseline.compare import beside  # noqa: PLC0415 (of no use to most runs)

    return beside(settings, world, outcome.results, plan.gates, commit)


def _kept(report: Report, settings: Settings, world: World) -> Report:
    """The report, kept for later runs where this one was to be compared with an earlier one."""
    if settings.baseline != BASE:
        return report
    from agentci.github.baseline.save import keep  # noqa: PLC0415 (of no use to most runs)

    return keep(report, settings, world)


def _decision(
    plan: Plan,
    outcome: Outcome,
    comparison: Comparison | None,
    settings: Settings,
    *,
    complete: bool,
) -> Decision:
    judged = judged_by(plan.gates, outcome.results)
    if plan.portion is not None:
        return decide_shard(
            judged,
            shard=plan.portion.shard,
            problems=plan.problems,
            complete=complete,
            fail_on=settings.fail_on,
        )
    return decide(
        judged,
        problems=plan.problems,
        uncovered=sum(gate.uncovered for gate in plan.gates),
        complete=complete,
        fail_on=settings.fail_on,
        also=tuple(reasons_of(comparison, plan.gates)),
    )


def _shortcomings(world: World) -> Iterable[Problem]:
    """What was wanted of the jails of programs and could not be had, once each."""
    for text in world.executors.shortcomings():
        yield Problem(message=text, severity="warning")


def _interrupted(decision: Decision, plan: Plan, outcome: Outcome, world: World) -> Decision:
    number = world.interruption.signal_number
    if number is None:
        return decision
    done = f"{len(outcome.results)} of {len(plan.checks)} checks were judged"
    why = f"interrupted by {signal.Signals(number).name}: {done}"
    return replace(decision, open=False, exit_code=128 + number, why=(why, *decision.why))
