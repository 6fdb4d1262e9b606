"""What every executor is: a place where evaluators' programs run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from agentci.model.exchange import ProgramReply

INTERRUPTED = "interrupted"


class Executor(Protocol):
    """Runs programs, from any number of threads at once."""

    def run(
        self,
        command: Sequence[str],
        *,
        name: str,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> ProgramReply:
        """Run ``command`` to its end; whatever it started ends with it.

        Args:
            name: the evaluator's, for messages.
            timeout_seconds: wall time, start of the process included.
            environment: all that the program sees of ours.

        Raises:
            EvaluatorError: it could not be started, took too long, printed too much, or ``stop``
                was called.
        """
        ...

    def stop(self) -> None:
        """End all programs at once, and refuse to run any more.

        May be called from any thread, from a signal handler, and more than once.
        """
        ...
