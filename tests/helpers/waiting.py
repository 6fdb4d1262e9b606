"""Wait for events without a limit: only pytest's own timeout ends a test that hangs."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

# Longer than pytest's timeout of one test, so that it never decides whether a test passes.
NO_TIMEOUT_SECONDS: Final = 900.0


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until ``holds`` returns something true."""
    while not holds():
        time.sleep(0.01)


def is_running(process_id: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def find_processes(word: str) -> list[int]:
    """Return the ids of the processes with ``word`` in their command lines."""
    return [
        int(entry.name)
        for entry in Path("/proc").glob("[0-9]*")
        if word in _read_command_line(entry)
    ]


def _read_command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
