"""Run programs on this machine, in a sandbox if their policy requires one."""

import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from agentci._util.text import truncate
from agentci.errors import EvaluatorError
from agentci.execution.child import kernel
from agentci.execution.executor_api import (
    INTERRUPTED,
    NO_SANDBOX,
    ProgramJob,
    ProgramTimeoutError,
    SandboxPolicy,
)
from agentci.execution.launcher_client import (
    LAUNCHER_POOL,
    PREFORK_STREAMS,
    LauncherClient,
    PreforkInterpreter,
    find_job_imports,
    find_prefork_interpreter,
    make_interpreter_job,
)
from agentci.execution.pipes import ChildPipes, OutputBuffer
from agentci.execution.sandbox import Sandbox, SandboxBuilder
from agentci.execution.supervised_process import (
    MARK_VARIABLE,
    LauncherLostError,
    SupervisedProcess,
    become_subreaper,
    kill_children,
    kill_marked_processes,
    start_program,
)
from agentci.model.requests import ProgramOutput

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
            raise ProgramTimeoutError(_format_timeout(timeout_seconds, _decode_log(pipes.log)))
        pipes.step(left)
    pipes.ignore_child(process)
    given_up = time.monotonic() + GRACE_SECONDS
    while pipes.open and (left := given_up - time.monotonic()) > 0:
        pipes.step(left)


def _format_timeout(timeout_seconds: float, log: str) -> str:
    last_line = truncate.end(log.rstrip().rpartition("\n")[2], MAX_LOG_CHARS)
    printed = f"; last line on stderr: {last_line}" if last_line else ""
    return f"timed out after {timeout_seconds:g} s; raise `timeout` if it needs longer{printed}"


def _decode_log(log: OutputBuffer) -> str:
    return bytes(log).decode("utf-8", "replace")
