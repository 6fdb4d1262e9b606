"""Change the user of a sandboxed program, where permitted, and drop its capabilities."""

import errno
import os
import struct
from contextlib import suppress
from typing import Final

from agentci.execution.child import kernel

CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER = 0, 1, 2, 3
CAP_KILL, CAP_SETGID, CAP_SETUID = 5, 6, 7
# Needed to run a program as another user, and to clean up after it.
NEEDED_CAPABILITIES: Final = (
    CAP_CHOWN,
    CAP_DAC_OVERRIDE,
    CAP_FOWNER,
    CAP_KILL,
    CAP_SETGID,
    CAP_SETUID,
)
MAX_CAPABILITIES: Final = 64

CAPABILITY_VERSION_3: Final = 0x20080522
AMBIENT_RAISE, AMBIENT_CLEAR_ALL = 2, 4


def read_effective_capabilities() -> int:
    """Return the effective capabilities of this process, one bit each."""
    with open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"CapEff:"):
                return int(line.split()[1], 16)
    return 0


def can_change_user() -> bool:
    """Whether this process can start programs as another user, and end them."""
    try:
        held = read_effective_capabilities()
    except OSError:
        return False
    return all(held >> number & 1 for number in NEEDED_CAPABILITIES)


def can_read_everything() -> bool:
    """Whether this process can read files that its user alone could not."""
    try:
        return bool(read_effective_capabilities() >> CAP_DAC_READ_SEARCH & 1)
    except OSError:
        return False


def set_user(user: int) -> None:
    """Become ``user`` permanently, with no other groups or saved ids.

    Raises:
        OSError: this process may not, or the user id does not exist here.
    """
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def shrink_bounding_set(kept: int = 1 << CAP_DAC_READ_SEARCH) -> None:
    """Limit the capabilities that any program started from here can get from its file to ``kept``.

    The current capabilities of this process stay.

    Args:
        kept: capabilities, one bit each; by default all that ``drop_privileges`` may leave.

    Raises:
        OSError: the kernel refuses, for a reason other than a missing privilege. Without that
            privilege, NO_NEW_PRIVS gives the same protection.
    """
    for number in range(MAX_CAPABILITIES):
        if kept >> number & 1:
            continue
        try:
            # Reading a capability takes a tenth of the time of dropping it.
            if kernel.prctl(kernel.PR_CAPBSET_READ, number):
                kernel.prctl(kernel.PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.EPERM}:  # no more capabilities, or no privilege
                return
            raise


def drop_privileges(user: int | None, *, searches: bool) -> None:
    """Give up all capabilities and become ``user`` (None: keep the current user).

    Args:
        searches: whether the process can still read folders that are closed to the user; then only
            Landlock limits what it can read.

    Raises:
        OSError: this process may not.
    """
    kept = 1 << CAP_DAC_READ_SEARCH if searches else 0
    shrink_bounding_set(kept)
    if user is not None:
        if searches:
            kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
        set_user(user)
    _set_capabilities(kept)
    with suppress(OSError):  # kernels before 4.3 lack ambient capabilities
        kernel.prctl(kernel.PR_CAP_AMBIENT, AMBIENT_CLEAR_ALL)
    if searches:
        kernel.prctl(kernel.PR_CAP_AMBIENT, AMBIENT_RAISE, CAP_DAC_READ_SEARCH)


def _set_capabilities(kept: int) -> None:
    kernel.capset(
        struct.pack("=Ii", CAPABILITY_VERSION_3, 0), struct.pack("=6I", kept, kept, kept, 0, 0, 0)
    )
