"""Carry out the requests of evaluators: route each to its service, and turn programs into jobs."""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, assert_never

import agentci.execution.child
from agentci._util.child_programs import GRADE_PATH
from agentci._util.workspace import (
    ResolvedPath,
    is_file,
    read_start,
    resolve_inside,
    restore_path,
    trust_path,
)
from agentci.errors import EvaluatorError
from agentci.execution.executor_api import ProgramJob, SandboxPolicy
from agentci.execution.runtimes import (
    NODE,
    PYTHON,
    TYPESCRIPT,
    Runtime,
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
from agentci.runner.services import Services

# `node` is always replaced, since not every version runs TypeScript; the others only if they are
# not installed.
NODE_COMMAND: Final = "node"
# What follows is code, which may import the files that further arguments name.
CODE_OPTION: Final = "-e"
# Substitutes for AgentV's SDKs, for repositories that have not installed them.
SDK_FOLDER: Final = Path(agentci.execution.child.__file__).parent / "agentv"
# The arguments with which Bun finds them.
BUN_ARGUMENTS: Final = ("run", "--preload", str(SDK_FOLDER / "bun.mjs"))
_SDK_IMPORT: Final = re.compile(rb"""['"](@agentv/(?:eval|sdk))['"]""")

# The first line of a script; `env` takes several words only after `-S`.
_SHEBANG: Final = re.compile(rb"#!\s*/usr/bin/env\s+(?:-S\s+([^\n]+)|(\S+)\s*\n)")
MAX_SHEBANG_BYTES: Final = 200
MAX_SCRIPT_BYTES: Final = 16 * 1024**2

SUBSTITUTE_RUNTIMES: Final[Mapping[str, Runtime]] = {NODE_COMMAND: NODE, "bun": NODE, "uv": PYTHON}


def find_substitute_command(
    command: Sequence[str], folder: Path, services: Services, roots: Sequence[Path]
) -> tuple[str, ...] | None:
    """The command that replaces one such as ``bun run x.ts`` or ``uv run x.py``.

    An executable script is started by the interpreter in its first line, which counts as part of
    the command.

    Args:
        roots: real paths of the folders in which a script may be; others are not read.

    Returns:
        None if the command can be run as written, or if its script is not found in ``folder``.

    Raises:
        EvaluatorError: no interpreter on this machine can run the script.
    """
    program, *arguments = (*_parse_shebang(command[0], folder, roots), *command)
    runtime = SUBSTITUTE_RUNTIMES.get(program)
    if runtime is None:
        return None
    installed = None if program == NODE_COMMAND else _find_on_path(program, services)
    words = arguments[1:] if arguments[:1] == ["run"] else arguments
    if program == NODE_COMMAND and words[:1] == [CODE_OPTION]:
        return _find_node_for_code(words, services)
    is_script = bool(words) and Path(words[0]).suffix in runtime.EXTENSIONS
    script = folder / words[0] if is_script else folder
    content = _read_script(script, roots, MAX_SCRIPT_BYTES) if is_script else None
    if content is None:
        return None
    if installed is not None:
        return (installed, *BUN_ARGUMENTS, *words) if _lacks_sdk(script, content) else None
    interpreter, *others = runtime.command_for(script, search_path=services.search_path)
    return (interpreter, *_make_sdk_arguments(script, content), *others, *words[1:])


def _find_node_for_code(words: Sequence[str], services: Services) -> tuple[str, ...]:
    """The command that runs code, with a Node.js for TypeScript if a word names such a file."""
    named = next((each for each in words if Path(each).suffix in TYPESCRIPT), "")
    interpreter, *_ = NODE.command_for(Path(named), search_path=services.search_path)
    return (interpreter, *_make_sdk_arguments(Path(named), b""), *words)


def _read_script(path: Path, roots: Iterable[Path], limit_bytes: int) -> bytes | None:
    """The first bytes of a script; None if it cannot be read, or is in none of the ``roots``."""
    real = resolve_inside(path, roots)
    with suppress(OSError, ValueError):  # ValueError: a NUL character
        return None if real is None else read_start(real, limit_bytes)
    return None


def _parse_shebang(program: str, folder: Path, roots: Sequence[Path]) -> tuple[str, ...]:
    """The interpreter and its arguments in a program's first line; empty if it is not a script."""
    path = folder / program
    if "/" not in program or not is_file(path) or not os.access(path, os.X_OK):
        return ()
    found = _SHEBANG.match(_read_script(path, roots, MAX_SHEBANG_BYTES) or b"")
    return () if found is None else tuple(os.fsdecode(found[1] or found[2]).split())


def _lacks_sdk(script: Path, content: bytes) -> bool:
    """Whether a script imports an SDK of AgentV that is not installed; Bun would download it."""
    named = _SDK_IMPORT.search(content)
    if script.suffix in PYTHON.EXTENSIONS or named is None:
        return False
    package = Path("node_modules") / os.fsdecode(named[1])
    return not any((folder / package).exists() for folder in script.absolute().parents)


def _make_sdk_arguments(script: Path, content: bytes) -> tuple[str, ...]:
    """The arguments with which Node.js finds AgentV's SDK, and TypeScript that is named `.js`."""
    needs_hooks = script.suffix in TYPESCRIPT or _SDK_IMPORT.search(content)
    if script.suffix in PYTHON.EXTENSIONS or not needs_hooks:
        return ()
    return ("--import", (SDK_FOLDER / "register.mjs").as_uri())


def make_evaluator_command_job(request: RunCommand, *, name: str, services: Services) -> ProgramJob:
    """The job that runs the command of the evaluator ``name``.

    Raises:
        EvaluatorError: the command was not found.
    """
    try:
        return make_command_job(request, services)
    except EvaluatorError as error:
        raise EvaluatorError(f"Evaluator `{name}` {error}") from None


def make_command_job(request: RunCommand, services: Services) -> ProgramJob:
    """The job that runs a command of an evaluator or an agent; in an image, as written.

    Raises:
        EvaluatorError: the command was not found, or the workflow does not open a folder that the
            request names; the message continues "Evaluator `x` ...".
    """
    folder = Path(request.folder)
    workspace = services.workspace.root
    readable = [
        restore_path(each) for each in (request.folder, str(workspace), request.home) if each
    ]
    roots = [each.path for each in readable]
    command = request.command
    if not request.image:
        command = _resolve_command(command, folder, services, roots)
    forks = request.isolation == "fork" and not request.image
    caches = services.select_caches(request.cache_dirs)
    return ProgramJob(
        command=command,
        stdin=request.stdin.encode("utf-8", "backslashreplace"),
        timeout_seconds=request.timeout_seconds,
        timeout_hint=request.timeout_hint,
        cwd=folder,
        environment={
            **services.child_environment,
            **services.variables.select(request.variables),
            **{variable: str(path) for variable, path in caches.items()},
        },
        sandbox_policy=SandboxPolicy(
            network=request.network,
            readable=(trust_path(SDK_FOLDER), *readable, *caches.values()),
            workspace=workspace,
            shares_memory=True,
            memory_mb=request.memory_mb,
            processes=request.processes,
            image=request.image,
            imports=_find_command_imports(command, folder, roots) if forks else None,
        ),
    )


def _resolve_command(
    command: tuple[str, ...], folder: Path, services: Services, roots: Sequence[Path]
) -> tuple[str, ...]:
    """The command with the path of its program, which the sandbox policy needs."""
    substitute = find_substitute_command(command, folder, services, roots)
    if substitute is not None:
        return substitute
    program, *arguments = command
    named = str(folder / program) if "/" in program else program
    found = _find_on_path(named, services)
    if found is None:
        what = "does not exist or is not executable" if "/" in program else "is not installed"
        raise EvaluatorError(f"could not be started: `{program}` {what}")
    return (found, *arguments)


def _find_on_path(program: str, services: Services) -> str | None:
    """The path of a program that runs in the sandbox, so it may be in the workspace."""
    return shutil.which(program, path=services.child_environment.get("PATH", os.defpath))


def _find_command_imports(
    command: Sequence[str], folder: Path, roots: Sequence[Path]
) -> tuple[str, ...] | None:
    """The modules to preload for a script run by our Python without interpreter options."""
    program, *arguments = command
    if not _is_own_python(Path(program)) or not arguments or arguments[0].startswith("-"):
        return None
    if any(
        "\0" in each for each in arguments
    ):  # a new process would reject it, so a fork must not accept it
        return None
    script = folder / arguments[0]
    inside = is_file(script) and resolve_inside(script, roots)
    return find_preloadable_imports(script) if inside else None


def _is_own_python(program: Path) -> bool:
    """Whether it is the Python that runs agentci; other Pythons lack its packages."""
    own = Path(sys.executable)
    with suppress(OSError):
        return program.parent == own.parent and program.samefile(own)
    return False


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
        timeout_hint=request.timeout_hint,
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
    """Run a program; arguments and errors as for ``dispatch_request``."""
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
    """Check that the program does not read what was not recorded.

    Raises:
        EvaluatorError: it does.
    """
    from agentci.evaluators.evaluator import (  # noqa: PLC0415 (seldom needed)
        FileContents,
        check_reads_recorded,
        find_command_files,
    )
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
    from agentci.evaluators.metrics import METRICS  # noqa: PLC0415 (programs do not need it)

    return METRICS[request.metric].measure(request.actual, request.expected, request.options)
