"""Reaches others without making anything of its own: by numbers, by pairs, by its user."""

import ctypes
import os
import resource
import select
import socket

from attack import SCENE, attempt

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
NOTHING = ctypes.c_void_p(-1).value
STAT, REMOVE = 2, 0


def sends(kind, address):
    ours, its = socket.socketpair(socket.AF_UNIX, kind)
    with ours, its:
        ours.sendto(b"forged", address)
        return not stayed_with(its)


def connects(kind, address):
    ours, its = socket.socketpair(socket.AF_UNIX, kind)
    with ours, its:
        ours.connect(address)
        ours.send(b"forged")
        return not stayed_with(its)


def stayed_with(its):
    """Some kinds of sockets know no address but that of the other one."""
    return bool(select.select([its], [], [], 0)[0])


def shared_memory():
    return LIBC.shmat(SCENE["segment"], None, 0) != NOTHING


def limits():
    """What it has already: agentci is not to be harmed where this works."""
    nothing_changes = resource.prlimit(SCENE["pid"], resource.RLIMIT_CORE)
    return resource.prlimit(SCENE["pid"], resource.RLIMIT_CORE, nothing_changes)


attempt(
    {
        f"{act.__name__} {kind.name} {number}": lambda act=act, kind=kind, box=box: act(kind, box)
        for act in (sends, connects)
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET, socket.SOCK_STREAM)
        for number, box in enumerate(SCENE["letterboxes"])
    }
    | {
        "shared memory": shared_memory,
        "what is in it": lambda: LIBC.shmctl(SCENE["segment"], STAT, bytes(256)) >= 0,
        "its end": lambda: LIBC.shmctl(SCENE["segment"], REMOVE, None) >= 0,
        "the end of a queue": lambda: LIBC.mq_unlink(b"/none") == 0 or ctypes.get_errno() == 2,
        "limits of agentci": limits,
        "limits of its ward": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE),
    }
)
