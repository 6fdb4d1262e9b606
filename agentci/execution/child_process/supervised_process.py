"""The client of a supervisor: a running program, and all that it starts."""

import errno
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Final

from agentci.errors import EvaluatorError
from agentci.execution.child.messages import Message, send
from agentci.execution.child_process.launcher_client import (
    LAUNCHER_LOST,
    ChildMessageReader,
    LauncherClient,
    StartFailure,
    SupervisorMessage,
)

# Killing and cleaning up mostly takes milliseconds. A process that hangs in the kernel must not
# block agentci.
MAX_KILL_SECONDS: Final = 30.0

FINISH_MESSAGE: Final[Message] = {}

ERRNO_HINTS: Final = {
    errno.ENOEXEC: "begin the file with a line such as #!/usr/bin/env bash",
    errno.EACCES: "run chmod +x on it, and commit that",
    errno.ENOENT: "is the interpreter of its first line installed, and its folder there?",
    errno.EMFILE: "run fewer at a time with --jobs",
    errno.EAGAIN: "run fewer at a time with --jobs",
    errno.ENOMEM: "run fewer at a time with --jobs",
}
TMPDIR_HINT: Final = (
    "it needs a private folder below TMPDIR, else /tmp: have one of them where files can be made"
)
INTERPRETER_HINT: Final = (
    "the interpreter of its first line is not executable, or lies where it may not read;"
    " name one of the system, or put its folder on PATH"
)


class LauncherLostError(EvaluatorError):
    """The launcher or the supervisor has ended, and with it the program."""


class SupervisedProcess:
    """A program with its supervisor.

    Attributes:
        stdin, stdout, stderr: this process's ends of the program's pipes.
        exceeded_limit: the limit that the program exceeded; completes a sentence about it.
        may_remain: whether some of its processes may still run.
    """

    def __init__(
        self,
        channel: socket.socket,
        streams: tuple[int, int, int],
        *,
        launcher: LauncherClient,
        imports: tuple[str, ...],
        order: Message,
    ) -> None:
        self._channel = channel
        self._order = order
        self._launcher = launcher
        self._imports = imports
        self.stdin: IO[bytes] = os.fdopen(streams[0], "wb", buffering=0)
        self.stdout: IO[bytes] = os.fdopen(streams[1], "rb", buffering=0)
        self.stderr: IO[bytes] = os.fdopen(streams[2], "rb", buffering=0)
        self.exceeded_limit = ""
        self.may_remain = False
        self._killed = False
        self._gone = False
        self._has_exited = False
        self._code: int | None = None
        self._refusal: str | None = None
        self._answers = ChildMessageReader(channel, SupervisorMessage)

    def fileno(self) -> int:
        """Return a descriptor that is readable when the supervisor has a report."""
        return self._channel.fileno()

    def has_ended(self) -> bool:
        """Whether the program has exited or failed to start; its own children may still run."""
        try:
            self._handle_message(self._answers.read_next(0))
        except TimeoutError:
            return False
        return True

    def kill(self) -> None:
        """Start ending the program and all that it started; a signal handler may call this."""
        self._killed = True
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)

    def finish(self) -> int:
        """Wait until nothing is left of the program; return its exit code.

        The code is the negative number of a signal if one ended the program.

        Raises:
            EvaluatorError: the program was not started.
            LauncherLostError: the same, and the reason is unknown.
        """
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        deadline = time.monotonic() + MAX_KILL_SECONDS
        try:
            if not self._gone:
                with suppress(BrokenPipeError, ConnectionResetError):
                    send(self._channel, FINISH_MESSAGE)
            while not self._gone:
                self._handle_message(self._answers.read_next(deadline - time.monotonic()))
        except TimeoutError:
            self.may_remain = True
        if self._killed or self.may_remain or self.exceeded_limit or self._refusal is not None:
            self._channel.close()
        else:
            self._launcher.return_supervisor(self._channel, self._imports)
        if self._refusal is not None:
            raise (LauncherLostError if self._refusal is LAUNCHER_LOST else EvaluatorError)(
                self._refusal
            )
        return -signal.SIGKILL if self._code is None else self._code

    def _handle_message(self, answer: SupervisorMessage | None) -> None:
        """Record a report of the supervisor; None if its channel is closed or it is invalid."""
        if answer is not None and self._has_exited and not (answer.gone or answer.refusal):
            answer = None  # reported only once; a sender that repeats it may never stop
        self._has_exited = True
        self._gone = answer is None or answer.gone or answer.refusal is not None
        if answer is None:
            self.may_remain = True
            if self._code is None and self._refusal is None:
                self._refusal = LAUNCHER_LOST
        elif answer.refusal is not None:
            # Checks in a prefork interpreter's folder share its user, so one of them may have
            # closed the folder to the others.
            spoilt = answer.refusal.stage == "scratch" and self._launcher.folder
            self._refusal = (
                LAUNCHER_LOST if spoilt else _format_start_failure(answer.refusal, self._order)
            )
        else:
            self._code = answer.code
            self.exceeded_limit = answer.excess
            self.may_remain = answer.left


def start_program(
    order: Message,
    launcher: LauncherClient,
    imports: tuple[str, ...] = (),
    *,
    pipes: Sequence[Callable[[], tuple[int, int]]] = (os.pipe, os.pipe, os.pipe),
) -> SupervisedProcess:
    """Start a program with three pipes.

    Args:
        order: see ``agentci.execution.sandbox.Sandbox.make_order``.
        launcher: starts the program's supervisor, if none is idle.
        imports: modules that the program will import.
        pipes: functions that make the pipes for stdin, stdout and stderr; each returns the read
            end first.

    Raises:
        EvaluatorError: the system refused.
        LauncherLostError: the launcher has ended.
    """
    ends: list[int] = []
    try:
        for pipe in pipes:
            ends += pipe()
        stdin, our_stdin, our_stdout, stdout, our_stderr, stderr = ends
        channel = _find_supervisor(order, (stdin, stdout, stderr), launcher, imports)
    except OSError as error:
        for end in ends:
            os.close(end)
        if isinstance(error, ConnectionError | TimeoutError):
            raise LauncherLostError(LAUNCHER_LOST) from error
        refusal = StartFailure("fork", error.errno, error.strerror or str(error))
        raise EvaluatorError(_format_start_failure(refusal, order)) from error
    for end in (stdin, stdout, stderr):
        os.close(end)
    streams = (our_stdin, our_stdout, our_stderr)
    return SupervisedProcess(channel, streams, launcher=launcher, imports=imports, order=order)


def _find_supervisor(
    order: Message,
    streams: tuple[int, int, int],
    launcher: LauncherClient,
    imports: tuple[str, ...],
) -> socket.socket:
    """Send the order to an idle supervisor that still runs, else to a new one; return its channel.

    Raises:
        OSError: no supervisor can be started.
    """
    while (channel := launcher.take_idle_supervisor(imports)) is not None:
        try:
            _send_order(channel, order, streams)
        except ConnectionError:
            channel.close()
        else:
            return channel
    channel = launcher.start_supervisor(imports)
    with suppress(ConnectionError):  # reading its report shows that it has ended
        _send_order(channel, order, streams)
    return channel


def _send_order(channel: socket.socket, order: Message, streams: tuple[int, int, int]) -> None:
    """Send an order, then the environment separately: only the program's own process reads that."""
    send(channel, order | {"environment": None}, streams)
    send(channel, order["environment"])


def _format_start_failure(refusal: StartFailure, order: Message) -> str:
    number, stage = refusal.errno, refusal.stage
    if stage in {"jail", "scratch"}:
        where = "" if stage == "jail" else f" ({TMPDIR_HINT})"
        return f"could not be confined: {refusal.reason}{where}"
    hint = ERRNO_HINTS.get(number or 0)
    started = order["command"][0] if stage == "start" else None
    if number == errno.EACCES and started and os.access(started, os.X_OK):
        hint = INTERPRETER_HINT
    way_out = f" ({hint})" if hint else ""
    named = order["cwd"] if stage == "cwd" else started
    what = f": {os.fsdecode(named)!r}" if named else ""
    code = f"[Errno {number}] " if number else ""
    return f"could not be started: {code}{refusal.reason}{what}{way_out}"
