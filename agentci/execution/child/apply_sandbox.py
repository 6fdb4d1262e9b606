"""What a child does to itself before it runs foreign code: the jail, put up from inside.

All of it is inherited by whatever the program starts, and none of it can be undone.
"""

import os
import resource
import signal
from contextlib import suppress
from typing import Final

from agentci.execution.child import identity, kernel, landlock, seccomp
from agentci.execution.child.messages import Message

NOBODY_ASKED: Final = (
    "this kernel has no seccomp notifications (Linux 5.9), or forbids them; `target` needs them"
    " where `network` is false"
)
# Whom the system ends first when it runs out of memory.
SACRIFICE: Final = b"1000"


def enter(jail: Message) -> int | None:
    """Put this process under a jail.

    Args:
        jail: ``user`` (number or None), ``searches``, ``limits`` (name to number), ``rules`` for
            files (None: no Landlock), ``landlock`` (its version), ``filter`` (None: no seccomp),
            ``port``, the only one that it may connect to (None: as the filter has it).

    Returns:
        Where its requests for sockets arrive, where a port is all that it may reach.

    Raises:
        OSError, ValueError: a part of it cannot be had.
    """
    _limit(jail["limits"])
    with suppress(OSError):
        _write(b"/proc/self/oom_score_adj", SACRIFICE)
    if kernel.IS_LINUX:
        identity.limit(jail["user"], searches=jail["searches"])
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        # After the change of user, which forgets it.
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if jail["rules"] is not None:
        landlock.restrict(jail["rules"], jail["landlock"], port=jail["port"])
    if jail["filter"] is None:
        return None
    if jail["port"] is None:
        seccomp.install(jail["filter"])
        return None
    try:
        return seccomp.install(jail["filter"], asks=True)
    except OSError as error:
        raise OSError(error.errno, NOBODY_ASKED) from error


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        number = getattr(resource, name, None)  # not every system has all of them
        if number is None:
            continue
        _, most = resource.getrlimit(number)
        least = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(number, (least, least))


def _write(path: bytes, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
