"""``agentci plan``: show which checks would run (dry run)."""

import shlex
from collections.abc import Sequence
from typing import Final, TextIO

from agentci._util.text import truncate
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count
from agentci.config.settings import Settings
from agentci.errors import EvaluatorError
from agentci.model.judges import AskModel, JudgeConfig
from agentci.model.program import Agent, LocalProgram, Program
from agentci.model.requests import (
    CompareEmbeddings,
    Compose,
    ComputeMetric,
    ConstantJudgement,
    GradeWithService,
    RunCommand,
    RunProgram,
    Skip,
    Task,
)
from agentci.model.result import EXIT_INVALID_INPUT
from agentci.reports.problems import render_problems
from agentci.runner.check import Check
from agentci.runner.plan import Plan, make_plan, select_shard
from agentci.runner.services import Services

MAX_COMMAND_LENGTH: Final = 120
NO_CALL_NEEDED: Final = "evaluate without a program or model"


def show_plan(settings: Settings, services: Services, out: TextIO) -> int:
    """Print one line per check, then the problems of the input.

    Raises:
        InputError: the input is invalid, as in a run.
    """
    plan = select_shard(make_plan(settings, services), settings.shard)
    for check in plan.checks:
        place = check.evaluator.identity.place
        name = check.evaluator.identity.name
        description = _describe_check(check, settings, services)
        line = f"{place}: {check.case.id}, {name}: {description}{_describe_repetition(check)}"
        out.write(f"{escape_for_log_line(line)}\n")
    out.write(f"{_format_check_count(plan)}\n")
    out.write(render_problems(plan.problems, "text") if plan.problems else "")
    return EXIT_INVALID_INPUT if any(each.severity == "error" for each in plan.problems) else 0


def _format_check_count(plan: Plan) -> str:
    count = format_count(len(plan.checks), "check")
    if plan.shard_info is None:
        return count
    return f"{count} of {len(plan.shard_info.checks):,} in {plan.shard_info.shard}"


def _describe_check(check: Check, settings: Settings, services: Services) -> str:
    if check.read_result is not None:
        return f"read the result of {check.evaluator.identity.type}"
    agent = None if check.case_trials is None else check.case_trials.agent
    refusal = ""
    if not check.case.dialogue and agent is not None:
        refusal = services.explain_skipped_agent(agent, offline=settings.fetch_settings.offline)
        if not refusal:
            return _describe_agent_run(agent)
    if reason := check.case.unusable_reason:
        return f"error: {reason}, and {refusal}" if refusal else f"error: {reason}"
    try:
        request = check.evaluator.ask(check.load())
    except EvaluatorError as error:
        return f"error: {error}"
    return f"skip: {request.reason}" if isinstance(request, Skip) else _describe_task(request)


def _describe_repetition(check: Check) -> str:
    """Describe how many repeats and trials a check has."""
    times = check.evaluator.identity.repetition.times
    repeats = f"; {format_count(times, 'repeat')}" if times > 1 else ""
    trials = None if check.case_trials is None else check.case_trials.trials
    return repeats if trials is None else f"{repeats}; up to {format_count(trials.count, 'trial')}"


def _describe_agent_run(agent: Agent) -> str:
    line = agent.command if isinstance(agent.command, str) else shlex.join(agent.command)
    shown, seconds = truncate.short(line, MAX_COMMAND_LENGTH), agent.timeout_seconds
    return f"run the agent ({shown}) for at most {seconds:g} s; evaluate"


def _describe_task(task: Task) -> str:
    match task:
        case RunProgram(program=program):
            return f"run {_format_program(program)} for at most {task.timeout_seconds:g} s"
        case RunCommand(command=command):
            return f"run {_format_command(command)} for at most {task.timeout_seconds:g} s"
        case Compose(parts=parts):
            return (
                "; ".join(f"{name}: {_describe_task(part)}" for name, part in parts)
                or NO_CALL_NEEDED
            )
        case _:
            return _describe_builtin_task(task)


def _describe_builtin_task(
    task: AskModel | CompareEmbeddings | GradeWithService | ComputeMetric | ConstantJudgement,
) -> str:
    match task:
        case AskModel(judge=judge):
            return f"ask {_format_model(judge)} {format_count(judge.samples, 'time')}"
        case CompareEmbeddings(judge=judge):
            return f"compare embeddings of {_format_model(judge)}"
        case GradeWithService(items=items, service=service):
            return f"grade {format_count(len(items), 'turn')} with {service.base_url}"
        case ComputeMetric(metric=metric):
            return f"compute {metric}"
        case ConstantJudgement():
            return NO_CALL_NEEDED


def _format_model(judge: JudgeConfig) -> str:
    settings = judge.settings
    if settings.command:
        return _format_command(settings.command)
    return f"{settings.model} ({settings.provider})"


def _format_command(command: Sequence[str]) -> str:
    return truncate.short(shlex.join(command), MAX_COMMAND_LENGTH)


def _format_program(program: Program) -> str:
    if isinstance(program, LocalProgram):
        return program.path
    where = " at ".join(each for each in (program.repository, program.revision) if each)
    return f"{program.ref} ({program.source}{': ' if where else ''}{where})"
