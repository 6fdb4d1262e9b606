"""Who a container belongs to, and whether that process is still there.

An engine may serve many machines, and many containers of one, with process numbers of their own:
only where boot and number space are ours does a number tell us anything. All others are left alone.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

LABEL: Final = "agentci.owner"

BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
NUMBERS: Final = "/proc/self/ns/pid"
# Of the fields after the name in /proc/PID/stat: when the process was started.
START_FIELD: Final = 19
UNKNOWN: Final = "unknown"


def own_label() -> str:
    """What says of a container that it is this process's; Linux alone can tell."""
    start = _start_of(os.getpid())
    place = _place()
    return f"{place} {os.getpid()} {start}" if place and start else UNKNOWN


def is_gone(label: str) -> bool:
    """Whether the process that wrote ``label`` has certainly ended."""
    place, _, process = label.rpartition(" ")[0].rpartition(" ")
    if not place or place != _place() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    start = _start_of(int(process))
    return bool(start) and start != label.rpartition(" ")[2]


def _place() -> str:
    with suppress(OSError):
        return f"{BOOT.read_text('ascii').strip()} {os.readlink(NUMBERS)}"  # noqa: PTH115 (no path)
    return ""


def _start_of(process: int) -> str:
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
        return stat.rpartition(")")[2].split()[START_FIELD]
    return ""
