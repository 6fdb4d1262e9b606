"""System calls that Python has no names for."""

import ctypes
import os
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_KEEPCAPS: Final = 8
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47

IS_LINUX: Final = sys.platform == "linux"
LIBC: Final = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, *values: int) -> None:
    """Change what the kernel thinks of this process.

    Raises:
        OSError: it does not, or is not Linux.
    """
    if not IS_LINUX:
        raise OSError("only Linux has prctl")
    arguments = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _check(LIBC.prctl(option, *arguments))


def syscall(number: int, *arguments: object) -> int:
    """Call the kernel by number.

    Args:
        arguments: numbers, None, or what ctypes takes for pointers.

    Raises:
        OSError: it refuses, or is not Linux.
    """
    if not IS_LINUX:
        raise OSError("only Linux has these numbers")
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _check(LIBC.syscall(ctypes.c_long(number), *given))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
