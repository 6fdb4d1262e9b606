import ctypes
import os
from pathlib import Path

from attack import attempt

LIBC = ctypes.CDLL(None, use_errno=True)


def write(folder):
    Path(folder, "left-by-an-attack").write_text("for the next one")
    return False  # it may, as long as nobody finds it


attempt(
    {
        "a private folder": lambda: write(os.environ["TMPDIR"]),
        "home": lambda: write(os.environ["HOME"]),
        "shared memory": lambda: write("/dev/shm"),
        "/tmp": lambda: write("/tmp"),
        "/var/tmp": lambda: write("/var/tmp"),
        "System V memory": lambda: LIBC.shmget(4711, 4096, 0o1666) >= 0,
        "System V messages": lambda: LIBC.msgget(4711, 0o1666) >= 0,
        "a message queue": lambda: LIBC.syscall(240, b"left", 0o102, 0o666, 0) >= 0,
    }
)
