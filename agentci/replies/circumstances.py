"""What a reply hangs on, as far as that is known before a program is run."""

from dataclasses import dataclass
from pathlib import Path

from agentci.executors.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """A program, and how it is run.

    Attributes:
        job: whatever its stdin is.
        executor: its name.
        program: the program's file.
        tree: the folder of a fetched program, named by its digest; else None.
        sealed: a digest of all that the program can read; None where it can read the workspace.
    """

    job: Job
    executor: str
    program: Path
    tree: Path | None = None
    sealed: str | None = None
