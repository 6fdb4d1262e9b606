"""Whole processes, with the time that they took and the memory that they came to."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BYTES_PER_RSS = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one process took.

    Attributes:
        seconds: wall time.
        cpu_seconds: of all its threads; other work on the machine changes it little.
        peak_bytes: its largest resident size.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Several runs of one command."""

    runs: tuple[Run, ...]

    @property
    def seconds(self) -> float:
        """Their median."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu_seconds(self) -> float:
        """Their median."""
        return statistics.median(run.cpu_seconds for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        """The largest of them."""
        return max(run.peak_bytes for run in self.runs)

    def __str__(self) -> str:
        seconds = sorted(run.seconds for run in self.runs)
        return (
            f"{self.seconds:6.3f} s [{seconds[0]:.3f} to {seconds[-1]:.3f}]"
            f"  {self.peak_bytes / 1e6:5.0f} MB"
        )


def compute_added_seconds(before: Runs, after: Runs) -> float:
    """Return the CPU seconds that commands run in turns differ by: the median over all pairs.

    Load on the machine changes both runs of a pair alike, and so hardly the difference.
    """
    return statistics.median(
        other.cpu_seconds - one.cpu_seconds
        for one, other in zip(before.runs, after.runs, strict=True)
    )


def run(command: Sequence[str], *, cwd: Path) -> Run:
    """Run a command to its end, its output thrown away.

    This process has to stay small: a child counts the memory of its parent until it is loaded.

    Raises:
        RuntimeError: it failed.
    """
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=_make_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return Run(
        seconds=seconds,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * BYTES_PER_RSS,
    )


def _make_environment() -> dict[str, str]:
    """Return an environment in which modules are compiled once, as those of a package are."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT)}


def run_in_turns(commands: Sequence[Sequence[str]], *, cwd: Path, times: int) -> list[Runs]:
    """Run commands one after the other, ``times`` times, so that all meet the same machine."""
    for command in commands:
        run(command, cwd=cwd)
    taken = [[run(command, cwd=cwd) for command in commands] for _ in range(times)]
    return [Runs(runs=runs) for runs in zip(*taken, strict=True)]
