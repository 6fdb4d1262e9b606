"""Starts programs for a process that has threads, which no process should fork Python code from.

Has one thread, and imports no more than it needs: a fork of it is quick, and safe to run Python in.
"""

import gc
import os
import select
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from agentci.execution.child import apply_sandbox, descendants, kernel, supervisor
from agentci.execution.child.messages import Message, send_json

# What stands before the names of modules that programs are going to import.
START_REQUEST: Final = b"!"
SEPARATOR: Final = b","
MAX_REQUEST_BYTES: Final = 4096


def main(descriptor: int) -> None:
    """Start a ward for each poke that comes, until the other end of the channel is gone."""
    LauncherServer(open_channel(descriptor)).serve()


def open_channel(descriptor: int) -> socket.socket:
    """The channel to whoever asks for programs; this process is no more than its other end."""
    with suppress(OSError):
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # who asks for programs decides when they end
    return socket.socket(fileno=descriptor)


class LauncherServer:
    """The process that starts wards.

    Args:
        foresee: is told the names of modules before a ward is started for what imports them.
        imitate: see :func:`ward.watch`.
    """

    def __init__(
        self,
        channel: socket.socket,
        *,
        foresee: Callable[[Sequence[str]], None] = lambda _: None,
        imitate: Callable[[Message], None] = lambda _: None,
    ) -> None:
        self._channel = channel
        self._preload = foresee
        self._become_program = imitate
        self._supervisors: set[int] = set()

    def serve(self) -> None:
        """Start wards, and bury them, until there will be no more."""
        self._wakeup, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        send_json(self._channel, apply_sandbox.find_capabilities())
        gc.freeze()
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        wanted = True
        while wanted or self._supervisors:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
                descendants.reap_children(self._forget_supervisor)
            if self._channel.fileno() in ready:
                wanted = self._start()
                if not wanted:
                    poll.unregister(self._channel)

    def _start(self) -> bool:
        """Start one ward; False when there will be no more."""
        poke, descriptors, _, _ = socket.recv_fds(self._channel, MAX_REQUEST_BYTES, 1)
        if not poke:
            return False
        self._preload(poke.removeprefix(START_REQUEST).decode().split(SEPARATOR.decode()))
        try:
            number = os.fork()
        except OSError:
            number = -1  # closing the channel tells of it
        if number == 0:
            self._run_supervisor(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        if number > 0:
            self._supervisors.add(number)
        return True

    def _run_supervisor(self, channel: int) -> None:
        try:
            signal.set_wakeup_fd(-1)
            for descriptor in (self._channel.detach(), self._wakeup, self._wake):
                os.close(descriptor)
            supervisor.supervise(socket.socket(fileno=channel), imitate=self._become_program)
            os._exit(0)
        except supervisor.BecameProgram:
            raise
        except BaseException:  # noqa: BLE001 (a fork must not go on as its parent)
            os._exit(1)

    def _forget_supervisor(self, number: int, status: int) -> None:
        """Forget a ward; where one was killed, end what it watched over and left to us."""
        if number in self._supervisors:
            self._supervisors.discard(number)
            if status != 0:
                descendants.kill_processes(descendants.find_descendants(spared=self._supervisors))
