"""Finds what left its process group: programs that made themselves daemons.

A mark in the environment is inherited by whatever a program starts, through any number of forks,
sessions and new parents. Only Linux tells the environment of other processes; elsewhere nothing is
found, and what left its group lives on.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "AGENTCI_EVALUATOR_RUN"

# Whoever forks while the list is read is found in the next one.
MAX_ROUNDS: Final = 5
ROUND_SECONDS: Final = 0.005


def end_marked(mark: str) -> None:
    """Kill every process whose ``MARK`` begins with ``mark``."""
    needle = f"{MARK}={mark}".encode()
    for _ in range(MAX_ROUNDS):
        found = list(_marked(needle))
        if not found:
            return
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        time.sleep(ROUND_SECONDS)


def _marked(needle: bytes) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in (process / "environ").read_bytes():
                yield int(process.name)
