"""Environments with packages, for programs that want some."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentci.execution.environments.store import Environments


class Packages:
    """Makes environments; loads what it takes when the first one is wanted."""

    def __init__(self, make: "Callable[[], Environments]") -> None:
        self._make = make
        self._made: Environments | None = None
        self._lock = threading.Lock()

    def python_for(self, content: bytes, *, locked: tuple[str, ...], name: str) -> str:
        """The interpreter of an environment.

        Args:
            content: of a ``requirements.txt``.
            locked: its packages with their hashes, a line each; empty where they are not locked.
            name: the evaluator's, for what is told.

        Raises:
            EvaluatorError: the packages cannot be installed; as the end of a sentence about it.
        """
        # Most runs need none.
        from agentci.execution.environments.requirements import requirements_of  # noqa: PLC0415

        with self._lock:
            self._made = self._made or self._make()
        return self._made.python_for(requirements_of(content, locked=locked), name=name)
