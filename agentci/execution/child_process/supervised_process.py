"""Our end of a ward: a running program, and all that it starts."""

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

# Of what is killed and cleared up: mostly milliseconds. What hangs in the kernel must not hold us.
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
    """What starts programs is gone, and with it the program."""


class SupervisedProcess:
    """A program that was asked for.

    Attributes:
        stdin, stdout, stderr: our ends of its pipes.
        excess: what it used too much of, as the end of a sentence about it.
        left: whether something of it may still be there.
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
        """What can be read from as soon as it has something to tell."""
        return self._channel.fileno()

    def has_ended(self) -> bool:
        """Whether the program has exited, or never began; what it started may still be there."""
        try:
            self._handle_message(self._answers.read_next(0))
        except TimeoutError:
            return False
        return True

    def kill(self) -> None:
        """End the program and all that it started, soon; may be called by a signal handler."""
        self._killed = True
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)

    def finish(self) -> int:
        """Wait until nothing is left of it: its exit code, or the negative number of a signal.

        Raises:
            EvaluatorError: it was never started; LostError: nor will anybody tell why.
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
        """Keep what the ward tells."""
        if answer is not None and self._has_exited and not (answer.gone or answer.refusal):
            answer = None  # that is told once, and whoever repeats it may never stop
        self._has_exited = True
        self._gone = answer is None or answer.gone or answer.refusal is not None
        if answer is None:
            self.may_remain = True
            if self._code is None and self._refusal is None:
                self._refusal = LAUNCHER_LOST
        elif answer.refusal is not None:
            # A folder that checks share a user in is closed by one of them, if at all.
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
    """Have a program started with three pipes.

    Args:
        imports: modules that it is going to import.
        pipes: what makes them, the end that is read from first.

    Raises:
        EvaluatorError: the system refused; LostError: the launcher is gone.
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
    """The channel to a ward that has the order: one that died while it had none does not get it.

    Raises:
        OSError: there is none.
    """
    while (channel := launcher.take_idle_supervisor(imports)) is not None:
        try:
            _send_order(channel, order, streams)
        except ConnectionError:
            channel.close()
        else:
            return channel
    channel = launcher.start_supervisor(imports)
    with suppress(ConnectionError):  # that it is gone is found out when it is released
        _send_order(channel, order, streams)
    return channel


def _send_order(channel: socket.socket, order: Message, streams: tuple[int, int, int]) -> None:
    """Send an order, and what the program sees after it: that only its own process reads."""
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
