"""Runs Python files with the interpreter that runs us, and so with the packages beside us."""

import sys
from pathlib import Path

EXTENSIONS: tuple[str, ...] = (".py",)
ELSEWHERE: tuple[str, ...] = ("python3",)


def command_for(path: Path, *, search_path: str) -> tuple[str, ...]:
    """Run ``python file``: an evaluator's own folder comes first on its module path."""
    del search_path  # another Python on it would lack the packages
    return (sys.executable, str(path))
