"""Limit the files and ports of a sandboxed program with Landlock, which needs no privilege.

Landlock also keeps a program from inspecting processes outside its sandbox and, in newer kernels,
from sending them signals and from connecting to their abstract sockets.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from typing import Final, TypeAlias

from agentci.execution.child import kernel

C_LONG, C_BYTES = ctypes.c_long, ctypes.c_char_p
create_ruleset: Final = kernel.syscall(444, C_BYTES, C_LONG, C_LONG)
add_rule: Final = kernel.syscall(445, C_LONG, C_LONG, C_BYTES, C_LONG)
restrict_self: Final = kernel.syscall(446, C_LONG, C_LONG)
VERSION_FLAG: Final = 1
PATH_BENEATH, NET_PORT = 1, 2

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REMOVE_FILE, MAKE_REG = 1 << 5, 1 << 8
TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15
READ_RIGHTS: Final = EXECUTE | READ_FILE | READ_DIR
# Plain files, as shared memory and semaphores are, but no folders, links or sockets.
PLAIN_FILE_RIGHTS: Final = WRITE_FILE | READ_FILE | READ_DIR | REMOVE_FILE | MAKE_REG | TRUNCATE
# The rights that a rule for a single file may have.
FILE_RIGHTS: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
DEVICE_RIGHTS: Final = WRITE_FILE | READ_FILE | IOCTL_DEV

# The Landlock version that introduced each right: file rights, ports, and scopes, which limit
# effects on processes outside the sandbox.
FIRST_RIGHTS: Final = (1 << 13) - 1
RIGHTS_SINCE: Final = {2: 1 << 13, 3: TRUNCATE, 5: IOCTL_DEV}
PORTS_SINCE: Final = 4
CONNECT_TCP: Final = 1 << 1
SCOPES_SINCE: Final = 6
SCOPES: Final = 0b11

PathRule: TypeAlias = tuple[bytes, int]


def find_landlock_version() -> int:
    """Return the kernel's Landlock version; 0 if it has none."""
    try:
        return create_ruleset(None, 0, VERSION_FLAG)
    except OSError:
        return 0


def compute_rights(of_version: int) -> int:
    """Return all file rights that a Landlock version supports."""
    return FIRST_RIGHTS | sum(right for since, right in RIGHTS_SINCE.items() if since <= of_version)


def restrict_process(
    rules: Iterable[PathRule], of_version: int, *, port: int | None = None
) -> None:
    """Limit this process, and all that it starts, to ``rules``; requires NO_NEW_PRIVS.

    Paths that are missing, or that this process cannot reach, are left out.

    Args:
        port: the only TCP port that it may connect to, on any machine; None for all ports.

    Raises:
        OSError: the kernel refuses.
    """
    known = compute_rights(of_version)
    scopes = SCOPES if of_version >= SCOPES_SINCE else 0
    held = port is not None and of_version >= PORTS_SINCE
    attributes = struct.pack("=QQQ", known, CONNECT_TCP if held else 0, scopes)
    # Older kernels have a shorter structure; they accept a longer one if the rest is zero.
    ruleset = create_ruleset(attributes, len(attributes), 0)
    for path, allowed in rules:
        _add_path_rule(ruleset, path, allowed & known)
    if held:
        add_rule(ruleset, NET_PORT, struct.pack("=QQ", CONNECT_TCP, port), 0)
    restrict_self(ruleset, 0)
    os.close(ruleset)


def _add_path_rule(ruleset: int, path: bytes, allowed: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(folder).st_mode):
            allowed &= FILE_RIGHTS
        rule = struct.pack("=Qi", allowed, folder)
        add_rule(ruleset, PATH_BENEATH, rule, 0)
    finally:
        os.close(folder)
