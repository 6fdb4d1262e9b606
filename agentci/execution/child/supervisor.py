"""Watches over one program: starts it jailed, ends all that it started, and clears up behind it.

A process of its own a program, between the launcher and the program; when nothing is left of one,
the next may follow. It is the parent of every orphan below it, so that nothing gets away, and it
ends all as soon as its channel is closed: by whoever asked for the program, or by the system when
that process is gone.
"""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from agentci.execution.child import apply_sandbox, descendants, kernel, tmpdir
from agentci.execution.child.messages import (
    Message,
    receive,
    receive_with_descriptors,
    send,
    send_json,
)
from agentci.execution.child.seccomp import LoopbackSockets

STREAM_COUNT: Final = 3

# How often a private folder is looked at for its size.
SIZE_CHECK_MILLISECONDS: Final = 200
EXIT_NOT_STARTED: Final = 127
# Python and the launcher ignore them; programs do not expect that, nor do those whom they end.
RESET_SIGNALS: Final = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
)  # fmt: skip
MAX_DESCRIPTORS: Final = 1 << 20


class BecameProgram(BaseException):
    """This process is the program from now on: leave all that is ours."""


def supervise(channel: socket.socket, *, imitate: Callable[[Message], None]) -> None:
    """Run the programs that are asked for on ``channel``, and answer how it went.

    With each order come stdin, stdout and stderr of its program, and after it the program's
    environment, for the program's process alone: forks of this one find in their memory whatever
    this one has ever read, secrets of earlier programs, too. The answers: ``refusal``; or
    ``gone``, with its ``code``, when nothing is left of it. Where it has ended and something is
    left, ``code`` comes first, and ``gone`` after any message or the channel's end.

    Args:
        imitate: makes a fork of this process what exec would make of it, and raises Imitated;
            returns where only exec will do.

    Raises:
        Imitated: by that fork.
    """
    with contextlib.suppress(OSError):
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    wakeup, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    goes_on = True
    while goes_on:
        order, streams = receive_with_descriptors(channel, STREAM_COUNT)
        goes_on = order is not None and _ProgramSupervisor(channel, order, imitate, wakeup).run(
            streams
        )


class _ProgramSupervisor:
    def __init__(
        self,
        channel: socket.socket,
        order: Message,
        imitate: Callable[[Message], None],
        wakeup: int,
    ) -> None:
        self._channel = channel
        self._order = order
        self._imitate = imitate
        self._wakeup = wakeup
        self._user: int | None = order["jail"]["user"] if order["jail"] else None
        # Where it shares its user with others, what belongs to the user is not its own.
        self._own_user: int | None = self._user if order["alone"] else None
        self._leader = 0
        self._sockets: LoopbackSockets | None = None
        self._code: int | None = None
        self._excess = ""

    def run(self, streams: Sequence[int]) -> bool:
        """Have the program run, and then leave nothing of it; say whether another may follow."""
        refusal = self._prepare(streams) or self._start(streams)
        asked = refusal is None and self._wait_for_end()
        if self._leader and self._code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, signal.SIGKILL)
        left = not descendants.kill_descendants(self._record_exit, user=self._own_user)
        self._clean_up()
        ending = {"gone": True, "code": self._code, "left": left, "excess": self._excess}
        self._report(ending if refusal is None else {"refusal": refusal})
        return asked and not left

    def _prepare(self, streams: Sequence[int]) -> Message | None:
        try:
            if self._order["scratch"] is not None:
                tmpdir.make_tmpdir(self._order["scratch"], self._user)
            if self._user is not None:
                for stream in streams:  # so that it can open /dev/stdin
                    os.fchown(stream, self._user, self._user)
        except OSError as error:
            return _make_failure(error, "scratch")
        return None

    def _start(self, streams: Sequence[int]) -> Message | None:
        """Start the program; None once it runs, else what kept it from that."""
        reports, report = socket.socketpair()
        try:
            self._leader = os.fork()
        except OSError as error:
            return _make_failure(error, "fork")
        if self._leader == 0:
            reports.detach()
            _become_program(self._order, streams, self._channel, report, self._imitate)
        report.close()
        for stream in streams:
            os.close(stream)
        with reports:
            said, descriptors = receive_with_descriptors(reports, 1)
            if descriptors:
                self._sockets = LoopbackSockets(*descriptors)
                said = receive(reports)
        return said

    def _wait_for_end(self) -> bool:
        """Wait until somebody says that this is all; False where it is the channel's end.

        Tells as soon as the program has ended, and returns then where it has left nothing.
        """
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        if self._sockets is not None:
            poll.register(self._sockets, select.POLLIN)
        untold = True
        while not self._exceeds_disk_limit():
            ready = {descriptor for descriptor, _ in poll.poll(self._poll_timeout())}
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
            sockets = self._sockets
            if sockets is not None and sockets.fileno() in ready and not sockets.handle_request():
                poll.unregister(sockets)
            others = descendants.reap_children(self._record_exit)
            if untold and self._code is not None:
                if not others:
                    return True
                untold = False
                self._report({"code": self._code})
            if self._channel.fileno() in ready:
                return receive(self._channel) is not None
        return False

    def _poll_timeout(self) -> int | None:
        return SIZE_CHECK_MILLISECONDS if self._order["disk"] and self._code is None else None

    def _exceeds_disk_limit(self) -> bool:
        """Whether its private folder has grown too large."""
        limit, folder = self._order["disk"], self._order["scratch"]
        if limit and folder is not None and tmpdir.measure_size(folder, limit) >= limit:
            self._excess = f"wrote more than {limit // 1024**2} MiB of files and was ended"
        return bool(self._excess)

    def _record_exit(self, number: int, status: int) -> None:
        if number == self._leader:
            self._code = os.waitstatus_to_exitcode(status)

    def _clean_up(self) -> None:
        if self._sockets is not None:
            self._sockets.close()
        if self._order["scratch"] is not None:
            tmpdir.remove_tmpdir(self._order["scratch"])
        if self._own_user is not None:
            tmpdir.clear_shared_memory(self._own_user)

    def _report(self, message: Message) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more
            send_json(self._channel, message)


def _become_program(
    order: Message,
    streams: Sequence[int],
    channel: socket.socket,
    report: socket.socket,
    imitate: Callable[[Message], None],
) -> NoReturn:
    """Be the program from now on; whatever keeps us from it is reported."""
    stage = "start"
    try:
        order["environment"] = receive(channel)
        _reset_process(channel, streams, report.fileno())
        stage = "cwd"
        os.chdir(order["cwd"])
        if order["jail"] is not None:
            stage = "jail"
            asking = apply_sandbox.enter_sandbox(order["jail"])
            if asking is not None:
                send(report, {}, [asking])
                os.close(asking)
        stage = "start"
        try:
            imitate(order)
        except BecameProgram:
            report.close()
            raise
        os.execvpe(order["command"][0], order["command"], order["environment"])  # noqa: S606 (its work)
    except BecameProgram:
        raise
    except BaseException as error:  # noqa: BLE001 (a fork must not go on as its parent)
        try:
            send(report, _make_failure(error, stage))
        finally:
            os._exit(EXIT_NOT_STARTED)


def _reset_process(channel: socket.socket, streams: Sequence[int], report: int) -> None:
    """Have nothing of ours any more but the streams, as 0, 1 and 2, and ``report``."""
    channel.detach()
    signal.set_wakeup_fd(-1)
    for number in (*RESET_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
    os.closerange(len(streams), report)
    os.closerange(report + 1, MAX_DESCRIPTORS)


def _make_failure(error: BaseException, stage: str) -> Message:
    number = getattr(error, "errno", None)
    reason = getattr(error, "strerror", None) or str(error)
    return {"stage": stage, "errno": number, "reason": reason}
