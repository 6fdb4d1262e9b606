"""What the jail can do on this machine, found out by doing it."""

import os
import resource
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from agentci.execution.child import identity, kernel, landlock, seccomp
from agentci.execution.child.messages import Message

# Numbers of users that nobody else gives away: systemd's list calls them unused. In a container
# that has few numbers there is only the one that is nobody.
FIRST_USER: Final = 0x70000000
NOBODY: Final = 65534
# Beyond so many of them nothing is counted.
MOST_TASKS: Final = 1 << 16


def facts() -> Message:
    """What holds here.

    Returns:
        ``system``: its name; ``users``: the first number of users that programs may get
        (``NOBODY``: only this one), None where we may not choose; ``tasks``: how many processes and
        threads programs share their user with, for a limit on their number; ``searches``: whether
        a program of another user can be let into closed folders; ``searching``: whether we were;
        ``root``: whether we are it; ``landlock``: its version, 0 for
        none; ``filters``: whether system calls can be refused; ``machine``: the processor.
    """
    machine = os.uname().machine
    users = _users()
    return {
        "system": os.uname().sysname,
        "users": users,
        "tasks": _tasks(users),
        "searches": _works(_search),
        "searching": os.geteuid() != 0 and identity.may_search(),
        "root": os.geteuid() == 0,
        "landlock": landlock.version() if _works(_landlock) else 0,
        "filters": machine in seccomp.CALLS and _works(_filter),
        "machine": machine,
    }


def _users() -> int | None:
    if identity.may_change():
        for user in (FIRST_USER, NOBODY):
            if _works(partial(identity.limit, user, searches=False)):
                return user
    return None


def _tasks(users: int | None) -> int:
    """How many there are, found by trying which limit lets one more be made.

    No list tells, because those of other containers count, too.
    """
    if users == FIRST_USER or (users is None and os.geteuid() == 0):
        return 0  # nobody else, or nobody whom a limit holds
    least, most = 0, MOST_TASKS
    while least < most:
        middle = (least + most) // 2
        if _works(partial(_fork, middle, users)):
            most = middle
        else:
            least = middle + 1
    return least


def _fork(limit: int, user: int | None) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, most))
    if user is not None:
        identity.limit(user, searches=False)
    number = os.fork()
    if number == 0:
        os._exit(0)
    os.waitpid(number, 0)


def _search() -> None:
    identity.limit(NOBODY, searches=True)


def _landlock() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict((), landlock.version())


def _filter() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(seccomp.filter_of(os.uname().machine, network=False))


def _works(attempt: Callable[[], None]) -> bool:
    """Whether a fork of this process gets through it."""
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
