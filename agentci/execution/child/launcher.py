"""Start programs for a process with threads, where forking Python code is unsafe.

The launcher has one thread and imports only what it needs, so its forks are fast and can safely run
Python.
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

# Prefix of a request; the names of modules that the program will import follow.
START_REQUEST: Final = b"!"
SEPARATOR: Final = b","
MAX_REQUEST_BYTES: Final = 4096


def main(descriptor: int) -> None:
    """Start a supervisor for each request, until the other end of the channel is closed."""
    LauncherServer(open_channel(descriptor)).serve()


def open_channel(descriptor: int) -> socket.socket:
    """Open the channel to the client, and leave the end of programs to the client.

    This process becomes a subreaper, is not dumpable (programs of its user cannot inspect it), and
    ignores SIGINT, SIGTERM and SIGHUP.
    """
    with suppress(OSError):
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the client decides when programs end
    return socket.socket(fileno=descriptor)


class LauncherServer:
    """Starts supervisors, each a fork of this process.

    Args:
        preload: called with the names of a program's modules before its supervisor is started.
        become_program: see :func:`agentci.execution.child.supervisor.supervise`.
    """

    def __init__(
        self,
        channel: socket.socket,
        *,
        preload: Callable[[Sequence[str]], None] = lambda _: None,
        become_program: Callable[[Message], None] = lambda _: None,
    ) -> None:
        self._channel = channel
        self._preload = preload
        self._become_program = become_program
        self._supervisors: set[int] = set()

    def serve(self) -> None:
        """Start supervisors and reap them, until the channel is closed and all have ended."""
        self._wakeup, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        send_json(self._channel, apply_sandbox.find_capabilities())
        gc.freeze()
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        is_open = True
        while is_open or self._supervisors:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
                descendants.reap_children(self._forget_supervisor)
            if self._channel.fileno() in ready:
                is_open = self._start()
                if not is_open:
                    poll.unregister(self._channel)

    def _start(self) -> bool:
        """Start one supervisor; return False if the channel is closed."""
        request, descriptors, _, _ = socket.recv_fds(self._channel, MAX_REQUEST_BYTES, 1)
        if not request:
            return False
        self._preload(request.removeprefix(START_REQUEST).decode().split(SEPARATOR.decode()))
        try:
            number = os.fork()
        except OSError:
            number = -1  # the client sees its channel closed
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
            supervisor.supervise(socket.socket(fileno=channel), become_program=self._become_program)
            os._exit(0)
        except supervisor.BecameProgram:
            raise
        except BaseException:  # noqa: BLE001 (a fork must not go on as its parent)
            os._exit(1)

    def _forget_supervisor(self, number: int, status: int) -> None:
        """Forget a supervisor; if it was killed, end its processes, which this process adopted."""
        if number in self._supervisors:
            self._supervisors.discard(number)
            if status != 0:
                descendants.kill_processes(descendants.find_descendants(excluded=self._supervisors))
