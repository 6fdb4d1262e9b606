import ctypes
import errno
import os

from attack import attempt

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": {"keyctl": 250, "bpf": 321, "userfaultfd": 323, "mount": 165, "unshare": 272,
               "ptrace": 101, "perf_event_open": 298, "open_by_handle_at": 304},
    "aarch64": {"keyctl": 219, "bpf": 280, "userfaultfd": 282, "mount": 40, "unshare": 97,
                "ptrace": 117, "perf_event_open": 241, "open_by_handle_at": 265},
}[os.uname().machine] | {"io_uring_setup": 425, "fsopen": 430, "pidfd_getfd": 438}


def call(number, *arguments):
    result = LIBC.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return result >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)


NEW_USER = 0x10000000
attempt(
    {name: lambda number=number: call(number, 0, 0, 0, 0, 0) for name, number in NUMBERS.items()}
    | {"a new namespace": lambda: call(NUMBERS["unshare"], NEW_USER)}
    | {"more rights": lambda: os.setuid(0) is None and os.getuid() == 0 and b"CapEff:\t0000000000000000" not in open("/proc/self/status", "rb").read()}
    | {"clone3": lambda: call(435, 0, 0)}
)
