"""The processes that start programs for us."""

import os
import select
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from agentci.errors import EvaluatorError
from agentci.execution.child.launcher import POKE, SEPARATOR
from agentci.execution.child_process.messages import Answers, Facts
from agentci.execution.child_process.prefork import PACKAGE, START, Warmth

COLD: Final = f"{START} from agentci.execution.child.launcher import main; main(int(sys.argv[2]))"
# It takes some hundredths of a second, on a machine that is not overloaded.
MAX_START_SECONDS: Final = 30.0
MAX_END_SECONDS: Final = 1.0
# An order fits into what the system keeps for who reads it, unless its environment is huge.
MAX_ORDER_SECONDS: Final = 30.0
GONE: Final = "could not be started: the process that starts programs was ended from outside"


class Launcher:
    """Our end of it.

    Args:
        channel: to its process.
        end: waits until the process has ended, once the channel is closed.
        number: of the process, where it is a child of ours.

    Attributes:
        warmth: None for one that has imported nothing.
        facts: what a jail can do here, see ``agentci.execution.child.capabilities``.
        folder: the only one that its programs can write to; empty where they have all of them.

    Raises:
        EvaluatorError: it does not work.
    """

    def __init__(
        self,
        channel: socket.socket,
        *,
        end: Callable[[], object],
        number: int | None,
        warmth: Warmth | None,
        folder: str = "",
    ) -> None:
        self._channel = channel
        self._end = end
        self._idle: defaultdict[tuple[str, ...], list[socket.socket]] = defaultdict(list)
        self.number = number
        self.warmth = warmth
        self.folder = folder
        channel.settimeout(MAX_START_SECONDS)
        facts = _first_words(channel)
        if facts is None:
            self.close()
            raise EvaluatorError(GONE)
        self.facts = facts

    def lives(self) -> bool:
        """Whether it is still there: it never says anything after its first words."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        return not poll.poll(0)

    def idle(self, imports: tuple[str, ...]) -> socket.socket | None:
        """To a ward that has done what it was asked for, if there is one."""
        try:
            return self._idle[imports].pop()
        except IndexError:
            return None

    def channel(self, imports: tuple[str, ...]) -> socket.socket:
        """To a new ward.

        Args:
            imports: modules that its program is going to import.

        Raises:
            OSError: the launcher is gone.
        """
        ours, its = socket.socketpair()
        ours.settimeout(MAX_ORDER_SECONDS)
        words = POKE + SEPARATOR.join(name.encode() for name in imports)
        with its:
            try:
                socket.send_fds(self._channel, [words], [its.fileno()])
            except OSError:
                ours.close()
                raise
        return ours

    def take_back(self, channel: socket.socket, imports: tuple[str, ...]) -> None:
        """Keep a ward that has done what it was asked for."""
        self._idle[imports].append(channel)

    def close(self) -> None:
        """Let it end once the programs that it started have."""
        for channels in self._idle.values():
            while channels:
                channels.pop().close()
        self._channel.close()
        self._end()


def launch(warmth: Warmth | None) -> Launcher:
    """Start one that nothing confines: what it imports is ours, or beside us.

    Raises:
        EvaluatorError, OSError: it cannot be started.
    """
    return _launch_cold() if warmth is None else _launch_warm(warmth)


def _launch_cold() -> Launcher:
    ours, its = socket.socketpair()
    with its:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", COLD, PACKAGE, str(its.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=_environment(),
            pass_fds=[its.fileno()],
            start_new_session=True,
        )
    return Launcher(ours, end=partial(_bury, process), number=process.pid, warmth=None)


def _launch_warm(warmth: Warmth) -> Launcher:
    ends: list[int] = []
    try:
        for make in STREAMS_OF_WARM_ONES:
            ends += make()
        its, ours, _, stdout, _, stderr = ends
        process = subprocess.Popen(
            warmth.command,
            stdin=its,
            stdout=stdout,
            stderr=stderr,
            cwd="/",
            env=dict(warmth.environment),
            start_new_session=True,
        )
        os.close(its)
        channel = socket.socket(fileno=ours)
        del ends[:2]
        return Launcher(channel, end=partial(_bury, process), number=process.pid, warmth=warmth)
    finally:
        for end in ends:
            os.close(end)


def _socket_pair() -> tuple[int, int]:
    its, ours = socket.socketpair()
    return its.detach(), ours.detach()


# The end that is read from comes first, as of a pipe.
STREAMS_OF_WARM_ONES: Final = (_socket_pair, os.pipe, os.openpty)


def _bury(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(MAX_END_SECONDS)


def _first_words(channel: socket.socket) -> Facts | None:
    try:
        facts = Answers(channel, Facts).next(MAX_START_SECONDS)
    except TimeoutError:
        return None
    return facts if facts and facts["machine"] == os.uname().machine else None


def _environment() -> dict[str, str]:
    """What a Python may need to start, and nothing that a program of the same user could read."""
    from os import environ  # noqa: PLC0415 (of the process that we are, not of a run)

    name = "LD_LIBRARY_PATH"
    return {name: environ[name]} if name in environ else {}
