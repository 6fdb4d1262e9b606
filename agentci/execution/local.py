"""Runs programs on this machine, jailed where that is wanted."""

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
from agentci.execution.child_process.kill_marked import MARK, end_marked
from agentci.execution.child_process.launcher import STREAMS_OF_WARM_ONES, Launcher
from agentci.execution.child_process.launcher_pool import OFFICE
from agentci.execution.child_process.pipes import Pipes, Sink
from agentci.execution.child_process.prefork import Warmth
from agentci.execution.child_process.subreaper import adopt, end_children
from agentci.execution.child_process.supervised_process import LostError, Ward, start
from agentci.execution.executor import INTERRUPTED
from agentci.execution.job import Job
from agentci.execution.limits import UNCONFINED, Confinement
from agentci.execution.prefork_job import imports_for, starting, warmth_for
from agentci.execution.sandbox import Builder, Cell
from agentci.model.requests import ProgramReply

# How long what was printed may take to arrive once the program itself has ended, where a process
# in its background keeps the pipe open.
GRACE_SECONDS: Final = 0.2

MAX_LAST_WORDS: Final = 300


class LocalExecutor:
    """An executor that gives each program a ward, which ends all that it started.

    The ward does so as soon as the program has ended, run out of time or printed too much, on
    ``stop``, and when this process is gone. Should a ward itself be killed, what it left is found
    by its environment or, on ``stop``, as what has become a child of ours.
    """

    def __init__(self) -> None:
        self._brand = os.urandom(8).hex()
        self._numbers = itertools.count(1)
        # Taken again by the signal handler that calls stop() in the middle of a run.
        self._lock = threading.RLock()
        self._running: dict[int, Ward | None] = {}
        self._builder: Builder | None = None
        self._shortcomings: dict[str, None] = {}
        self._adopts = False
        # No event: setting one takes a lock that cannot be taken again.
        self._stopped = False

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        confinement: Confinement | None = None,
    ) -> ProgramReply:
        """Run ``command`` to its end; whatever it started ends with it."""
        job = Job(
            command=tuple(command),
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            cwd=cwd,
            environment=environment,
            confinement=confinement or UNCONFINED,
        )
        try:
            return self._run(job, warmth_for(job))
        except LostError:
            return self._run(job, None)

    def _run(self, job: Job, warmth: Warmth | None) -> ProgramReply:
        """Run a program, as a fork of a warm Python where there is one."""
        if self._has_stopped():
            raise EvaluatorError(INTERRUPTED)
        launcher = self._launcher(job, warmth)
        begun = time.monotonic()
        mark = f"{self._brand}.{next(self._numbers)}."
        number = self._take_number()
        try:
            cell = self._cell(job, launcher, mark, number)
            self._note(cell.shortcomings)
            ward = start(cell.order(job.command, job.cwd), launcher, imports_for(job))
            pipes = Pipes(ward, job.stdin)
            try:
                self._enlist(number, ward)
                _attend(ward, pipes, begun=begun, timeout_seconds=job.timeout_seconds)
            except BaseException:
                ward.kill()
                raise
            finally:
                exit_code = self._dismiss(ward, mark)
        finally:
            self._return_number(number)
        if self._has_stopped() and exit_code == -signal.SIGKILL:
            raise EvaluatorError(INTERRUPTED)
        if ward.excess:
            raise EvaluatorError(ward.excess)
        return ProgramReply(
            stdout=bytes(pipes.output),
            stderr=_text(pipes.log),
            exit_code=exit_code,
        )

    def shortcomings(self) -> Collection[str]:
        """What confinements asked for and this machine could not give."""
        return tuple(self._shortcomings)

    def stop(self) -> None:
        """End all programs at once, and refuse to run any more."""
        with self._lock:
            self._stopped = True
            for ward in tuple(self._running.values()):
                if ward is not None:
                    ward.kill()
        end_marked(self._brand)
        if self._adopts:
            end_children(spared=OFFICE.numbers())

    def _has_stopped(self) -> bool:
        return self._stopped

    def _launcher(self, job: Job, warmth: Warmth | None) -> Launcher:
        with self._lock:
            self._adopts = self._adopts or adopt()
            if self._builder is None:
                with suppress(OSError):  # what we hold is not for programs of the same user
                    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        if warmth is None or warmth.confinement is None:
            return OFFICE.launcher(warmth)
        return OFFICE.launcher(warmth, start=partial(self._start_jailed, job, warmth))

    def _start_jailed(self, job: Job, warmth: Warmth) -> Launcher:
        """Start a warm Python as if it were a program, in the jail of those that it becomes."""
        number, cold = self._take_number(), OFFICE.launcher()
        jailed = starting(warmth, job)
        cell = self._cell(jailed, cold, f"{self._brand}.warm.", number)
        ward = start(cell.order(jailed.command, jailed.cwd), cold, pipes=STREAMS_OF_WARM_ONES)
        self._enlist(number, ward)

        def end() -> None:
            ward.kill()
            with suppress(EvaluatorError):
                ward.release()
            self._return_number(number)

        channel = socket.socket(fileno=os.dup(ward.stdin.fileno()))
        folder = cell.environment["TMPDIR"]
        ward.stdout.close()
        return Launcher(channel, end=end, number=None, warmth=warmth, folder=folder)

    def _builder_for(self, launcher: Launcher) -> Builder:
        if launcher.folder:
            return Builder(facts=launcher.facts)
        with self._lock:
            if self._builder is None:
                self._builder = Builder(facts=launcher.facts)
            return self._builder

    def _cell(self, job: Job, launcher: Launcher, mark: str, number: int) -> Cell:
        seen = {**job.environment, MARK: mark}
        if not job.confinement.jailed:
            return Cell(jail=None, environment=seen)
        if launcher.folder:
            seen["TMPDIR"] = launcher.folder
        return self._builder_for(launcher).build(
            job.confinement,
            command=job.command,
            cwd=job.cwd,
            environment=seen,
            timeout_seconds=job.timeout_seconds,
            number=number,
        )

    def _note(self, shortcomings: Sequence[str]) -> None:
        with self._lock:
            self._shortcomings.update(dict.fromkeys(shortcomings))

    def _take_number(self) -> int:
        """The lowest one that no running program has."""
        with self._lock:
            number = next(each for each in itertools.count() if each not in self._running)
            self._running[number] = None
            return number

    def _return_number(self, number: int) -> None:
        with self._lock:
            del self._running[number]

    def _enlist(self, number: int, ward: Ward) -> None:
        with self._lock:
            self._running[number] = ward
            if self._has_stopped():
                ward.kill()

    @staticmethod
    def _dismiss(ward: Ward, mark: str) -> int:
        try:
            return ward.release()
        finally:
            if ward.left:
                end_marked(mark)


def _attend(ward: Ward, pipes: Pipes, *, begun: float, timeout_seconds: float) -> None:
    """Feed the program and listen to it until it has ended.

    Raises:
        EvaluatorError: why it has to be ended.
    """
    while not ward.has_ended():
        left = begun + timeout_seconds - time.monotonic()
        if left <= 0:
            raise EvaluatorError(_overdue(timeout_seconds, _text(pipes.log)))
        pipes.step(left)
    pipes.forget(ward)
    given_up = time.monotonic() + GRACE_SECONDS
    while pipes.open and (left := given_up - time.monotonic()) > 0:
        pipes.step(left)


def _overdue(timeout_seconds: float, log: str) -> str:
    last_words = truncate.end(log.rstrip().rpartition("\n")[2], MAX_LAST_WORDS)
    printed = f"; its last words on stderr: {last_words}" if last_words else ""
    return f"timed out after {timeout_seconds:g}s; raise its timeout if it needs longer{printed}"


def _text(log: Sink) -> str:
    return bytes(log).decode("utf-8", "replace")
