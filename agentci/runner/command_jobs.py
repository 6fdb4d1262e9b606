"""Turn command lines of configs into jobs for an executor."""

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

# `node` is looked for among all that are here, since not every one knows TypeScript; the others
# are only replaced where they are not here.
NODE: Final = "node"
# Stand-ins for AgentV's SDKs, where a repository has not installed them.
SDK_FOLDER: Final = Path(agentci.execution.child.__file__).parent / "agentv"
_SDK_IMPORT: Final = re.compile(rb"""['"]@agentv/(?:eval|sdk)['"]""")

# What a script says of itself; `env` takes several words with `-S` alone.
_SHEBANG: Final = re.compile(rb"#!\s*/usr/bin/env\s+(?:-S\s+([^\n]+)|(\S+)\s*\n)")
MAX_SHEBANG_BYTES: Final = 200

SUBSTITUTE_RUNTIMES: Final[Mapping[str, Runtime]] = {NODE: node, "bun": node, "uv": python}


def find_substitute_command(
    command: Sequence[str], folder: Path, search_path: str
) -> tuple[str, ...] | None:
    """The command that runs the same script, as ``bun run x.ts`` or ``uv run x.py`` would.

    A script that is a program of its own is one that is run as its first line says.

    None where there is no need for it, or no script in ``folder``.

    Raises:
        EvaluatorError: nothing on this machine can run the script.
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
    """The words that run a program of a config, by its first line; none where it is no script."""
    path = folder / program
    if "/" not in program or not path.is_file() or not os.access(path, os.X_OK):
        return ()
    with path.open("rb") as file:
        found = _SHEBANG.match(file.read(MAX_SHEBANG_BYTES))
    return () if found is None else tuple(os.fsdecode(found[1] or found[2]).split())


def _make_sdk_arguments(script: Path) -> tuple[str, ...]:
    """What has Node.js find AgentV's SDK for a judge that imports it."""
    if script.suffix in python.EXTENSIONS or not _SDK_IMPORT.search(script.read_bytes()):
        return ()
    return ("--import", (SDK_FOLDER / "register.mjs").as_uri())


def make_evaluator_command_job(request: RunCommand, *, name: str, services: Services) -> ProgramJob:
    """What the executor has to do to run the command of the evaluator ``name`` in its folder.

    Raises:
        EvaluatorError: the command is not there.
    """
    try:
        return make_command_job(request, services)
    except EvaluatorError as error:
        raise EvaluatorError(f"Evaluator `{name}` {error}") from None


def make_command_job(request: RunCommand, services: Services) -> ProgramJob:
    """What the executor has to do to run a command, whosever it is.

    In an image it is what is written.

    Raises:
        EvaluatorError: the command is not there; as the end of a sentence about it.
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
    """The command with the path of its program, so that the jail knows what it is."""
    other = find_substitute_command(command, folder, search_path)
    if other is not None:
        return other
    program, *arguments = command
    named = str(folder / program) if "/" in program else program
    found = shutil.which(named, path=search_path)
    if found is None:
        what = "is not there, or not executable" if "/" in program else "is not on this machine"
        raise EvaluatorError(f"could not be started: {program!r} {what}")
    return (found, *arguments)


def _find_imports(command: Sequence[str], folder: Path) -> tuple[str, ...] | None:
    """What a script imports that our Python runs, with nothing said to the interpreter itself."""
    program, *arguments = command
    if not _is_own_python(Path(program)) or not arguments or arguments[0].startswith("-"):
        return None
    if any("\0" in each for each in arguments):  # only a fork could be given that
        return None
    script = folder / arguments[0]
    return find_preloadable_imports(script) if script.is_file() else None


def _is_own_python(program: Path) -> bool:
    """Whether it is the Python that runs us, by any name beside it: others lack its packages."""
    ours = Path(sys.executable)
    with suppress(OSError):
        return program.parent == ours.parent and program.samefile(ours)
    return False
