"""Who has the launchers of this process: one of each kind, and another one where one has died."""

import atexit
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from agentci.errors import EvaluatorError
from agentci.execution.child_process.launcher import GONE, Launcher, launch
from agentci.execution.child_process.prefork import Warmth

# What programs manage to end so often is not started again.
MOST_STARTS: Final = 8


class _Office:
    """Who has the launchers of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._launchers: dict[Warmth | None, Launcher] = {}
        self._starts: Counter[Warmth | None] = Counter()
        self._process = 0

    def launcher(
        self, warmth: Warmth | None = None, *, start: Callable[[], Launcher] | None = None
    ) -> Launcher:
        """The launcher; a cold one where no such warm one can be had.

        Args:
            start: starts one that is jailed.

        Raises:
            EvaluatorError: none can be started.
        """
        with self._lock:
            if self._process != os.getpid():  # a fork of ours has nothing of it
                self._launchers, self._process = {}, os.getpid()
            if warmth in self._launchers and not self._launchers[warmth].lives():
                self._launchers.pop(warmth).close()
            if warmth not in self._launchers:
                try:
                    self._launchers[warmth] = self._start(warmth, start or partial(launch, warmth))
                except EvaluatorError:
                    if warmth is None:
                        raise
                    self._starts[warmth] = MOST_STARTS
                    return self.launcher()
            return self._launchers[warmth]

    def numbers(self) -> Collection[int]:
        """Of those of the launchers' processes that are children of ours."""
        launchers = tuple(self._launchers.values())
        return [each.number for each in launchers if each.number is not None]

    def close(self) -> None:
        """Have no launcher any more."""
        if self._process == os.getpid():
            for launcher in reversed(self._launchers.values()):  # it may depend on one before it
                launcher.close()
        self._launchers = {}
        self._starts.clear()

    def _start(self, warmth: Warmth | None, start: Callable[[], Launcher]) -> Launcher:
        if self._starts[warmth] == MOST_STARTS:
            raise EvaluatorError(GONE)
        try:
            launcher = start()
        except OSError as error:
            raise EvaluatorError(f"could not be started: {error}") from error
        self._starts[warmth] += 1
        return launcher


OFFICE: Final = _Office()
atexit.register(OFFICE.close)
