"""Run programs on this machine, in a sandbox if their policy requires one.

A supervisor starts each program and ends all that it starts; its client is here.

If a supervisor was killed, the processes that it left are found by a mark in their environment,
which they inherit through any number of forks, sessions and new parents, or as adopted children: as
a subreaper, this process becomes the parent of orphans below it. Both need Linux; on other systems
nothing is found or adopted.
"""

import errno
import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Final

from agentci._util.text import truncate
from agentci.errors import EvaluatorError
from agentci.execution.child import kernel
from agentci.execution.child.socket_messages import Message, send
from agentci.execution.child.supervisor import is_alive
from agentci.execution.executor_api import (
    INTERRUPTED,
    NO_SANDBOX,
    ProgramJob,
    ProgramTimeoutError,
    SandboxPolicy,
)
from agentci.execution.launcher_client import (
    LAUNCHER_LOST,
    LAUNCHER_POOL,
    PREFORK_STREAMS,
    ChildMessageReader,
    LauncherClient,
    PreforkInterpreter,
    StartFailure,
    SupervisorMessage,
    find_job_imports,
    find_prefork_interpreter,
    make_interpreter_job,
)
from agentci.execution.pipes import ChildPipes, OutputBuffer
from agentci.execution.sandbox import Sandbox, SandboxBuilder
from agentci.model.requests import ProgramOutput

# Killing and cleaning up mostly takes milliseconds. A process that hangs in the kernel must not
# block agentci.
MAX_KILL_SECONDS: Final = 30.0

FINISH_MESSAGE: Final[Message] = {}

FEWER_JOBS_HINT: Final = "lower --jobs"
ERRNO_HINTS: Final = {
    errno.ENOEXEC: "begin the file with a line such as `#!/usr/bin/env bash`",
    errno.EACCES: "run `chmod +x` on it and commit the change",
    errno.ENOENT: "check that its folder and the interpreter in its first line exist",
    errno.EMFILE: FEWER_JOBS_HINT,
    errno.EAGAIN: FEWER_JOBS_HINT,
    errno.ENOMEM: FEWER_JOBS_HINT,
}
TMPDIR_HINT: Final = "it needs a private folder; make TMPDIR or /tmp writable"
INTERPRETER_HINT: Final = (
    "the interpreter in its first line is not executable, or the sandbox cannot read it;"
    " use a system interpreter, or add its folder to PATH"
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
        start_request: Message,
    ) -> None:
        self._channel = channel
        self._start_request = start_request
        self._launcher = launcher
        self._imports = imports
        self.stdin: IO[bytes] = os.fdopen(streams[0], "wb", buffering=0)
        self.stdout: IO[bytes] = os.fdopen(streams[1], "rb", buffering=0)
        self.stderr: IO[bytes] = os.fdopen(streams[2], "rb", buffering=0)
        self.exceeded_limit = ""
        self.may_remain = False
        self._killed = False
        self._ended = False
        self._has_exited = False
        self._code: int | None = None
        self._start_failure: str | None = None
        self._reports = ChildMessageReader(channel, SupervisorMessage)

    def fileno(self) -> int:
        """Return a descriptor that is readable when the supervisor has a report."""
        return self._channel.fileno()

    def has_ended(self) -> bool:
        """Whether the program has exited or failed to start; its own children may still run."""
        try:
            self._handle_report(self._reports.read_next(0))
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
            if not self._ended:
                with suppress(BrokenPipeError, ConnectionResetError):
                    send(self._channel, FINISH_MESSAGE)
            while not self._ended:
                self._handle_report(self._reports.read_next(deadline - time.monotonic()))
        except TimeoutError:
            self.may_remain = True
        if (
            self._killed
            or self.may_remain
            or self.exceeded_limit
            or self._start_failure is not None
        ):
            self._channel.close()
        else:
            self._launcher.return_supervisor(self._channel, self._imports)
        if self._start_failure is not None:
            is_lost = self._start_failure is LAUNCHER_LOST
            raise (LauncherLostError if is_lost else EvaluatorError)(self._start_failure)
        return -signal.SIGKILL if self._code is None else self._code

    def _handle_report(self, report: SupervisorMessage | None) -> None:
        """Record a report of the supervisor; None if its channel is closed or it is invalid."""
        if report is not None and self._has_exited and not (report.ended or report.failure):
            report = None  # reported only once; a sender that repeats it may never stop
        self._has_exited = True
        self._ended = report is None or report.ended or report.failure is not None
        if report is None:
            self.may_remain = True
            if self._code is None and self._start_failure is None:
                self._start_failure = LAUNCHER_LOST
        elif report.failure is not None:
            # Checks in a prefork interpreter's folder share its user, so one of them may have
            # closed the folder to the others.
            is_closed = report.failure.stage == "scratch" and self._launcher.folder
            self._start_failure = (
                LAUNCHER_LOST
                if is_closed
                else _format_start_failure(report.failure, self._start_request)
            )
        else:
            self._code = report.code
            self.exceeded_limit = report.exceeded_limit
            self.may_remain = report.may_remain


def start_program(
    start_request: Message,
    launcher: LauncherClient,
    imports: tuple[str, ...] = (),
    *,
    pipes: Sequence[Callable[[], tuple[int, int]]] = (os.pipe, os.pipe, os.pipe),
) -> SupervisedProcess:
    """Start a program with three pipes.

    Args:
        start_request: see ``agentci.execution.sandbox.Sandbox.make_start_request``.
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
        channel = _find_supervisor(start_request, (stdin, stdout, stderr), launcher, imports)
    except OSError as error:
        for end in ends:
            os.close(end)
        if isinstance(error, ConnectionError | TimeoutError):
            raise LauncherLostError(LAUNCHER_LOST) from error
        failure = StartFailure("fork", error.errno, error.strerror or str(error))
        raise EvaluatorError(_format_start_failure(failure, start_request)) from error
    for end in (stdin, stdout, stderr):
        os.close(end)
    streams = (our_stdin, our_stdout, our_stderr)
    return SupervisedProcess(
        channel, streams, launcher=launcher, imports=imports, start_request=start_request
    )


def _find_supervisor(
    start_request: Message,
    streams: tuple[int, int, int],
    launcher: LauncherClient,
    imports: tuple[str, ...],
) -> socket.socket:
    """Send the start request to an idle supervisor, else to a new one; return its channel.

    Raises:
        OSError: no supervisor can be started.
    """
    while (channel := launcher.take_idle_supervisor(imports)) is not None:
        try:
            _send_start_request(channel, start_request, streams)
        except ConnectionError:
            channel.close()
        else:
            return channel
    channel = launcher.start_supervisor(imports)
    with suppress(ConnectionError):  # reading its report shows that it has ended
        _send_start_request(channel, start_request, streams)
    return channel


def _send_start_request(
    channel: socket.socket, start_request: Message, streams: tuple[int, int, int]
) -> None:
    """Send a start request, then the environment, which only the program's process reads."""
    send(channel, start_request | {"environment": None}, streams)
    send(channel, start_request["environment"])


def _format_start_failure(failure: StartFailure, start_request: Message) -> str:
    number, stage = failure.errno, failure.stage
    if stage in {"sandbox", "scratch"}:
        hint = "" if stage == "sandbox" else f"; {TMPDIR_HINT}"
        return f"could not be sandboxed: {failure.reason}{hint}"
    hint = ERRNO_HINTS.get(number or 0, "")
    program = start_request["command"][0] if stage == "start" else None
    if number == errno.EACCES and program and os.access(program, os.X_OK):
        hint = INTERPRETER_HINT
    path = start_request["cwd"] if stage == "cwd" else program
    location = f": `{os.fsdecode(path)}`" if path else ""
    return f"could not be started: {failure.reason}{location}{f'; {hint}' if hint else ''}"


MARK_VARIABLE: Final = "AGENTCI_EVALUATOR_RUN"

# A process forked while the list is read is found in the next round.
MAX_ROUNDS: Final = 5
ROUND_SECONDS: Final = 0.005


def kill_marked_processes(mark: str) -> None:
    """Kill every process whose ``MARK_VARIABLE`` begins with ``mark``."""
    needle = f"{MARK_VARIABLE}={mark}".encode()
    for _ in range(MAX_ROUNDS):
        found = list(_find_marked(needle))
        if not found:
            return
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        time.sleep(ROUND_SECONDS)


def _find_marked(needle: bytes) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in (process / "environ").read_bytes():
                yield int(process.name)


# A killed process is gone in about a millisecond.
PAUSE_SECONDS: Final = 0.001
MAX_PAUSES: Final = 50


def become_subreaper() -> bool:
    """Become the parent of all orphans below this process; return whether that worked.

    Return False if this process has children already: other code started them, and their orphans
    would be adopted too.
    """
    if _has_children():
        return False
    try:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    except OSError:
        return False
    return True


def kill_children(*, excluded: Collection[int]) -> None:
    """Kill all descendants of this process; requires ``become_subreaper`` to reach all of them.

    The killed children are not reaped: the code that started them does that.

    Args:
        excluded: process ids of children that stay, with all below them.
    """
    for _ in range(MAX_PAUSES):
        living = [child for child in _living_children() if child not in excluded]
        if not living:
            return
        for child in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _living_children() -> Iterator[int]:
    ours = os.getpid()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == ours and is_alive(fields):
                yield int(process.name)


# How long to wait for remaining output after the program has ended while one of its background
# processes keeps the pipe open.
GRACE_SECONDS: Final = 0.2

MAX_LOG_CHARS: Final = 300


class LocalExecutor:
    """An executor that gives each program a supervisor, which ends all that the program started.

    The supervisor does so when the program has ended, exceeded its timeout or printed too much, on
    ``stop``, and when this process ends. If a supervisor is killed, the processes it leaves are
    found by a mark in their environment or, on ``stop``, as children that this process adopted.
    """

    def __init__(self) -> None:
        self._mark_prefix = os.urandom(8).hex()
        self._numbers = itertools.count(1)
        # Reentrant: the signal handler that calls stop() takes it again in the middle of a run.
        self._lock = threading.RLock()
        self._running: dict[int, SupervisedProcess | None] = {}
        self._builder: SandboxBuilder | None = None
        self._limitations: dict[str, None] = {}
        self._is_subreaper = False
        # Not an Event: setting one takes a lock that is not reentrant.
        self._stopped = False

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        sandbox_policy: SandboxPolicy | None = None,
    ) -> ProgramOutput:
        """Run ``command`` to its end, then end every process it started."""
        job = ProgramJob(
            command=tuple(command),
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            cwd=cwd,
            environment=environment,
            sandbox_policy=sandbox_policy or NO_SANDBOX,
        )
        try:
            return self._run(job, find_prefork_interpreter(job))
        except LauncherLostError:
            return self._run(job, None)

    def _run(self, job: ProgramJob, interpreter: PreforkInterpreter | None) -> ProgramOutput:
        """Run a program, as a fork of the prefork ``interpreter`` if one is given."""
        if self._has_stopped():
            raise EvaluatorError(INTERRUPTED)
        launcher = self._launcher(job, interpreter)
        started = time.monotonic()
        mark = f"{self._mark_prefix}.{next(self._numbers)}."
        number = self._take_number()
        try:
            sandbox = self._make_sandbox(job, launcher, mark, number)
            self._record_limitations(sandbox.limitations)
            process = start_program(
                sandbox.make_start_request(job.command, job.cwd), launcher, find_job_imports(job)
            )
            pipes = ChildPipes(process, job.stdin)
            try:
                self._register_process(number, process)
                _communicate(process, pipes, started=started, timeout_seconds=job.timeout_seconds)
            except BaseException:
                process.kill()
                raise
            finally:
                exit_code = self._finish_process(process, mark)
        finally:
            self._return_number(number)
        if self._has_stopped() and exit_code == -signal.SIGKILL:
            raise EvaluatorError(INTERRUPTED)
        if process.exceeded_limit:
            raise EvaluatorError(process.exceeded_limit)
        return ProgramOutput(
            stdout=bytes(pipes.output),
            stderr=_decode_log(pipes.log),
            exit_code=exit_code,
        )

    def limitations(self) -> Collection[str]:
        """Return the limitations met so far."""
        return tuple(self._limitations)

    def stop(self) -> None:
        """End all programs at once, and refuse to run more."""
        with self._lock:
            self._stopped = True
            for process in tuple(self._running.values()):
                if process is not None:
                    process.kill()
        kill_marked_processes(self._mark_prefix)
        if self._is_subreaper:
            kill_children(excluded=LAUNCHER_POOL.list_process_ids())

    def _has_stopped(self) -> bool:
        return self._stopped

    def _launcher(self, job: ProgramJob, interpreter: PreforkInterpreter | None) -> LauncherClient:
        with self._lock:
            self._is_subreaper = self._is_subreaper or become_subreaper()
            if self._builder is None:
                # Keeps programs of the same user from reading this process's memory.
                with suppress(OSError):
                    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        if interpreter is None or interpreter.sandbox_policy is None:
            return LAUNCHER_POOL.get_launcher(interpreter)
        return LAUNCHER_POOL.get_launcher(
            interpreter, start=partial(self._start_sandboxed, job, interpreter)
        )

    def _start_sandboxed(self, job: ProgramJob, interpreter: PreforkInterpreter) -> LauncherClient:
        """Start a prefork interpreter as a program, in the sandbox of the programs it becomes."""
        number, launcher = self._take_number(), LAUNCHER_POOL.get_launcher()
        interpreter_job = make_interpreter_job(interpreter, job)
        sandbox = self._make_sandbox(
            interpreter_job, launcher, f"{self._mark_prefix}.warm.", number
        )
        process = start_program(
            sandbox.make_start_request(interpreter_job.command, interpreter_job.cwd),
            launcher,
            pipes=PREFORK_STREAMS,
        )
        self._register_process(number, process)

        def end() -> None:
            process.kill()
            with suppress(EvaluatorError):
                process.finish()
            self._return_number(number)

        channel = socket.socket(fileno=os.dup(process.stdin.fileno()))
        folder = sandbox.environment["TMPDIR"]
        process.stdout.close()
        return LauncherClient(channel, end=end, number=None, interpreter=interpreter, folder=folder)

    def _get_builder(self, launcher: LauncherClient) -> SandboxBuilder:
        if launcher.folder:
            return SandboxBuilder(capabilities=launcher.capabilities)
        with self._lock:
            if self._builder is None:
                self._builder = SandboxBuilder(capabilities=launcher.capabilities)
            return self._builder

    def _make_sandbox(
        self, job: ProgramJob, launcher: LauncherClient, mark: str, number: int
    ) -> Sandbox:
        seen = {**job.environment, MARK_VARIABLE: mark}
        if not job.sandbox_policy.sandboxed:
            return Sandbox(restrictions=None, environment=seen)
        if launcher.folder:
            seen["TMPDIR"] = launcher.folder
        return self._get_builder(launcher).build(
            job.sandbox_policy,
            command=job.command,
            cwd=job.cwd,
            environment=seen,
            timeout_seconds=job.timeout_seconds,
            number=number,
        )

    def _record_limitations(self, limitations: Sequence[str]) -> None:
        with self._lock:
            self._limitations.update(dict.fromkeys(limitations))

    def _take_number(self) -> int:
        """Return the lowest number that no running program has."""
        with self._lock:
            number = next(each for each in itertools.count() if each not in self._running)
            self._running[number] = None
            return number

    def _return_number(self, number: int) -> None:
        with self._lock:
            del self._running[number]

    def _register_process(self, number: int, process: SupervisedProcess) -> None:
        with self._lock:
            self._running[number] = process
            if self._has_stopped():
                process.kill()

    @staticmethod
    def _finish_process(process: SupervisedProcess, mark: str) -> int:
        try:
            return process.finish()
        finally:
            if process.may_remain:
                kill_marked_processes(mark)


def _communicate(
    process: SupervisedProcess, pipes: ChildPipes, *, started: float, timeout_seconds: float
) -> None:
    """Write stdin and read the output until the program has ended.

    Raises:
        ProgramTimeoutError: the program exceeded its timeout, and must be killed.
        EvaluatorError: it exceeded an output limit, and must be killed.
    """
    while not process.has_ended():
        left = started + timeout_seconds - time.monotonic()
        if left <= 0:
            raise _make_timeout_error(timeout_seconds, _decode_log(pipes.log))
        pipes.step(left)
    pipes.ignore_child(process)
    given_up = time.monotonic() + GRACE_SECONDS
    while pipes.open and (left := given_up - time.monotonic()) > 0:
        pipes.step(left)


def _make_timeout_error(timeout_seconds: float, log: str) -> ProgramTimeoutError:
    last_line = truncate.end(log.rstrip().rpartition("\n")[2], MAX_LOG_CHARS)
    printed = f"; last line on stderr: {last_line}" if last_line else ""
    return ProgramTimeoutError(f"timed out after {timeout_seconds:g} s", printed=printed)


def _decode_log(log: OutputBuffer) -> str:
    return bytes(log).decode("utf-8", "replace")
