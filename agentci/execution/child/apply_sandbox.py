"""Apply a sandbox to this process, and find out what a sandbox can do on this machine.

Every process that the program starts inherits the sandbox, and none can undo it.

Landlock limits files and ports without a privilege. It also keeps a program from inspecting
processes outside its sandbox and, in newer kernels, from sending them signals and from connecting
to their abstract sockets.

What programs leave in ``/dev/shm`` takes memory until the machine is restarted, and other programs
of their user can read it. Where a program has a user of its own, it is cleared afterwards.
Elsewhere a file system of the program's own goes away with it.
"""

import ctypes
import os
import resource
import signal
import stat
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from ctypes import c_char_p, c_int, c_ulong
from functools import partial
from typing import Final, TypeAlias

from agentci.execution.child import kernel, seccomp
from agentci.execution.child.socket_messages import Message

SHARED_MEMORY: Final = b"/dev/shm"
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
OPTIONS: Final = b"mode=1777"

_unshare: Final = kernel.declare_function("unshare", c_int)
_mount: Final = kernel.declare_function("mount", c_char_p, c_char_p, c_char_p, c_ulong, c_char_p)


def mount_private_memory() -> None:
    """Mount an empty ``/dev/shm`` that only this process and its children see.

    This takes a user namespace, in which the process has the same user, no other users and groups,
    and all capabilities: give them up afterwards. It must have only one thread.

    Raises:
        OSError: the kernel has no user namespaces for this process, or the system is not Linux.
    """
    user, group = os.geteuid(), os.getegid()
    kernel.check_result(_unshare(CLONE_NEWUSER | CLONE_NEWNS))
    # While this process writes to its files in /proc, other processes of its user can read its
    # memory, as they can later, when it is the program; sandboxed ones never can.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    try:
        # An unprivileged process may map its group only after denying `setgroups`.
        _write(b"/proc/self/setgroups", b"deny")
        _write(b"/proc/self/uid_map", b"%d %d 1" % (user, user))
        _write(b"/proc/self/gid_map", b"%d %d 1" % (group, group))
    finally:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    kernel.check_result(_mount(b"tmpfs", SHARED_MEMORY, b"tmpfs", flags, OPTIONS))


def _write(path: bytes, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


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


# User ids that nothing else assigns: systemd's list of id ranges calls them unused. A container
# with few ids has only ``nobody``.
FIRST_USER: Final = 0x70000000
NOBODY_USER: Final = 65534
# Upper limit of the search in ``_count_tasks``.
MAX_TASKS: Final = 1 << 16


def find_capabilities() -> Message:
    """Find out what a sandbox can do on this machine.

    Returns:
        ``system``: name of the operating system; ``first_user``: first user id that programs may
        get (``NOBODY_USER``: only this one), None if this process may not change its user;
        ``tasks``: number of processes and threads that share the programs' user, added to the
        limit on their number; ``grants_read_search``: whether a program of another user can be let
        into closed folders; ``has_read_search``: whether this process itself, not being root, can
        read closed folders; ``private_memory``: whether this process can give programs shared
        memory of their own; ``root``: whether this process runs as root; ``landlock``: Landlock
        version, 0 for none; ``filters``: whether seccomp filters work; ``machine``: the processor.
    """
    machine = os.uname().machine
    first_user = _find_first_user()
    return {
        "system": os.uname().sysname,
        "first_user": first_user,
        "tasks": _count_tasks(first_user),
        "grants_read_search": _succeeds_in_fork(_try_search),
        "has_read_search": os.geteuid() != 0 and kernel.can_read_everything(),
        "private_memory": _succeeds_in_fork(mount_private_memory),
        "root": os.geteuid() == 0,
        "landlock": find_landlock_version() if _succeeds_in_fork(_try_landlock) else 0,
        "filters": machine in seccomp.SYSTEM_CALLS and _succeeds_in_fork(_try_filter),
        "machine": machine,
    }


def _find_first_user() -> int | None:
    if kernel.can_change_user():
        for user in (FIRST_USER, NOBODY_USER):
            if _succeeds_in_fork(partial(kernel.drop_privileges, user, keeps_read_search=False)):
                return user
    return None


def _count_tasks(first_user: int | None) -> int:
    """Count the tasks of the programs' user by trying which limit still allows a fork.

    No process list has the number, because processes in other containers count too.
    """
    if first_user == FIRST_USER or (first_user is None and os.geteuid() == 0):
        return 0  # each program has its own user, or runs as root, which the limit does not bind
    least, most = 0, MAX_TASKS
    while least < most:
        middle = (least + most) // 2
        if _succeeds_in_fork(partial(_try_fork, middle, first_user)):
            most = middle
        else:
            least = middle + 1
    return least


def _try_fork(limit: int, user: int | None) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, most))
    if user is not None:
        kernel.drop_privileges(user, keeps_read_search=False)
    number = os.fork()
    if number == 0:
        os._exit(0)
    os.waitpid(number, 0)


def _try_search() -> None:
    kernel.drop_privileges(NOBODY_USER, keeps_read_search=True)


def _try_landlock() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    restrict_process((), find_landlock_version())


def _try_filter() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install_filter(seccomp.make_filter(os.uname().machine, network=False))


def _succeeds_in_fork(attempt: Callable[[], None]) -> bool:
    """Whether ``attempt`` succeeds in a fork of this process."""
    try:
        number = os.fork()
    except OSError:
        return False
    if number == 0:
        with suppress(BaseException):
            attempt()
            os._exit(0)
        os._exit(1)
    return os.waitpid(number, 0)[1] == 0


NO_SECCOMP_NOTIFICATIONS: Final = (
    "this kernel does not support seccomp notifications (Linux 5.9 or later), or forbids them;"
    " `target` with `network: false` requires them"
)
# The score of the processes that the system ends first when it runs out of memory.
OOM_SCORE: Final = b"1000"


def enter_sandbox(restrictions: Message) -> int | None:
    """Apply a sandbox to this process.

    Args:
        restrictions: ``user`` (user id or None), ``keeps_read_search`` (whether it can still
            read closed folders), ``private_memory`` (whether it gets a shared memory of its own),
            ``limits`` (name to number), ``rules`` for files (None: no
            Landlock), ``landlock`` (its version), ``filter`` (None: no seccomp), ``port``, the only
            one that it may connect to (None: the filter decides).

    Returns:
        The descriptor on which the program's requests for sockets arrive, if ``port`` is set.

    Raises:
        OSError, ValueError: a part of the sandbox cannot be applied.
    """
    _set_resource_limits(restrictions["limits"])
    with suppress(OSError):
        _write_file(b"/proc/self/oom_score_adj", OOM_SCORE)
    if restrictions["private_memory"]:
        mount_private_memory()
    if kernel.IS_LINUX:
        kernel.drop_privileges(
            restrictions["user"], keeps_read_search=restrictions["keeps_read_search"]
        )
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        # After the change of user, which resets it.
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if restrictions["rules"] is not None:
        restrict_process(restrictions["rules"], restrictions["landlock"], port=restrictions["port"])
    if restrictions["filter"] is None:
        return None
    if restrictions["port"] is None:
        seccomp.install_filter(restrictions["filter"])
        return None
    try:
        return seccomp.install_filter(restrictions["filter"], notify=True)
    except OSError as error:
        raise OSError(error.errno, NO_SECCOMP_NOTIFICATIONS) from error


def _set_resource_limits(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        number = getattr(resource, name, None)  # not every system has every limit
        if number is None:
            continue
        _, most = resource.getrlimit(number)
        least = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(number, (least, least))


def _write_file(path: bytes, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
