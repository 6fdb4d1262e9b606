"""A program that is to be run on this machine, and how."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agentci.executors.cell import with_user_packages
from agentci.executors.child.warmth import Warmth
from agentci.executors.confinement import Confinement
from agentci.shims import kernel

# Of a warm Python: longer than any run.
LIFETIME_SECONDS: Final = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What an executor is asked for, see :meth:`Executor.run`."""

    command: Sequence[str]
    stdin: bytes
    timeout_seconds: float
    cwd: Path
    environment: Mapping[str, str]
    confinement: Confinement | None

    @property
    def imports(self) -> tuple[str, ...]:
        """What the program may find imported; nothing where it starts by itself."""
        return self.confinement.imports or () if self.confinement is not None else ()

    @property
    def warmth(self) -> Warmth | None:
        """The Python that the program can be a fork of, where it may be one."""
        if self.confinement is None or self.confinement.imports is None or not kernel.IS_LINUX:
            return None
        environment = with_user_packages(self.environment)
        return Warmth.for_program(self.command[0], environment, self.confinement)

    def starting(self, warmth: Warmth) -> "Order":
        """What starts a warm Python in a jail of its own, for programs like this one."""
        return replace(
            self,
            command=warmth.command,
            stdin=b"",
            cwd=Path("/"),
            environment={**self.environment, **dict(warmth.environment)},
            timeout_seconds=LIFETIME_SECONDS,
            confinement=warmth.jail(),
        )
