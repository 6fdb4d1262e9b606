"""Runtimes of other packages, held to what every runtime is: their faults are told as theirs."""

from pathlib import Path

from agentci.errors import EvaluatorError
from agentci.execution.runtimes.runtime import Runtime


class ForeignRuntime:
    """A runtime that another package brings.

    Args:
        title: how messages call it.
    """

    def __init__(self, runtime: Runtime, *, title: str) -> None:
        self.EXTENSIONS = runtime.EXTENSIONS
        self.ELSEWHERE: tuple[str, ...] = getattr(runtime, "ELSEWHERE", ())
        self.title = title
        self._runtime = runtime

    def command_for(self, path: Path, *, search_path: str) -> tuple[str, ...]:
        """See :class:`Runtime`."""
        command = self._ask(path, search_path)
        if not isinstance(command, (list, tuple)) or not command:
            raise self._fault(f"it made no command for {path.name!r}")
        if not all(type(word) is str and "\0" not in word for word in command):
            raise self._fault(f"its command for {path.name!r} is not made of texts")
        return tuple(command)

    def _ask(self, path: Path, search_path: str) -> object:
        try:
            return self._runtime.command_for(path, search_path=search_path)
        except EvaluatorError:
            raise
        except Exception as error:
            raise self._fault(f"{type(error).__name__}: {error}") from error

    def _fault(self, what: str) -> EvaluatorError:
        return EvaluatorError(
            f"{self.title} does not work: {what}; tell the authors of that package"
        )
