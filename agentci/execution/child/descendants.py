"""End all descendants of this process, which must be a subreaper."""

import os
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

from agentci.execution.child import kernel

# A killed process is gone in about a millisecond, a fork bomb in some seconds. A process that hangs
# in the kernel must not block this one.
MAX_KILL_SECONDS: Final = 20.0
PAUSE_SECONDS: Final = 0.0005
MAX_PAUSE_SECONDS: Final = 0.02
# Index among the fields of /proc/PID/stat after the name, from 0.
THREAD_COUNT_FIELD: Final = 17


def kill_descendants(record_exit: Callable[[int, int], None], *, user: int | None) -> bool:
    """Kill every descendant and wait for it; return whether none is left.

    Args:
        record_exit: called with the process id and wait status of each child that has ended.
        user: user id that only these descendants run as on this machine; None if they share theirs.
    """
    if not reap_children(record_exit):
        return True
    if user is not None:
        _kill_user_processes(user)
    deadline, pause = time.monotonic() + MAX_KILL_SECONDS, PAUSE_SECONDS
    # Ended processes are not reaped while others live: they count toward the process limit, which
    # keeps a fork bomb from replacing them.
    while (living := find_descendants()) or reap_children(record_exit):
        if time.monotonic() > deadline:
            return False
        kill_processes(living)
        time.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE_SECONDS)
    return True


def kill_processes(found: Mapping[int, int]) -> None:
    """Kill processes with their groups: no member of a killed group escapes by forking.

    Args:
        found: process id to process group.
    """
    ours = os.getpgrp()
    for group in {group for group in found.values() if group != ours}:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for number, group in found.items():
        if group == ours:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)


def reap_children(record_exit: Callable[[int, int], None]) -> bool:
    """Wait for the children that have ended; return whether any others are left."""
    try:
        while True:
            number, status = os.waitpid(-1, os.WNOHANG)
            if number == 0:
                return True
            record_exit(number, status)
    except ChildProcessError:
        return False


def find_descendants(*, excluded: Collection[int] = ()) -> Mapping[int, int]:
    """Find the living descendants of this process, except the children in ``excluded`` and theirs.

    Returns:
        Process id to process group.
    """
    children = _list_children()
    unseen = [each for each in children.get(os.getpid(), ()) if each[0] not in excluded]
    found: dict[int, int] = {}
    while unseen:
        number, group = unseen.pop()
        unseen += children.get(number, ())
        found[number] = group
    return found


def _list_children() -> Mapping[int, list[tuple[int, int]]]:
    """List all living processes as (process id, group), by the process id of their parent."""
    found: dict[int, list[tuple[int, int]]] = {}
    for name in _list_folder(b"/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError):
                stat = _read_file(b"/proc/%s/stat" % name)
                fields = stat.rpartition(b")")[2].split()
                if is_alive(fields):
                    found.setdefault(int(fields[1]), []).append((int(name), int(fields[2])))
    return found


def is_alive(fields: Sequence[bytes]) -> bool:
    """Whether a process has a running thread; its first thread may have ended already.

    Args:
        fields: the fields of /proc/PID/stat after the name.
    """
    return fields[0] != b"Z" or int(fields[THREAD_COUNT_FIELD]) > 1


def _kill_user_processes(user: int) -> None:
    """Kill all processes of ``user`` in one system call, which even a fork bomb cannot escape."""
    number = os.fork()
    if number == 0:
        try:
            kernel.set_user(user)
            # The current user decides which processes this kills: without certainty, kill none.
            if os.getresuid() == (user, user, user) and kernel.read_effective_capabilities() == 0:
                os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    with suppress(ChildProcessError):
        os.waitpid(number, 0)


def _list_folder(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read_file(path: bytes) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
