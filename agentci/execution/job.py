"""A program with all that an executor needs to run it, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentci.execution.executor import Executor
from agentci.execution.limits import Confinement
from agentci.model.requests import ProgramReply


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an executor is asked for; see ``Executor.run``."""

    command: tuple[str, ...]
    stdin: bytes = field(repr=False)
    timeout_seconds: float
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    confinement: Confinement

    def run(self, executor: Executor) -> ProgramReply:
        """Have ``executor`` run it.

        Raises:
            EvaluatorError: as ``Executor.run``.
        """
        return executor.run(
            self.command,
            stdin=self.stdin,
            timeout_seconds=self.timeout_seconds,
            cwd=self.cwd,
            environment=self.environment,
            confinement=self.confinement,
        )
