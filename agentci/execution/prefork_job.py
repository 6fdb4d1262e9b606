"""How a job is done by a Python that is warm."""

from pathlib import Path
from typing import Final

from agentci.execution.child import kernel
from agentci.execution.child_process.prefork import Warmth
from agentci.execution.environment_variables import child_environment
from agentci.execution.job import Job
from agentci.model.values import replace

# Of a warm Python: longer than any run.
LIFETIME_SECONDS: Final = 7 * 24 * 3600.0


def imports_for(job: Job) -> tuple[str, ...]:
    """What a program may find imported; nothing where it starts by itself."""
    return job.confinement.imports or ()


def warmth_for(job: Job) -> Warmth | None:
    """The Python that a program can be a fork of, where it may be one."""
    if job.confinement.imports is None or not kernel.IS_LINUX:
        return None
    return Warmth.for_program(job.command[0], job.environment, job.confinement)


def starting(warmth: Warmth, job: Job) -> Job:
    """What starts a warm Python in a jail of its own, for programs like that of ``job``.

    It sees nothing that ``job`` alone may see: its forks find all that it sees in their memory.
    """
    return replace(
        job,
        command=warmth.command,
        stdin=b"",
        cwd=Path("/"),
        environment=child_environment(job.environment) | dict(warmth.environment),
        timeout_seconds=LIFETIME_SECONDS,
        confinement=warmth.jail(job.confinement),
    )
