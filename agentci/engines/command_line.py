"""Runs command lines of configs, in the jail of every program."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agentci.engines.world import World
from agentci.errors import EvaluatorError
from agentci.executors.confinement import Confinement
from agentci.model.exchange import ProgramReply, RunCommand
from agentci.runtimes import node

BUN: Final = "bun"
JAVASCRIPT: Final = frozenset({"node", BUN})


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
                readable=(folder, world.workspace.root, *homes),
                shares_memory=True,
                memory_mb=request.memory_mb,
                processes=request.processes,
            ),
        )
    except EvaluatorError as error:
        raise EvaluatorError(f"Custom evaluator '{name}' {error}") from None


def _found(command: tuple[str, ...], folder: Path, search_path: str) -> tuple[str, ...]:
    """The command with the path of its program, so that the jail knows what it is."""
    program, *arguments = command
    if program in JAVASCRIPT and (script := _script(arguments, folder)) is not None:
        return _by_node(command, script, folder, search_path)
    named = str(folder / program) if "/" in program else program
    found = shutil.which(named, path=search_path)
    if found is None:
        what = "is not there, or not executable" if "/" in program else "is not on this machine"
        raise EvaluatorError(f"could not be started: {program!r} {what}")
    return (found, *arguments)


def _script(arguments: Sequence[str], folder: Path) -> str | None:
    """The file of JavaScript or TypeScript that comes first, `bun run` aside."""
    words = [each for each in arguments if each != "run"]
    is_script = bool(words) and Path(words[0]).suffix in node.EXTENSIONS
    return words[0] if is_script and (folder / words[0]).is_file() else None


def _by_node(
    command: tuple[str, ...], script: str, folder: Path, search_path: str
) -> tuple[str, ...]:
    """Run a script by a Node.js that understands it, also where a Bun is meant that is not here."""
    program, *arguments = command
    bun = shutil.which(program, path=search_path) if program == BUN else None
    if bun is not None:
        return (bun, *arguments)
    after = arguments[arguments.index(script) + 1 :]
    return (*node.command_for(folder / script, search_path=search_path), *after)
