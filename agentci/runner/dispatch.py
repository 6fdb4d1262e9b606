"""Carries out what evaluators ask for: one engine for every kind of request."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never

from agentci._util.child_programs import GRADE
from agentci.errors import EvaluatorError
from agentci.execution.job import Job
from agentci.execution.limits import Confinement
from agentci.execution.runtimes.command import interpreter_of
from agentci.execution.runtimes.registry import command_elsewhere, command_for, imports_of
from agentci.model.grading import GradeRemotely
from agentci.model.program import LocalProgram, Program
from agentci.model.requests import (
    Measure,
    Measurement,
    ProgramReply,
    Reply,
    RunCommand,
    RunProgram,
    Settled,
)
from agentci.remote.programs import Ready
from agentci.runner.services import World

OF_OUR_PYTHON: Final = frozenset({"PYTHONPATH", "VIRTUAL_ENV"})


def carry_out(
    request: RunProgram | RunCommand | GradeRemotely | Measure | Settled, *, name: str, world: World
) -> Reply:
    """Do what ``request`` says.

    Args:
        name: the evaluator's, for messages.

    Raises:
        EvaluatorError: it could not be done.
    """
    match request:
        case RunProgram() | RunCommand():
            return run(request, name=name, world=world)
        case GradeRemotely():
            return _graded(request, world)
        case Measure():
            return _measure(request)
        case Settled():
            return request
        case _:
            assert_never(request)


def job_of(request: RunProgram | RunCommand, *, name: str, world: World) -> Job:
    """What an executor has to do for ``request``.

    Args:
        name: the evaluator's, for messages.

    Raises:
        EvaluatorError: its program is not there, or cannot be run on this machine.
    """
    if isinstance(request, RunCommand):
        from agentci.runner.command_line import job_of_command  # noqa: PLC0415 (seldom of use)

        return job_of_command(request, name=name, world=world)
    ready = ready_for(request.program, name, world)
    folder = ready.path.parent
    ours = isinstance(request.program, LocalProgram)
    return Job(
        command=_command(request, ready, world),
        stdin=request.stdin.encode("utf-8", "backslashreplace"),
        timeout_seconds=request.timeout_seconds,
        cwd=folder if request.image else world.workspace.cwd,
        environment={
            **_environment(ready, world),
            **{k: v for k, v in world.variables.items() if k in request.variables},
        },
        confinement=Confinement(
            network=request.network,
            readable=(
                *(folder, world.workspace.root),
                *_home(request.program),
                *_shims(request),
                *_key_file(request, world),
            ),
            # Of the machine, which only those who work on it can mean.
            interpreter=interpreter_of(ready.path) if ours else "",
            shares_memory=ours,
            memory_mb=request.memory_mb,
            processes=request.processes,
            image=request.image,
            imports=_imports(request, ready),
            own_packages=ready.python is not None,
        ),
    )


def executor_of(request: RunProgram | RunCommand) -> str:
    """The name of the executor that runs a program."""
    return request.executor


def run(request: RunProgram | RunCommand, *, name: str, world: World) -> ProgramReply:
    """Run a program; as ``carry_out``."""
    executor = world.executors.get(executor_of(request))
    if executor is None:
        raise EvaluatorError(f"there is no executor {executor_of(request)!r}")
    job = job_of(request, name=name, world=world)
    target = request.target if isinstance(request, RunCommand) else None
    try:
        if target is None:
            return job.run(executor)
        from agentci.runner.judge_proxy import asking  # noqa: PLC0415 (seldom of use)

        with asking(job, target, world) as job_with_target:
            return job_with_target.run(executor)
    except EvaluatorError as error:
        raise EvaluatorError(f"Custom evaluator '{name}' {error}") from None


def _command(request: RunProgram, ready: Ready, world: World) -> tuple[str, ...]:
    if request.image:
        *before, file = command_elsewhere(ready.path)
        shim = ("-c", Path(GRADE).read_text(encoding="utf-8")) if request.grades else ()
        return (*before, *shim, file)
    program, *others = command_for(ready.path, search_path=world.search_path, python=ready.python)
    return (program, *((GRADE,) if request.grades else ()), *others)


def _imports(request: RunProgram, ready: Ready) -> tuple[str, ...] | None:
    """What a program imports, where it may be a fork of a Python that has imported that already."""
    if request.isolation != "fork" or request.image:
        return None
    imports = imports_of(ready.path)
    if imports is None or not request.grades:
        return imports
    return tuple(dict.fromkeys((*(imports_of(Path(GRADE)) or ()), *imports)))


def _shims(request: RunProgram) -> tuple[Path, ...]:
    """What calls a grader, and has to be read for that."""
    return (Path(GRADE).parent,) if request.grades else ()


def _key_file(request: RunProgram, world: World) -> tuple[Path, ...]:
    """The file that one of its variables names."""
    named = world.variables.get(request.key_file)
    return (world.workspace.cwd / named,) if named else ()


def _home(program: Program) -> tuple[Path, ...]:
    """The repository of a config that was named from elsewhere."""
    if isinstance(program, LocalProgram) and program.home is not None:
        return (Path(program.home),)
    return ()


def _environment(ready: Ready, world: World) -> Mapping[str, str]:
    """What a program sees of ours; with a Python of its own, nothing that leads to our packages."""
    if ready.python is None:
        return world.child_environment
    return {
        name: value for name, value in world.child_environment.items() if name not in OF_OUR_PYTHON
    }


def ready_for(program: Program, name: str, world: World) -> Ready:
    """Where a program is, and what it needs.

    Raises:
        EvaluatorError: it could not be made ready.
    """
    try:
        return world.shelf.take(program)
    except EvaluatorError as error:
        raise EvaluatorError(f"Custom evaluator '{name}' {error}") from None


def _graded(request: GradeRemotely, world: World) -> Reply:
    if world.remote_grading is None:
        raise TypeError("a service is asked that no evaluator said it needs")
    return world.remote_grading.grade(request)


def _measure(request: Measure) -> Measurement:
    from agentci.evaluators.metrics.registry import METRICS  # noqa: PLC0415 (programs have no use for them)

    return METRICS[request.metric].measure(request.actual, request.golden, request.options)
