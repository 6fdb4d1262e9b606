"""End processes that a killed supervisor left, found by a mark or as adopted children.

A program's processes inherit a mark in their environment, through any number of forks, sessions and
new parents. As a subreaper, this process becomes the parent of orphans below it. Both need Linux;
on other systems nothing is found or adopted.
"""

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentci.execution.child import kernel
from agentci.execution.child.descendants import is_alive

MARK_VARIABLE: Final = "AGENTCI_EVALUATOR_RUN"

# A process forked while the list is read is found in the next round.
MAX_ROUNDS: Final = 5
ROUND_SECONDS: Final = 0.005


def kill_marked_processes(mark: str) -> None:
    """Kill every process whose ``MARK_VARIABLE`` begins with ``mark``."""
    needle = f"{MARK_VARIABLE}={mark}".encode()
    for _ in range(MAX_ROUNDS):
        found = list(_find_marked(needle))
        if not found:
            return
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        time.sleep(ROUND_SECONDS)


def _find_marked(needle: bytes) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in (process / "environ").read_bytes():
                yield int(process.name)


# A killed process is gone in about a millisecond.
PAUSE_SECONDS: Final = 0.001
MAX_PAUSES: Final = 50


def become_subreaper() -> bool:
    """Become the parent of all orphans below this process; return whether that worked.

    Return False if this process has children already: other code started them, and their orphans
    would be adopted too.
    """
    if _has_children():
        return False
    try:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    except OSError:
        return False
    return True


def kill_children(*, excluded: Collection[int]) -> None:
    """Kill all descendants of this process; requires ``become_subreaper`` to reach all of them.

    The killed children are not reaped: the code that started them does that.

    Args:
        excluded: process ids of children that stay, with all below them.
    """
    for _ in range(MAX_PAUSES):
        living = [child for child in _living_children() if child not in excluded]
        if not living:
            return
        for child in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _living_children() -> Iterator[int]:
    ours = os.getpid()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == ours and is_alive(fields):
                yield int(process.name)
