"""``agentci plan``: say what a run would judge, and judge nothing."""

import shlex
from collections.abc import Sequence
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.escape import one_line
from agentci._util.text.format import count
from agentci.config.settings import Settings
from agentci.errors import EvaluatorError
from agentci.model.agent import Agent
from agentci.model.embedding import CompareEmbeddings
from agentci.model.grading import GradeRemotely
from agentci.model.judging import AskModel, Panel
from agentci.model.program import LocalProgram, Program
from agentci.model.requests import Compose, Measure, RunCommand, RunProgram, Settled, Skip, Task
from agentci.model.result import EXIT_INVALID
from agentci.reports.problems import render_problems
from agentci.runner.check import NO_TURNS, Check
from agentci.runner.plan import Plan, prepare
from agentci.runner.services import World
from agentci.runner.sharding import take

MAX_COMMAND: Final = 120
JUDGED_AT_ONCE: Final = "judge what is recorded"


def show_plan(settings: Settings, world: World) -> int:
    """Print a line a check, then what a run would tell of the input.

    Raises:
        InputError: as a run would.
    """
    plan = take(prepare(settings, world), settings.shard)
    for check in plan.checks:
        place = check.evaluator.identity.place
        name = check.evaluator.identity.name
        line = f"{place}: {check.case.id}, {name}: {_intent(check, settings)}{_often(check)}"
        world.out.write(f"{one_line(line)}\n")
    world.out.write(f"{_amount(plan)}\n")
    world.out.write(render_problems(plan.problems, "text") if plan.problems else "")
    return EXIT_INVALID if any(each.severity == "error" for each in plan.problems) else 0


def _amount(plan: Plan) -> str:
    amount = count(len(plan.checks), "check")
    if plan.portion is None:
        return amount
    return f"{amount} of {len(plan.portion.checks):,} in {plan.portion.shard}"


def _intent(check: Check, settings: Settings) -> str:
    agent = None if check.attempts is None else check.attempts.agent
    if not check.case.dialogue and agent is not None and not settings.access.offline:
        return _errand(agent)
    if not check.case.dialogue:
        return f"error: {check.case.no_run_because or NO_TURNS}"
    try:
        request = check.evaluator.ask(check.load())
    except EvaluatorError as error:
        return f"error: {error}"
    return f"skip: {request.reason}" if isinstance(request, Skip) else _deed(request)


def _often(check: Check) -> str:
    """How often all of that is done."""
    times = check.evaluator.identity.repetition.times
    repeats = f"; {count(times, 'repeat')}" if times > 1 else ""
    trials = None if check.attempts is None else check.attempts.trials
    return repeats if trials is None else f"{repeats}; up to {count(trials.count, 'trial')}"


def _errand(agent: Agent) -> str:
    line = agent.command if isinstance(agent.command, str) else shlex.join(agent.command)
    shown, seconds = truncate.short(line, MAX_COMMAND), agent.timeout_seconds
    return f"run the agent, {shown}, for at most {seconds:g} s; judge"


def _deed(task: Task) -> str:
    match task:
        case RunProgram(program=program):
            return f"run {_shown(program)} for at most {task.timeout_seconds:g} s"
        case RunCommand(command=command):
            return f"run {_line(command)} for at most {task.timeout_seconds:g} s"
        case Compose(parts=parts):
            return "; ".join(f"{name}: {_deed(part)}" for name, part in parts) or JUDGED_AT_ONCE
        case _:
            return _deed_of_ours(task)


def _deed_of_ours(
    task: AskModel | CompareEmbeddings | GradeRemotely | Measure | Settled,
) -> str:
    match task:
        case AskModel(panel=panel):
            return f"ask {_model(panel)} {count(panel.samples, 'time')}"
        case CompareEmbeddings(panel=panel):
            return f"compare embeddings of {_model(panel)}"
        case GradeRemotely(items=items, service=service):
            return f"have {count(len(items), 'turn')} graded at {service.base_url}"
        case Measure(metric=metric):
            return f"measure {metric}"
        case Settled():
            return JUDGED_AT_ONCE


def _model(panel: Panel) -> str:
    settings = panel.settings
    if settings.command:
        return _line(settings.command)
    return f"{settings.model} ({settings.provider})"


def _line(command: Sequence[str]) -> str:
    return truncate.short(shlex.join(command), MAX_COMMAND)


def _shown(program: Program) -> str:
    if isinstance(program, LocalProgram):
        return program.path
    where = " at ".join(each for each in (program.repository, program.revision) if each)
    return f"{program.ref} ({program.source}{': ' if where else ''}{where})"
