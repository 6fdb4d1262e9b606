"""Measure what supervisor and sandbox add to the start of a program."""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor

# What agentci adds to a spawned check, above starting its program and reading what it prints.
MAX_SECONDS: Final = 0.010
PROGRAM: Final = "/bin/true"


def measure(times: int) -> bool:
    """Print what each way of starting a program takes; tell whether that is within the limit.

    Args:
        times: how often each is done, in turns.
    """
    executor = LocalExecutor()
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, Callable[[], object]] = {
            "bare": lambda: subprocess.run([PROGRAM], capture_output=True, check=True),
            "supervised": lambda: _run(executor, Path(folder), None),
            "sandboxed": lambda: _run(executor, Path(folder), SandboxPolicy(network=False)),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for act in ways.values():
            act()  # the launcher starts with the first program
        for _ in range(times):
            for name, act in ways.items():
                taken[name].append(_seconds(act))
    executor.stop()
    medians = {name: statistics.median(each) for name, each in taken.items()}
    print(f"starting a program, {times} times each")
    for name, seconds in medians.items():
        print(f"  {name:<11} {seconds * 1000:6.2f} ms")
    own = medians["sandboxed"] - medians["bare"]
    print(f"  added by the sandbox {own * 1000:.2f} ms  (at most {MAX_SECONDS * 1000:.0f} ms)")
    print(f"  sandboxed to bare    {medians['sandboxed'] / medians['bare']:.1f}")
    for limitation in executor.limitations():
        print(f"  {limitation}")
    return own <= MAX_SECONDS


def _run(executor: LocalExecutor, folder: Path, sandbox_policy: SandboxPolicy | None) -> None:
    executor.run(
        (PROGRAM,),
        stdin=b"",
        timeout_seconds=30,
        cwd=folder,
        environment={"PATH": "/usr/bin:/bin"},
        sandbox_policy=sandbox_policy,
    )


def _seconds(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun
