"""What is left where not even a ward could end it, because the ward itself was killed: made ours.

Whoever starts a process and ends first leaves an orphan, which the system hands to the nearest
ancestor that asked for it. Only Linux can be asked; elsewhere nothing is adopted.
"""

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentci.execution.child.descendants import lives

PR_SET_CHILD_SUBREAPER: Final = 36

# A killed process is gone in about a millisecond.
PAUSE_SECONDS: Final = 0.001
MAX_PAUSES: Final = 50


def adopt() -> bool:
    """Become the parent of all orphans below this process, and say whether it is.

    Not where it has children already: they would be somebody else's, and so might their orphans.
    """
    import ctypes  # noqa: PLC0415 (only needed where programs are started)

    if _has_children():
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def end_children(*, spared: Collection[int]) -> None:
    """Kill every child of this process, and theirs; after ``adopt``, so that none is a stranger.

    Args:
        spared: the children that stay, with all below them.

    None is waited for: whoever started it does that.
    """
    for _ in range(MAX_PAUSES):
        living = [child for child in _living_children() if child not in spared]
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
            if int(fields[1]) == ours and lives(fields):
                yield int(process.name)
