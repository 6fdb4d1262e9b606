"""A Python that has started and imported, and whose forks become programs.

A fork is not to be told from ``python file``. So no frame of ours may lie below the program's: the
interpreter itself calls it. It does so by its hook for interactive use, which runs after the code
given with ``-c`` has ended, and in the place of which we put functions written in C alone; between
two calls of them a generator of ours is asked for the next program.
"""

import os
import socket
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import starmap
from operator import call
from typing import Final

from agentci.execution.child import identity
from agentci.execution.child.impersonate import Call, Guise
from agentci.execution.child.launcher import Launcher, channel_of
from agentci.execution.child.preload import Imports
from agentci.execution.child.supervisor import Imitated

OURS: Final = "agentci"
STDIN, STDOUT, STDERR = range(3)
INSPECT: Final = "PYTHONINSPECT"


def main(bare: Sequence[str]) -> None:
    """Have the interpreter start a program for each poke that comes, after this has returned.

    Stdin is the channel to whoever pokes, stderr a terminal.

    Args:
        bare: the names of the modules that every Python has before it looks at a file.
    """
    imports = Imports(bare, ours=os.path.dirname(sys.argv[1]))
    for name in [name for name in sys.modules if name.partition(".")[0] == OURS]:
        del sys.modules[name]  # a program finds its own
    disguise = Guise(imports, hook=getattr(sys, "__interactivehook__", None))
    codes: deque[int] = deque(maxlen=1)
    programs = _programs(channel_of(os.dup(STDIN)), disguise, codes)
    # The hook is called only where somebody could type something.
    os.dup2(STDERR, STDIN)
    os.dup2(STDOUT, STDERR)
    os.putenv(INSPECT, "1")
    sys.__interactivehook__ = partial(codes.extend, starmap(call, programs))


def _programs(channel: socket.socket, disguise: Guise, codes: deque[int]) -> Iterator[Call]:
    """What makes a fork of this process a program, and ends it; the process itself ends in here.

    Args:
        codes: what came of the call before.
    """
    os.unsetenv(INSPECT)
    os.dup2(STDOUT, STDIN)
    with suppress(OSError):  # once, for all forks: each of them only looks
        identity.shrink_bounding_set()
    try:
        Launcher(channel, foresee=disguise.foresee, imitate=disguise.imitate).serve()
        os._exit(0)
    except Imitated:
        pass
    except BaseException:  # noqa: BLE001 (nobody is there to tell)
        os._exit(1)
    yield disguise.put_on()
    yield disguise.take_off(failed=codes[-1] != 0)
