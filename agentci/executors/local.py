"""Runs programs as children of this process."""

import itertools
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError
from agentci.executors.base import INTERRUPTED
from agentci.executors.child.group import ProcessGroup, start
from agentci.executors.child.orphans import adopt, end_children
from agentci.executors.child.pipes import Pipes, Sink
from agentci.executors.child.stragglers import MARK, end_marked
from agentci.model.exchange import ProgramReply

# How long what was printed may take to arrive once the program itself has ended, where a process
# in its background keeps the pipe open.
GRACE_SECONDS: Final = 0.2

# Between two looks at whether the program has ended; twice as long after each in vain.
SHORTEST_PAUSE_SECONDS: Final = 0.0001
LONGEST_PAUSE_SECONDS: Final = 0.05

MAX_LAST_WORDS: Final = 300


class LocalExecutor:
    """An executor that gives each program a process group of its own, and no more than that.

    The group is killed as soon as the program has ended, run out of time or printed too much.
    A process that left the group is found by its environment when it holds a pipe, when time ran
    out, and on ``stop``; one that cleared its environment as well only on ``stop``.
    """

    def __init__(self) -> None:
        self._brand = os.urandom(8).hex()
        self._numbers = itertools.count(1)
        # Taken again by the signal handler that calls stop() in the middle of a run.
        self._lock = threading.RLock()
        self._running: set[ProcessGroup] = set()
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
    ) -> ProgramReply:
        """Run ``command`` to its end; whatever it started ends with it."""
        if self._has_stopped():
            raise EvaluatorError(INTERRUPTED)
        with self._lock:
            self._adopts = self._adopts or adopt()
        begun = time.monotonic()
        mark = f"{self._brand}.{next(self._numbers)}."
        group = start(command, cwd=cwd, environment={**environment, MARK: mark})
        pipes = Pipes(group.process, stdin)
        try:
            self._enlist(group)
            _attend(group, pipes, begun=begun, timeout_seconds=timeout_seconds)
        finally:
            exit_code = self._dismiss(group, pipes, mark)
        if self._has_stopped() and exit_code == -signal.SIGKILL:
            raise EvaluatorError(INTERRUPTED)
        return ProgramReply(
            stdout=bytes(pipes.output),
            stderr=_text(pipes.log),
            exit_code=exit_code,
        )

    def stop(self) -> None:
        """End all programs at once, and refuse to run any more."""
        with self._lock:
            self._stopped = True
            for group in self._running:
                group.kill()
        end_marked(self._brand)
        if self._adopts:
            end_children()

    def _has_stopped(self) -> bool:
        return self._stopped

    def _enlist(self, group: ProcessGroup) -> None:
        with self._lock:
            self._running.add(group)
            if self._has_stopped():
                group.kill()

    def _dismiss(self, group: ProcessGroup, pipes: Pipes, mark: str) -> int:
        group.kill()
        if pipes.open:
            end_marked(mark)
        with self._lock:
            self._running.discard(group)
        return group.release()


def _attend(group: ProcessGroup, pipes: Pipes, *, begun: float, timeout_seconds: float) -> None:
    """Feed the program and listen to it until it has ended.

    Raises:
        EvaluatorError: why it has to be ended.
    """
    pause = SHORTEST_PAUSE_SECONDS
    while not group.has_ended():
        left = begun + timeout_seconds - time.monotonic()
        if left <= 0:
            raise EvaluatorError(_overdue(timeout_seconds, _text(pipes.log)))
        moved = pipes.step(min(left, pause))
        pause = SHORTEST_PAUSE_SECONDS if moved else min(2 * pause, LONGEST_PAUSE_SECONDS)
    given_up = time.monotonic() + GRACE_SECONDS
    while pipes.open and (left := given_up - time.monotonic()) > 0:
        pipes.step(left)


def _overdue(timeout_seconds: float, log: str) -> str:
    last_words = log.rstrip().rpartition("\n")[2][-MAX_LAST_WORDS:]
    printed = f"; its last words on stderr: {last_words}" if last_words else ""
    return f"timed out after {timeout_seconds:g}s; raise its timeout if it needs longer{printed}"


def _text(log: Sink) -> str:
    return bytes(log).decode("utf-8", "replace")
