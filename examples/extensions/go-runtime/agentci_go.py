"""Runs Go files with the `go` of the search path."""

import shutil
from pathlib import Path

from agentci.extend import EvaluatorError

EXTENSIONS = (".go",)
IMAGE_COMMAND = ("go", "run")


def command_for(path: Path, *, search_path: str) -> tuple[str, ...]:
    """Run ``go run file``.

    Raises:
        EvaluatorError: there is no Go on this machine.
    """
    go = shutil.which("go", path=search_path)
    if go is None:
        raise EvaluatorError(
            "Go not found on PATH (required for .go evaluators); install it from https://go.dev/dl"
        )
    return (go, "run", str(path))
