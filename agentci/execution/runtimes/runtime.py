"""What every runtime is: how files of one language become commands."""

from pathlib import Path
from typing import Protocol


class Runtime(Protocol):
    """Knows which interpreter a file needs and where it is; a module is one."""

    EXTENSIONS: tuple[str, ...]
    """Of the files it runs, in lower case: ``(".py",)``."""

    ELSEWHERE: tuple[str, ...]
    """What goes before a file on another machine: ``("python3",)``; runtimes of other packages may
    lack it, and do not run there then."""

    def command_for(self, path: Path, *, search_path: str) -> tuple[str, ...]:
        """Make the command that runs ``path``, a file that exists.

        Args:
            search_path: folders with programs, as in ``PATH``.

        Raises:
            EvaluatorError: it cannot run on this machine; says what is missing.
        """
        ...
