"""Turn command lines from configs into jobs for an executor."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import agentci.execution.child
from agentci.errors import EvaluatorError
from agentci.execution.executor_api import ProgramJob, SandboxPolicy
from agentci.execution.runtimes import node, python
from agentci.execution.runtimes.registry import Runtime, find_preloadable_imports
from agentci.model.requests import RunCommand
from agentci.runner.services import Services

# `node` is always replaced, since not every version runs TypeScript; the others only if they are
# not installed.
NODE: Final = "node"
# Substitutes for AgentV's SDKs, for repositories that have not installed them.
SDK_FOLDER: Final = Path(agentci.execution.child.__file__).parent / "agentv"
_SDK_IMPORT: Final = re.compile(rb"""['"]@agentv/(?:eval|sdk)['"]""")

# The first line of a script; `env` takes several words only after `-S`.
_SHEBANG: Final = re.compile(rb"#!\s*/usr/bin/env\s+(?:-S\s+([^\n]+)|(\S+)\s*\n)")
MAX_SHEBANG_BYTES: Final = 200

SUBSTITUTE_RUNTIMES: Final[Mapping[str, Runtime]] = {NODE: node, "bun": node, "uv": python}


def find_substitute_command(
    command: Sequence[str], folder: Path, search_path: str
) -> tuple[str, ...] | None:
    """The command that replaces one such as ``bun run x.ts`` or ``uv run x.py``.

    An executable script is started by the interpreter in its first line, which counts as part of
    the command.

    Returns:
        None if the command can be run as written, or if its script is not in ``folder``.

    Raises:
        EvaluatorError: no interpreter on this machine can run the script.
    """
    program, *arguments = (*_parse_shebang(command[0], folder), *command)
    runtime = SUBSTITUTE_RUNTIMES.get(program)
    if runtime is None or (program != NODE and shutil.which(program, path=search_path)):
        return None
    words = arguments[1:] if arguments[:1] == ["run"] else arguments
    if not words or Path(words[0]).suffix not in runtime.EXTENSIONS:
        return None
    script = folder / words[0]
    if not script.is_file():
        return None
    interpreter, *others = runtime.command_for(script, search_path=search_path)
    return (interpreter, *_make_sdk_arguments(script), *others, *words[1:])


def _parse_shebang(program: str, folder: Path) -> tuple[str, ...]:
    """The interpreter and its arguments in a program's first line; empty if it is not a script."""
    path = folder / program
    if "/" not in program or not path.is_file() or not os.access(path, os.X_OK):
        return ()
    with path.open("rb") as file:
        found = _SHEBANG.match(file.read(MAX_SHEBANG_BYTES))
    return () if found is None else tuple(os.fsdecode(found[1] or found[2]).split())


def _make_sdk_arguments(script: Path) -> tuple[str, ...]:
    """The arguments with which Node.js finds AgentV's SDK, if the script imports it."""
    if script.suffix in python.EXTENSIONS or not _SDK_IMPORT.search(script.read_bytes()):
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
        EvaluatorError: the command was not found; the message continues "Evaluator `x` ...".
    """
    folder = Path(request.folder)
    homes = () if request.home is None else (Path(request.home),)
    command = request.command
    if not request.image:
        command = _resolve_command(command, folder, services.search_path)
    forks = request.isolation == "fork" and not request.image
    return ProgramJob(
        command=command,
        stdin=request.stdin.encode("utf-8", "backslashreplace"),
        timeout_seconds=request.timeout_seconds,
        cwd=folder,
        environment={
            **services.child_environment,
            **{k: v for k, v in services.variables.items() if k in request.variables},
        },
        sandbox_policy=SandboxPolicy(
            network=request.network,
            readable=(folder, services.workspace.root, SDK_FOLDER, *homes),
            shares_memory=True,
            memory_mb=request.memory_mb,
            processes=request.processes,
            image=request.image,
            imports=_find_imports(command, folder) if forks else None,
        ),
    )


def _resolve_command(command: tuple[str, ...], folder: Path, search_path: str) -> tuple[str, ...]:
    """The command with the path of its program, which the sandbox policy needs."""
    substitute = find_substitute_command(command, folder, search_path)
    if substitute is not None:
        return substitute
    program, *arguments = command
    named = str(folder / program) if "/" in program else program
    found = shutil.which(named, path=search_path)
    if found is None:
        what = "does not exist or is not executable" if "/" in program else "is not installed"
        raise EvaluatorError(f"could not be started: `{program}` {what}")
    return (found, *arguments)


def _find_imports(command: Sequence[str], folder: Path) -> tuple[str, ...] | None:
    """The modules to preload for a script run by our Python without interpreter options."""
    program, *arguments = command
    if not _is_own_python(Path(program)) or not arguments or arguments[0].startswith("-"):
        return None
    if any(
        "\0" in each for each in arguments
    ):  # a new process would reject it, so a fork must not accept it
        return None
    script = folder / arguments[0]
    return find_preloadable_imports(script) if script.is_file() else None


def _is_own_python(program: Path) -> bool:
    """Whether it is the Python that runs agentci; other Pythons lack its packages."""
    own = Path(sys.executable)
    with suppress(OSError):
        return program.parent == own.parent and program.samefile(own)
    return False
