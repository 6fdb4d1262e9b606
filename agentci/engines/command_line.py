"""Runs command lines of configs, in the jail of every program."""

import shutil
from pathlib import Path

from agentci.engines.stand_ins import SDK_FOLDER, stand_in
from agentci.engines.world import World
from agentci.errors import EvaluatorError
from agentci.executors.confinement import Confinement
from agentci.model.exchange import ProgramReply, RunCommand


def run_command(request: RunCommand, *, name: str, world: World) -> ProgramReply:
    """Run the command of the evaluator ``name`` in its folder.

    Raises:
        EvaluatorError: it could not be started, or did not end by itself.
    """
    folder = Path(request.folder)
    homes = () if request.home is None else (Path(request.home),)
    try:
        return world.executors["local"].run(
            _found(request.command, folder, world.search_path),
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
            ),
        )
    except EvaluatorError as error:
        raise EvaluatorError(f"Custom evaluator '{name}' {error}") from None


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
