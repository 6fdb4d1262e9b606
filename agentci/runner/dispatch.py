"""Execute a request without the response cache: make the job of a program, and run it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never

from agentci._util.child_programs import GRADE_PATH
from agentci._util.workspace import ResolvedPath, restore_path, trust_path
from agentci.errors import EvaluatorError
from agentci.execution.executor_api import ProgramJob, SandboxPolicy
from agentci.execution.runtimes import (
    find_interpreter,
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
from agentci.runner.command_jobs import make_evaluator_command_job
from agentci.runner.services import Services

OWN_PYTHON_VARIABLES: Final = frozenset({"PYTHONPATH", "VIRTUAL_ENV"})


def dispatch_request(
    request: RunProgram | RunCommand | GradeWithService | ComputeMetric | ConstantJudgement,
    *,
    name: str,
    services: Services,
) -> Response:
    """Execute ``request``.

    Args:
        name: of the evaluator, for messages.

    Raises:
        EvaluatorError: the program or the service failed.
    """
    match request:
        case RunProgram() | RunCommand():
            return run_program(request, name=name, services=services)
        case GradeWithService():
            if services.remote_grading is None:
                raise TypeError("the evaluator does not declare that it needs a grading service")
            return services.remote_grading.grade(request)
        case ComputeMetric():
            return _compute_metric(request)
        case ConstantJudgement():
            return request
        case _:
            assert_never(request)


def make_job(request: RunProgram | RunCommand, *, name: str, services: Services) -> ProgramJob:
    """The job for an executor: command, input, environment and sandbox policy.

    Args:
        name: of the evaluator, for messages.

    Raises:
        EvaluatorError: the program does not exist, or cannot be run on this machine.
    """
    if isinstance(request, RunCommand):
        return make_evaluator_command_job(request, name=name, services=services)
    ready = find_ready_program(request.program, name, services)
    folder = ready.path.parent
    try:
        caches = services.select_caches(request.cache_dirs)
    except EvaluatorError as error:
        raise EvaluatorError(f"Evaluator `{name}`: {error}") from None
    is_local = isinstance(request.program, LocalProgram)
    return ProgramJob(
        command=_make_command(request, ready, services),
        stdin=request.stdin.encode("utf-8", "backslashreplace"),
        timeout_seconds=request.timeout_seconds,
        cwd=folder if request.image else services.workspace.cwd,
        environment={
            **_make_environment(ready, services),
            **services.variables.select(request.variables),
            **_read_own_variables(request, services),
            **{variable: str(path) for variable, path in caches.items()},
        },
        sandbox_policy=SandboxPolicy(
            network=request.network,
            readable=(
                restore_path(str(folder)) if is_local else trust_path(folder),
                restore_path(str(services.workspace.root)),
                *_find_home(request.program),
                *((trust_path(Path(GRADE_PATH).parent),) if request.function else ()),
                *_find_environment(ready),
                *_find_key_file(request, services),
                *caches.values(),
            ),
            workspace=services.workspace.root,
            # Only programs of the workspace may name an interpreter of this machine.
            interpreter=find_interpreter(ready.path) if is_local else "",
            shares_memory=is_local,
            memory_mb=request.memory_mb,
            processes=request.processes,
            image=request.image,
            imports=_find_imports(request, ready),
            untrusted_packages=ready.python is not None,
        ),
    )


def run_program(
    request: RunProgram | RunCommand, *, name: str, services: Services
) -> ProgramOutput:
    """Run a program; as ``dispatch_request``."""
    executor = services.executors.get(request.executor)
    if executor is None:
        raise EvaluatorError(f"executor `{request.executor}` not found")
    job = make_job(request, name=name, services=services)
    if request.unrecorded:
        _check_reads_recorded(request, name, services)
    model_access = request.model_access if isinstance(request, RunCommand) else None
    try:
        if model_access is None:
            return job.run(executor)

        from agentci.judges.target_proxy import open_judge_proxy  # noqa: PLC0415 (seldom needed)

        judge = services.judges[model_access.judge.budget_id]
        with open_judge_proxy(job, model_access, judge) as job_with_target:
            return job_with_target.run(executor)
    except EvaluatorError as error:
        raise EvaluatorError(f"Evaluator `{name}` {error}") from None


def _check_reads_recorded(request: RunProgram | RunCommand, name: str, services: Services) -> None:
    """Check that the program does not read what the recording does not say.

    Raises:
        EvaluatorError: it does.
    """
    from agentci.evaluators.definition import FileContents, find_command_files  # noqa: PLC0415 (seldom needed)
    from agentci.evaluators.recorded_calls import check_reads_recorded  # noqa: PLC0415 (likewise)
    from agentci.runner.fingerprints import SourceDigests  # noqa: PLC0415 (likewise)

    inline: tuple[str, ...] = ()
    if isinstance(request, RunCommand):
        files = find_command_files(request.command, folder=request.folder, home=request.home)
        # Code on the command line, as after `python -c`.
        inline = tuple(word for word in request.command if any(map(str.isspace, word)))
    else:
        ready = find_ready_program(request.program, name, services)
        home = request.program.home if isinstance(request.program, LocalProgram) else None
        if home is None and not isinstance(request.program, LocalProgram):
            home = str(ready.tree or ready.path.parent)
        files = FileContents(str(ready.path), home=home, function=request.function)
    try:
        code = (*inline, *SourceDigests(services.workspace).read(files))
        check_reads_recorded(code, request.unrecorded)
    except EvaluatorError as error:
        raise EvaluatorError(f"Evaluator `{name}` {error}") from None


def _make_command(request: RunProgram, ready: ReadyProgram, services: Services) -> tuple[str, ...]:
    if request.image:
        *interpreter, file = make_image_command(ready.path)
        grade_arguments = (
            ("-c", Path(GRADE_PATH).read_text(encoding="utf-8")) if request.function else ()
        )
        return (*interpreter, *grade_arguments, file)
    program, *others = make_command(
        ready.path, search_path=services.search_path, python=ready.python
    )
    return (program, *((GRADE_PATH,) if request.function else ()), *others)


def _find_imports(request: RunProgram, ready: ReadyProgram) -> tuple[str, ...] | None:
    """The modules to preload if the program may be forked from a running Python; else None."""
    if request.isolation != "fork" or request.image:
        return None
    imports = find_preloadable_imports(ready.path)
    if imports is None or not request.function:
        return imports
    return tuple(dict.fromkeys((*(find_preloadable_imports(Path(GRADE_PATH)) or ()), *imports)))


def _find_environment(ready: ReadyProgram) -> tuple[ResolvedPath, ...]:
    """The folder with the packages that were installed for a program."""
    return () if ready.python is None else (trust_path(Path(ready.python).parent.parent),)


def _find_key_file(request: RunProgram, services: Services) -> tuple[ResolvedPath, ...]:
    """The file named by the variable ``key_file``, such as a service account's key."""
    named = services.variables.read_own(request.key_file)
    found = services.workspace.find_given(Path(named)) if named else None
    return () if found is None else (found,)


def _read_own_variables(request: RunProgram, services: Services) -> Mapping[str, str]:
    """The variables that agentci passes to a program of its own, as far as they are set."""
    values = {name: services.variables.read_own(name) for name in request.own_variables}
    return {name: value for name, value in values.items() if value}


def _find_home(program: Program) -> tuple[ResolvedPath, ...]:
    """The repository of a config outside the workspace."""
    if isinstance(program, LocalProgram) and program.home is not None:
        return (restore_path(program.home),)
    return ()


def _make_environment(ready: ReadyProgram, services: Services) -> Mapping[str, str]:
    """The environment of a program; one with a Python of its own must not find our packages."""
    if ready.python is None:
        return services.child_environment
    return {
        name: value
        for name, value in services.child_environment.items()
        if name not in OWN_PYTHON_VARIABLES
    }


def find_ready_program(program: Program, name: str, services: Services) -> ReadyProgram:
    """The path of a program on this machine, and its Python.

    Raises:
        EvaluatorError: it could not be fetched or installed.
    """
    try:
        return services.ready_programs.locate(program)
    except EvaluatorError as error:
        raise EvaluatorError(f"Evaluator `{name}` {error}") from None


def _compute_metric(request: ComputeMetric) -> MetricResult:
    from agentci.evaluators.metrics.registry import METRICS  # noqa: PLC0415 (programs do not need it)

    return METRICS[request.metric].measure(request.actual, request.expected, request.options)
