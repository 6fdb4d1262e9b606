"""Carries out what evaluators ask for: one engine for every kind of request."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never

from agentci._util.child_programs import GRADE_PATH
from agentci.errors import EvaluatorError
from agentci.execution.executor_api import ProgramJob, SandboxPolicy
from agentci.execution.runtimes.command import find_interpreter
from agentci.execution.runtimes.registry import (
    find_preloadable_imports,
    make_command,
    make_image_command,
)
from agentci.model.program import LocalProgram, Program
from agentci.model.requests import (
    ComputeMetric,
    ConstantJudgement,
    GradeWithService,
    MetricResult,
    ProgramOutput,
    Response,
    RunCommand,
    RunProgram,
)
from agentci.remote.programs import ReadyProgram
from agentci.runner.services import Services

OWN_PYTHON_VARIABLES: Final = frozenset({"PYTHONPATH", "VIRTUAL_ENV"})


def dispatch_request(
    request: RunProgram | RunCommand | GradeWithService | ComputeMetric | ConstantJudgement,
    *,
    name: str,
    services: Services,
) -> Response:
    """Do what ``request`` says.

    Args:
        name: the evaluator's, for messages.

    Raises:
        EvaluatorError: it could not be done.
    """
    match request:
        case RunProgram() | RunCommand():
            return run_program(request, name=name, services=services)
        case GradeWithService():
            return _grade_remotely(request, services)
        case ComputeMetric():
            return _compute_metric(request)
        case ConstantJudgement():
            return request
        case _:
            assert_never(request)


def make_job(request: RunProgram | RunCommand, *, name: str, services: Services) -> ProgramJob:
    """What an executor has to do for ``request``.

    Args:
        name: the evaluator's, for messages.

    Raises:
        EvaluatorError: its program is not there, or cannot be run on this machine.
    """
    if isinstance(request, RunCommand):
        from agentci.runner.command_jobs import make_evaluator_command_job  # noqa: PLC0415 (seldom of use)

        return make_evaluator_command_job(request, name=name, services=services)
    ready = find_ready_program(request.program, name, services)
    folder = ready.path.parent
    ours = isinstance(request.program, LocalProgram)
    return ProgramJob(
        command=_make_command(request, ready, services),
        stdin=request.stdin.encode("utf-8", "backslashreplace"),
        timeout_seconds=request.timeout_seconds,
        cwd=folder if request.image else services.workspace.cwd,
        environment={
            **_make_environment(ready, services),
            **{k: v for k, v in services.variables.items() if k in request.variables},
        },
        sandbox_policy=SandboxPolicy(
            network=request.network,
            readable=(
                *(folder, services.workspace.root),
                *_find_home(request.program),
                *_child_program_folders(request),
                *_find_key_file(request, services),
            ),
            # Of the machine, which only those who work on it can mean.
            interpreter=find_interpreter(ready.path) if ours else "",
            shares_memory=ours,
            memory_mb=request.memory_mb,
            processes=request.processes,
            image=request.image,
            imports=_find_imports(request, ready),
            untrusted_packages=ready.python is not None,
        ),
    )


def get_executor_name(request: RunProgram | RunCommand) -> str:
    """The name of the executor that runs a program."""
    return request.executor


def run_program(
    request: RunProgram | RunCommand, *, name: str, services: Services
) -> ProgramOutput:
    """Run a program; as ``dispatch_request``."""
    executor = services.executors.get(get_executor_name(request))
    if executor is None:
        raise EvaluatorError(f"there is no executor {get_executor_name(request)!r}")
    job = make_job(request, name=name, services=services)
    target = request.model_access if isinstance(request, RunCommand) else None
    try:
        if target is None:
            return job.run(executor)
        from agentci.runner.judge_proxy import open_judge_proxy  # noqa: PLC0415 (seldom of use)

        with open_judge_proxy(job, target, services) as job_with_target:
            return job_with_target.run(executor)
    except EvaluatorError as error:
        raise EvaluatorError(f"Evaluator `{name}` {error}") from None


def _make_command(request: RunProgram, ready: ReadyProgram, services: Services) -> tuple[str, ...]:
    if request.image:
        *before, file = make_image_command(ready.path)
        shim = (
            ("-c", Path(GRADE_PATH).read_text(encoding="utf-8")) if request.calls_function else ()
        )
        return (*before, *shim, file)
    program, *others = make_command(
        ready.path, search_path=services.search_path, python=ready.python
    )
    return (program, *((GRADE_PATH,) if request.calls_function else ()), *others)


def _find_imports(request: RunProgram, ready: ReadyProgram) -> tuple[str, ...] | None:
    """What a program imports, where it may be a fork of a Python that has imported that already."""
    if request.isolation != "fork" or request.image:
        return None
    imports = find_preloadable_imports(ready.path)
    if imports is None or not request.calls_function:
        return imports
    return tuple(dict.fromkeys((*(find_preloadable_imports(Path(GRADE_PATH)) or ()), *imports)))


def _child_program_folders(request: RunProgram) -> tuple[Path, ...]:
    """What calls a grader, and has to be read for that."""
    return (Path(GRADE_PATH).parent,) if request.calls_function else ()


def _find_key_file(request: RunProgram, services: Services) -> tuple[Path, ...]:
    """The file that one of its variables names."""
    named = services.variables.get(request.key_file)
    return (services.workspace.cwd / named,) if named else ()


def _find_home(program: Program) -> tuple[Path, ...]:
    """The repository of a config that was named from elsewhere."""
    if isinstance(program, LocalProgram) and program.home is not None:
        return (Path(program.home),)
    return ()


def _make_environment(ready: ReadyProgram, services: Services) -> Mapping[str, str]:
    """What a program sees of ours; with a Python of its own, nothing that leads to our packages."""
    if ready.python is None:
        return services.child_environment
    return {
        name: value
        for name, value in services.child_environment.items()
        if name not in OWN_PYTHON_VARIABLES
    }


def find_ready_program(program: Program, name: str, services: Services) -> ReadyProgram:
    """Where a program is, and what it needs.

    Raises:
        EvaluatorError: it could not be made ready.
    """
    try:
        return services.ready_programs.locate(program)
    except EvaluatorError as error:
        raise EvaluatorError(f"Evaluator `{name}` {error}") from None


def _grade_remotely(request: GradeWithService, services: Services) -> Response:
    if services.remote_grading is None:
        raise TypeError("a service is asked that no evaluator said it needs")
    return services.remote_grading.grade(request)


def _compute_metric(request: ComputeMetric) -> MetricResult:
    from agentci.evaluators.metrics.registry import METRICS  # noqa: PLC0415 (programs have no use for them)

    return METRICS[request.metric].measure(request.actual, request.expected, request.options)
