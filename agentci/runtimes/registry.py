"""The runtimes: a new language is a file and a line here."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError
from agentci.runtimes import command, node, python
from agentci.runtimes.base import Runtime

RUNTIMES: Final[Mapping[str, Runtime]] = {"python": python, "node": node, "command": command}


def why_unsupported(path: Path) -> str | None:
    """Say why the file cannot be an evaluator, None where it can, whatever is installed here."""
    if _runtime_for(path) is not command or os.access(path, os.X_OK):
        return None
    extensions = ", ".join(extension for each in RUNTIMES.values() for extension in each.EXTENSIONS)
    return f"{path.name!r} is none of {extensions}, nor executable (chmod +x, and a #! line)"


def command_for(path: Path, *, search_path: str, python: str | None = None) -> tuple[str, ...]:
    """Make the command that runs ``path``.

    Args:
        search_path: folders with programs, as in ``PATH``.
        python: the interpreter that has the packages of a Python program; None for ours.

    Raises:
        EvaluatorError: the file is gone, or cannot run on this machine.
    """
    if not path.is_file():
        raise EvaluatorError(f"Evaluator file not found: {path}")
    command = _runtime_for(path).command_for(path, search_path=search_path)
    return command if python is None else (python, *command[1:])


def _runtime_for(path: Path) -> Runtime:
    extension = path.suffix.lower()
    for runtime in RUNTIMES.values():
        if extension in runtime.EXTENSIONS:
            return runtime
    return command
