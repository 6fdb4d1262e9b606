"""What every executor is: a place where evaluators' programs run."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from agentci.execution.limits import Confinement
from agentci.model.requests import ProgramReply

INTERRUPTED = "was interrupted"


class Executor(Protocol):
    """Runs programs, from any number of threads at once."""

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        confinement: Confinement | None = None,
    ) -> ProgramReply:
        """Run ``command`` to its end; whatever it started ends with it.

        Args:
            timeout_seconds: wall time, start of the process included.
            environment: all that the program sees of ours.
            confinement: what it may reach; None for a program that we trust as ourselves.

        Raises:
            EvaluatorError: it could not be started, took too long, printed too much, or ``stop``
                was called; as the end of a sentence about the program.
        """
        ...

    def shortcomings(self) -> Collection[str]:
        """What confinements asked for and this machine could not give, a sentence each."""
        ...

    def stop(self) -> None:
        """End all programs at once, and refuse to run any more.

        May be called from any thread, from a signal handler, and more than once.
        """
        ...


@runtime_checkable
class Sealing(Protocol):
    """An executor whose programs can read nothing but what it hands them."""

    def seal(self, cwd: Path, confinement: Confinement) -> str:
        """A digest of all that a program there can read, with what it runs in.

        Raises:
            EvaluatorError: as ``Executor.run``.
        """
        ...
