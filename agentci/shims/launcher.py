"""Starts programs for a process that has threads, which no process should fork Python code from.

Has one thread, and imports no more than it needs: a fork of it is quick, and safe to run Python in.
"""

import gc
import os
import select
import signal
import socket
from contextlib import suppress
from typing import Final

from agentci.shims import descendants, kernel, probe, ward
from agentci.shims.messages import send

# For each program: its ward's channel, stdin, stdout, stderr.
DESCRIPTORS: Final = 4
POKE: Final = b"!"


def main(descriptor: int) -> None:
    """Start a ward for each poke that comes, until the other end of the channel is gone."""
    channel = socket.socket(fileno=descriptor)
    with suppress(OSError):
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # who asks for programs decides when they end
    send(channel, probe.facts())
    gc.freeze()
    _Launcher(channel).serve()


class _Launcher:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._wards: set[int] = set()
        self._wakeup, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Start wards, and bury them, until there will be no more."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        wanted = True
        while wanted or self._wards:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
                descendants.reap(self._bury)
            if self._channel.fileno() in ready:
                wanted = self._start()
                if not wanted:
                    poll.unregister(self._channel)

    def _start(self) -> bool:
        """Start one ward; False when there will be no more."""
        poke, descriptors, _, _ = socket.recv_fds(self._channel, len(POKE), DESCRIPTORS)
        if not poke:
            return False
        try:
            number = os.fork() if len(descriptors) == DESCRIPTORS else 0
        except OSError:
            number = -1  # closing the channel tells of it
        if number == 0:
            self._be_ward(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        if number > 0:
            self._wards.add(number)
        return True

    def _be_ward(self, descriptors: list[int]) -> None:
        try:
            signal.set_wakeup_fd(-1)
            for descriptor in (self._channel.fileno(), self._wakeup, self._wake):
                os.close(descriptor)
            ward.watch(socket.socket(fileno=descriptors[0]), descriptors[1:])
            os._exit(0)
        finally:
            os._exit(1)

    def _bury(self, number: int, status: int) -> None:
        """Forget a ward; where one was killed, end what it watched over and left to us."""
        if number in self._wards:
            self._wards.discard(number)
            if status != 0:
                descendants.kill(descendants.descendants(spared=self._wards))
