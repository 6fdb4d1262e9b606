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
from agentci.execution.child_process.launcher_client import (
    LAUNCHER_POOL,
    PREFORK_STREAMS,
    LauncherClient,
)
from agentci.execution.child_process.orphan_processes import (
    MARK_VARIABLE,
    become_subreaper,
    kill_children,
    kill_marked_processes,
)
from agentci.execution.child_process.pipes import ChildPipes, OutputBuffer
from agentci.execution.child_process.prefork_client import (
    PreforkInterpreter,
    find_job_imports,
    find_prefork_interpreter,
    make_interpreter_job,
)
from agentci.execution.child_process.supervised_process import (
    LauncherLostError,
    SupervisedProcess,
    start_program,
)
from agentci.execution.executor_api import INTERRUPTED, NO_SANDBOX, ProgramJob, SandboxPolicy
from agentci.execution.sandbox import Sandbox, SandboxBuilder
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
        self._shortcomings: dict[str, None] = {}
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

    def _run(self, job: ProgramJob, warmth: PreforkInterpreter | None) -> ProgramOutput:
        """Run a program, as a fork of the prefork interpreter ``warmth`` if one is given."""
        if self._has_stopped():
            raise EvaluatorError(INTERRUPTED)
        launcher = self._launcher(job, warmth)
        begun = time.monotonic()
        mark = f"{self._mark_prefix}.{next(self._numbers)}."
        number = self._take_number()
        try:
            cell = self._make_sandbox(job, launcher, mark, number)
            self._record_shortcomings(cell.shortcomings)
            ward = start_program(
                cell.make_order(job.command, job.cwd), launcher, find_job_imports(job)
            )
            pipes = ChildPipes(ward, job.stdin)
            try:
                self._register_process(number, ward)
                _communicate(ward, pipes, begun=begun, timeout_seconds=job.timeout_seconds)
            except BaseException:
                ward.kill()
                raise
            finally:
                exit_code = self._finish_process(ward, mark)
        finally:
            self._return_number(number)
        if self._has_stopped() and exit_code == -signal.SIGKILL:
            raise EvaluatorError(INTERRUPTED)
        if ward.exceeded_limit:
            raise EvaluatorError(ward.exceeded_limit)
        return ProgramOutput(
            stdout=bytes(pipes.output),
            stderr=_decode_log(pipes.log),
            exit_code=exit_code,
        )

    def shortcomings(self) -> Collection[str]:
        """Return the parts of sandbox policies that this machine does not support."""
        return tuple(self._shortcomings)

    def stop(self) -> None:
        """End all programs at once, and refuse to run more."""
        with self._lock:
            self._stopped = True
            for ward in tuple(self._running.values()):
                if ward is not None:
                    ward.kill()
        kill_marked_processes(self._mark_prefix)
        if self._is_subreaper:
            kill_children(spared=LAUNCHER_POOL.list_process_ids())

    def _has_stopped(self) -> bool:
        return self._stopped

    def _launcher(self, job: ProgramJob, warmth: PreforkInterpreter | None) -> LauncherClient:
        with self._lock:
            self._is_subreaper = self._is_subreaper or become_subreaper()
            if self._builder is None:
                # Keeps programs of the same user from reading this process's memory.
                with suppress(OSError):
                    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        if warmth is None or warmth.sandbox_policy is None:
            return LAUNCHER_POOL.get_launcher(warmth)
        return LAUNCHER_POOL.get_launcher(warmth, start=partial(self._start_sandboxed, job, warmth))

    def _start_sandboxed(self, job: ProgramJob, warmth: PreforkInterpreter) -> LauncherClient:
        """Start a prefork interpreter as a program, in the sandbox of the programs it becomes."""
        number, cold = self._take_number(), LAUNCHER_POOL.get_launcher()
        jailed = make_interpreter_job(warmth, job)
        cell = self._make_sandbox(jailed, cold, f"{self._mark_prefix}.warm.", number)
        ward = start_program(
            cell.make_order(jailed.command, jailed.cwd), cold, pipes=PREFORK_STREAMS
        )
        self._register_process(number, ward)

        def end() -> None:
            ward.kill()
            with suppress(EvaluatorError):
                ward.finish()
            self._return_number(number)

        channel = socket.socket(fileno=os.dup(ward.stdin.fileno()))
        folder = cell.environment["TMPDIR"]
        ward.stdout.close()
        return LauncherClient(channel, end=end, number=None, warmth=warmth, folder=folder)

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

    def _record_shortcomings(self, shortcomings: Sequence[str]) -> None:
        with self._lock:
            self._shortcomings.update(dict.fromkeys(shortcomings))

    def _take_number(self) -> int:
        """Return the lowest number that no running program has."""
        with self._lock:
            number = next(each for each in itertools.count() if each not in self._running)
            self._running[number] = None
            return number

    def _return_number(self, number: int) -> None:
        with self._lock:
            del self._running[number]

    def _register_process(self, number: int, ward: SupervisedProcess) -> None:
        with self._lock:
            self._running[number] = ward
            if self._has_stopped():
                ward.kill()

    @staticmethod
    def _finish_process(ward: SupervisedProcess, mark: str) -> int:
        try:
            return ward.finish()
        finally:
            if ward.may_remain:
                kill_marked_processes(mark)


def _communicate(
    ward: SupervisedProcess, pipes: ChildPipes, *, begun: float, timeout_seconds: float
) -> None:
    """Write stdin and read the output until the program has ended.

    Raises:
        EvaluatorError: the program exceeded its timeout or an output limit and must be ended.
    """
    while not ward.has_ended():
        left = begun + timeout_seconds - time.monotonic()
        if left <= 0:
            raise EvaluatorError(_format_timeout(timeout_seconds, _decode_log(pipes.log)))
        pipes.step(left)
    pipes.ignore_child(ward)
    given_up = time.monotonic() + GRACE_SECONDS
    while pipes.open and (left := given_up - time.monotonic()) > 0:
        pipes.step(left)


def _format_timeout(timeout_seconds: float, log: str) -> str:
    last_words = truncate.end(log.rstrip().rpartition("\n")[2], MAX_LOG_CHARS)
    printed = f"; its last words on stderr: {last_words}" if last_words else ""
    return f"timed out after {timeout_seconds:g}s; raise its timeout if it needs longer{printed}"


def _decode_log(log: OutputBuffer) -> str:
    return bytes(log).decode("utf-8", "replace")
