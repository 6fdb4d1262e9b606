"""Runs command lines of configs, in the jail of every program."""

import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agentci.errors import EvaluatorError
from agentci.execution.job import Job
from agentci.execution.limits import Confinement
from agentci.execution.runtimes.registry import imports_of
from agentci.model.requests import RunCommand
from agentci.runner.interpreters import SDK_FOLDER, stand_in
from agentci.runner.services import World


def job_of_command(request: RunCommand, *, name: str, world: World) -> Job:
    """What the executor has to do to run the command of the evaluator ``name`` in its folder.

    Raises:
        EvaluatorError: the command is not there.
    """
    try:
        return job_of_line(request, world)
    except EvaluatorError as error:
        raise EvaluatorError(f"Custom evaluator '{name}' {error}") from None


def job_of_line(request: RunCommand, world: World) -> Job:
    """What the executor has to do to run a command, whosever it is.

    In an image it is what is written.

    Raises:
        EvaluatorError: the command is not there; as the end of a sentence about it.
    """
    folder = Path(request.folder)
    homes = () if request.home is None else (Path(request.home),)
    command = request.command
    if not request.image:
        command = _found(command, folder, world.search_path)
    forks = request.isolation == "fork" and not request.image
    return Job(
        command=command,
        stdin=request.stdin.encode("utf-8", "backslashreplace"),
        timeout_seconds=request.timeout_seconds,
        cwd=folder,
        environment={
            **world.child_environment,
            **{k: v for k, v in world.variables.items() if k in request.variables},
        },
        confinement=Confinement(
            network=request.network,
            readable=(folder, world.workspace.root, SDK_FOLDER, *homes),
            shares_memory=True,
            memory_mb=request.memory_mb,
            processes=request.processes,
            image=request.image,
            imports=_imports(command, folder) if forks else None,
        ),
    )


def _found(command: tuple[str, ...], folder: Path, search_path: str) -> tuple[str, ...]:
    """The command with the path of its program, so that the jail knows what it is."""
    other = stand_in(command, folder, search_path)
    if other is not None:
        return other
    program, *arguments = command
    named = str(folder / program) if "/" in program else program
    found = shutil.which(named, path=search_path)
    if found is None:
        what = "is not there, or not executable" if "/" in program else "is not on this machine"
        raise EvaluatorError(f"could not be started: {program!r} {what}")
    return (found, *arguments)


def _imports(command: Sequence[str], folder: Path) -> tuple[str, ...] | None:
    """What a script imports that our Python runs, with nothing said to the interpreter itself."""
    program, *arguments = command
    if not _is_ours(Path(program)) or not arguments or arguments[0].startswith("-"):
        return None
    if any("\0" in each for each in arguments):  # only a fork could be given that
        return None
    script = folder / arguments[0]
    return imports_of(script) if script.is_file() else None


def _is_ours(program: Path) -> bool:
    """Whether it is the Python that runs us, by any name beside it: others lack its packages."""
    ours = Path(sys.executable)
    with suppress(OSError):
        return program.parent == ours.parent and program.samefile(ours)
    return False
