"""System calls that Python's standard library lacks, and what is changed with them.

A sandboxed program runs without capabilities, and as another user where that is permitted.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_KEEPCAPS: Final = 8
PR_CAPBSET_READ: Final = 23
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47

IS_LINUX: Final = sys.platform == "linux"
LIBC: Final = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, *values: int) -> int:
    """Set or get an attribute of this process in the kernel.

    Raises:
        OSError: the kernel refuses, or the system is not Linux.
    """
    return check_result(_prctl(option, *(*values, 0, 0, 0, 0)[:4]))


def syscall(number: int, *kinds: type) -> Callable[..., int]:
    """Return a function for the system call ``number``; it raises OSError if the kernel refuses.

    Args:
        kinds: ctypes types of the arguments.
    """
    call = declare_function("syscall", ctypes.c_long, *kinds)
    return lambda *arguments: check_result(call(number, *arguments))


def capset(head: bytes, content: bytes) -> None:
    """Change the capabilities of this process.

    Raises:
        OSError: the kernel refuses.
    """
    check_result(_capset(head, content))


def declare_function(name: str, *kinds: type) -> Callable[..., int]:
    """Return a function of the C library, with argument types declared, which makes calls fast."""
    if not IS_LINUX:
        return _raise_unsupported
    function = LIBC[name]
    function.argtypes = kinds
    return function


def _raise_unsupported(*_: object) -> int:
    raise OSError("only Linux supports this")


_prctl: Final = declare_function("prctl", ctypes.c_int, *[ctypes.c_ulong] * 4)
_capset: Final = declare_function("capset", ctypes.c_char_p, ctypes.c_char_p)


def check_result(result: int) -> int:
    """Return what a function of the C library returned.

    Raises:
        OSError: it failed.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER = 0, 1, 2, 3
CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 5, 6, 7, 8
# Needed to run a program as another user, and to clean up after it.
NEEDED_CAPABILITIES: Final = (
    CAP_CHOWN,
    CAP_DAC_OVERRIDE,
    CAP_FOWNER,
    CAP_KILL,
    CAP_SETGID,
    CAP_SETUID,
)
# All that agentci uses: the last two to read closed workspaces and to limit capabilities further.
USED_CAPABILITIES: Final = (*NEEDED_CAPABILITIES, CAP_DAC_READ_SEARCH, CAP_SETPCAP)
MAX_CAPABILITIES: Final = 64

CAPABILITY_VERSION_3: Final = 0x20080522
AMBIENT_RAISE, AMBIENT_CLEAR_ALL = 2, 4


def read_effective_capabilities() -> int:
    """Return the effective capabilities of this process, one bit each."""
    return _read_capabilities(b"CapEff:")


def _read_capabilities(field: bytes) -> int:
    with open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(field):
                return int(line.split()[1], 16)
    return 0


def drop_unused_capabilities() -> None:
    """Give up what agentci never uses, also for all programs that it starts.

    Call it before the first thread starts: it applies to the current one.

    Raises:
        OSError: the kernel refuses.
    """
    used = sum(1 << number for number in USED_CAPABILITIES)
    shrink_bounding_set(used)
    permitted, inheritable = (_read_capabilities(name) & used for name in (b"CapPrm:", b"CapInh:"))
    # The kernel also limits the ambient set to these.
    _set_capabilities(permitted, inheritable)


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
            if prctl(PR_CAPBSET_READ, number):
                prctl(PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.EPERM}:  # no more capabilities, or no privilege
                return
            raise


def drop_privileges(user: int | None, *, keeps_read_search: bool) -> None:
    """Give up all capabilities and become ``user`` (None: keep the current user).

    Args:
        keeps_read_search: whether the process can still read folders that are closed to the user;
            then only Landlock limits what it can read.

    Raises:
        OSError: this process may not.
    """
    kept = 1 << CAP_DAC_READ_SEARCH if keeps_read_search else 0
    shrink_bounding_set(kept)
    if user is not None:
        if keeps_read_search:
            prctl(PR_SET_KEEPCAPS, 1)
        set_user(user)
    _set_capabilities(kept, kept)
    with suppress(OSError):  # kernels before 4.3 lack ambient capabilities
        prctl(PR_CAP_AMBIENT, AMBIENT_CLEAR_ALL)
    if keeps_read_search:
        prctl(PR_CAP_AMBIENT, AMBIENT_RAISE, CAP_DAC_READ_SEARCH)


def _set_capabilities(permitted: int, inheritable: int) -> None:
    capset(
        struct.pack("=Ii", CAPABILITY_VERSION_3, 0),
        struct.pack("=6I", permitted, permitted, inheritable, 0, 0, 0),
    )
