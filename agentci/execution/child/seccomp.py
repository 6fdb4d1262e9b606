"""The system call filter of a sandboxed program, and the loopback sockets that it may have.

The filter needs no privilege, and every process that the program starts inherits it. A refused call
returns an error. Only calls through another processor's call table end the program; no compiler
emits them. A program that may reach one port of this machine gets each socket from its supervisor:
the kernel notifies the supervisor, which makes a TCP socket bound to the loopback device, so that
no data leaves the machine. Landlock limits the socket to one port.
"""

import ctypes
import errno
import os
import select
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fcntl import ioctl
from functools import cache
from typing import Final

from agentci.execution.child import kernel

# From the kernel's linux/seccomp.h: a notification, its response, and a descriptor added to the
# program. They need Linux 5.9.
SOCKET_REQUEST: Final = struct.Struct("=Q24xI4xI4xI4x24x")
SOCKET_RESPONSE: Final = struct.Struct("=QqiI")
ADDED_DESCRIPTOR: Final = struct.Struct("=QIIII")
RECEIVE_REQUEST: Final = 0xC0502100
SEND_RESPONSE: Final = 0xC0182101
ADD_DESCRIPTOR: Final = 0x40182103

LOOPBACK_DEVICE: Final = b"lo"
# Flags that a program may combine with the type of a socket.
SOCKET_FLAGS: Final = os.O_CLOEXEC | os.O_NONBLOCK
TCP_PROTOCOLS: Final = (0, socket.IPPROTO_TCP)


class LoopbackSockets:
    """Makes the sockets of one program.

    Args:
        descriptor: the seccomp listener on which the program's requests arrive.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Return the descriptor, readable on a request or once no process can send one."""
        return self._descriptor

    def handle_request(self) -> bool:
        """Handle one request; return False if no process can send one any more."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            return False
        with suppress(FileNotFoundError):  # the requesting process has ended meanwhile
            self._respond()
        return True

    def close(self) -> None:
        """Close the listener; every further request fails."""
        os.close(self._descriptor)

    def _respond(self) -> None:
        request = bytearray(SOCKET_REQUEST.size)
        self._ioctl(RECEIVE_REQUEST, request)
        number, family, kind, protocol = SOCKET_REQUEST.unpack(request)
        value, error = 0, 0
        try:
            value = self._add_socket(number, family, kind, protocol)
        except OSError as failure:
            error = failure.errno or errno.EPERM
        self._ioctl(SEND_RESPONSE, bytearray(SOCKET_RESPONSE.pack(number, value, -error, 0)))

    def _add_socket(self, number: int, family: int, kind: int, protocol: int) -> int:
        """Add a socket to the requesting process, and return its descriptor there.

        Raises:
            OSError: the program may not have such a socket.
        """
        requested = (family, kind & ~SOCKET_FLAGS)
        if requested != (socket.AF_INET, socket.SOCK_STREAM) or protocol not in TCP_PROTOCOLS:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM | kind & SOCKET_FLAGS) as added:
            added.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LOOPBACK_DEVICE)
            content = ADDED_DESCRIPTOR.pack(number, 0, added.fileno(), 0, kind & os.O_CLOEXEC)
            return self._ioctl(ADD_DESCRIPTOR, bytearray(content))

    def _ioctl(self, command: int, content: bytearray) -> int:
        while True:
            with suppress(InterruptedError):
                return int(ioctl(self._descriptor, command, content))


# From the kernel's asm/unistd_64.h and asm-generic/unistd.h.
X86_64_CALLS: Final = {
    "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "socketpair": 53, "clone": 56,
    "semget": 64, "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70,
    "msgctl": 71, "ptrace": 101,
    "syslog": 103, "pivot_root": 155, "chroot": 161, "acct": 163, "mount": 165, "umount2": 166,
    "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171,
    "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "semtimedop": 220, "mq_open": 240, "mq_unlink": 241, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "prlimit64": 302,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
    "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
AARCH64_CALLS: Final = {
    "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60, "acct": 89,
    "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "syslog": 116,
    "ptrace": 117, "reboot": 142, "sethostname": 161, "setdomainname": 162, "mq_open": 180,
    "mq_unlink": 181, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190,
    "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196,
    "socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218,
    "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225, "perf_event_open": 241,
    "prlimit64": 261, "name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
    "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
# The same on all processors.
COMMON_CALLS: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "clone3": 435, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    "open_tree_attr": 467,
}  # fmt: skip
# Filtered only for programs that get their sockets from the supervisor.
X86_64_SOCKET_CALLS: Final = {
    "sendto": 44, "sendmsg": 46, "bind": 49, "listen": 50, "sendmmsg": 307, "seccomp": 317,
}  # fmt: skip
AARCH64_SOCKET_CALLS: Final = {
    "bind": 200, "listen": 201, "sendto": 206, "sendmsg": 211, "sendmmsg": 269, "seccomp": 277,
}  # fmt: skip
SYSTEM_CALLS: Final[Mapping[str, Mapping[str, int]]] = {
    "x86_64": X86_64_CALLS | X86_64_SOCKET_CALLS | COMMON_CALLS,
    "aarch64": AARCH64_CALLS | AARCH64_SOCKET_CALLS | COMMON_CALLS,
}
ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Calls that could bypass Landlock's port rules, or make a socket that others can connect to.
LISTEN_CALLS: Final = ("bind", "listen")
# Position of the flags among a call's arguments: MSG_FASTOPEN connects without ``connect``.
SEND_FLAGS_ARGUMENT: Final = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
MSG_FASTOPEN: Final = 0x20000000
# Calls that are not always refused: some depend on the network or on flags (new namespaces), and
# clone3 fails with ENOSYS so that libraries use clone.
CONDITIONAL_CALLS: Final = frozenset(
    {"socket", "socketpair", "prlimit64", "clone", "clone3", *X86_64_SOCKET_CALLS}
)
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
NEW_NAMESPACES: Final = 0x7E020000
AF_UNIX: Final = 1
# Socket types with this bit can send to any address, even as one of a pair.
DATAGRAM_BIT: Final = 2
X32_BIT: Final = 0x40000000

# Offsets in struct seccomp_data.
CALL_NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
ARGUMENT_BYTES: Final = 8

LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW: Final = 0x7FFF0000
KILL_PROCESS: Final = 0x80000000
RETURN_ERRNO: Final = 0x00050000
NOTIFY: Final = 0x7FC00000

INSTRUCTION: Final = struct.Struct("=HBBI")
SET_MODE_FILTER: Final = 1
NEW_LISTENER: Final = 8
UNKNOWN_CALL: Final = -1
set_mode: Final = kernel.syscall(
    SYSTEM_CALLS.get(os.uname().machine, {}).get("seccomp", UNKNOWN_CALL),
    *(ctypes.c_ulong, ctypes.c_ulong, ctypes.c_char_p),
)


@cache
def make_filter(machine: str, *, network: bool, local: bool = True, notify: bool = False) -> bytes:
    """Make the filter for a processor, in the kernel's format.

    Args:
        machine: ``x86_64`` or ``aarch64``, as printed by ``uname -m``.
        network: whether sockets may be made; pairs connected only to each other always may.
        local: whether that includes Unix sockets.
        notify: whether the supervisor is notified of each call of ``socket`` and makes the socket.

    Raises:
        KeyError: the processor's system call numbers are unknown.
    """
    calls = SYSTEM_CALLS[machine]
    return b"".join(_make_instructions(machine, calls, network=network, local=local, notify=notify))


def install_filter(program: bytes, *, notify: bool = False) -> int:
    """Apply a filter to this process and all that it starts; requires NO_NEW_PRIVS.

    Returns:
        The descriptor on which notifications arrive if ``notify`` is true; otherwise 0.

    Raises:
        OSError: the kernel lacks filters or notifications, or the environment forbids them.
    """
    content = ctypes.create_string_buffer(program, len(program))
    count = len(program) // INSTRUCTION.size
    head = ctypes.create_string_buffer(struct.pack("@HP", count, ctypes.addressof(content)))
    return set_mode(SET_MODE_FILTER, NEW_LISTENER if notify else 0, head)


def _make_instructions(
    machine: str, calls: Mapping[str, int], *, network: bool, local: bool, notify: bool
) -> Iterator[bytes]:
    yield _make_instruction(LOAD, ARCHITECTURE)
    yield _make_instruction(JUMP_IF_EQUAL, ARCHITECTURES[machine], skip_if_so=1)
    yield _make_instruction(RETURN, KILL_PROCESS)
    yield _make_instruction(LOAD, CALL_NUMBER)
    if machine == "x86_64":
        yield _make_instruction(JUMP_IF_AT_LEAST, X32_BIT, skip_if_not=1)
        yield _make_instruction(RETURN, RETURN_ERRNO | errno.ENOSYS)
    for name, number in calls.items():
        if name not in CONDITIONAL_CALLS:
            yield from _refuse_call(number, errno.EPERM)
    # Its flags are in memory, which a filter cannot read; on ENOSYS libraries use clone.
    yield from _refuse_call(calls["clone3"], errno.ENOSYS)
    yield from _filter_sockets(calls, network=network, local=local, notify=notify)
    if notify or not (network and local):
        yield from _filter_socket_pairs(calls["socketpair"])
    yield from _filter_other_processes(calls["prlimit64"])
    yield from _refuse_flags(calls["clone"], 0, NEW_NAMESPACES)
    yield _make_instruction(RETURN, ALLOW)


def _filter_sockets(
    calls: Mapping[str, int], *, network: bool, local: bool, notify: bool
) -> Iterator[bytes]:
    if notify:
        yield _make_instruction(JUMP_IF_EQUAL, calls["socket"], skip_if_not=1)
        yield _make_instruction(RETURN, NOTIFY)
        for name in LISTEN_CALLS:
            yield from _refuse_call(calls[name], errno.EPERM)
        for name, place in SEND_FLAGS_ARGUMENT.items():
            yield from _refuse_flags(calls[name], place, MSG_FASTOPEN)
    elif not network:
        yield from _refuse_call(calls["socket"], errno.EPERM)
    elif not local:
        yield _make_instruction(JUMP_IF_EQUAL, calls["socket"], skip_if_not=4)
        yield _make_instruction(LOAD, FIRST_ARGUMENT)
        yield from _refuse_call(AF_UNIX, errno.EPERM)
        yield _make_instruction(RETURN, ALLOW)


def _filter_socket_pairs(number: int) -> Iterator[bytes]:
    """Refuse socket pairs whose ends could send to, or connect to, another address."""
    yield _make_instruction(JUMP_IF_EQUAL, number, skip_if_not=6)
    yield _make_instruction(LOAD, FIRST_ARGUMENT)
    yield _make_instruction(JUMP_IF_EQUAL, AF_UNIX, skip_if_not=2)
    yield _make_instruction(LOAD, FIRST_ARGUMENT + ARGUMENT_BYTES)
    yield _make_instruction(JUMP_IF_SET, DATAGRAM_BIT, skip_if_not=1)
    yield _make_instruction(RETURN, RETURN_ERRNO | errno.EPERM)
    yield _make_instruction(RETURN, ALLOW)


def _filter_other_processes(number: int) -> Iterator[bytes]:
    """Refuse the call for another process of the same user, which Landlock does not prevent."""
    yield _make_instruction(JUMP_IF_EQUAL, number, skip_if_not=4)
    yield _make_instruction(LOAD, FIRST_ARGUMENT)
    yield _make_instruction(JUMP_IF_EQUAL, 0, skip_if_so=1)
    yield _make_instruction(RETURN, RETURN_ERRNO | errno.EPERM)
    yield _make_instruction(RETURN, ALLOW)


def _refuse_call(number: int, code: int) -> Iterator[bytes]:
    yield _make_instruction(JUMP_IF_EQUAL, number, skip_if_not=1)
    yield _make_instruction(RETURN, RETURN_ERRNO | code)


def _refuse_flags(number: int, place: int, bits: int) -> Iterator[bytes]:
    """Refuse a call if its argument at ``place`` has any of ``bits`` set."""
    yield _make_instruction(JUMP_IF_EQUAL, number, skip_if_not=4)
    yield _make_instruction(LOAD, FIRST_ARGUMENT + ARGUMENT_BYTES * place)
    yield _make_instruction(JUMP_IF_SET, bits, skip_if_not=1)
    yield _make_instruction(RETURN, RETURN_ERRNO | errno.EPERM)
    yield _make_instruction(RETURN, ALLOW)


def _make_instruction(code: int, value: int, *, skip_if_so: int = 0, skip_if_not: int = 0) -> bytes:
    return INSTRUCTION.pack(code, skip_if_so, skip_if_not, value)
