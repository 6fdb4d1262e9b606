"""Runs seccomp filters as the kernel does."""

import struct
from collections.abc import Callable

from agentci.execution.child.seccomp import INSTRUCTION

LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
JUMPS: dict[int, Callable[[int, int], bool]] = {
    JUMP_IF_EQUAL: lambda a, b: a == b,
    JUMP_IF_AT_LEAST: lambda a, b: a >= b,
    JUMP_IF_SET: lambda a, b: bool(a & b),
}


def verdict(
    program: bytes,
    *,
    architecture: int,
    number: int,
    argument: int = 0,
    place: int = 0,
    first: int = 0,
) -> int:
    """Return the action for a system call with ``argument`` at ``place`` and 0 elsewhere.

    Args:
        first: the first argument, if ``place`` is that of another one.
    """
    arguments = [argument if each == place else 0 for each in range(6)]
    arguments[0] |= first
    data = struct.pack("=iIQ6Q", number, architecture, 0, *arguments)
    steps = [*INSTRUCTION.iter_unpack(program)]
    place = value = 0
    while True:
        code, if_so, if_not, operand = steps[place]
        place += 1
        if code == RETURN:
            return int(operand)
        if code == LOAD:
            [value] = struct.unpack_from("=I", data, operand)
        else:
            place += if_so if JUMPS[code](value, operand) else if_not
