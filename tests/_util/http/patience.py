"""An HTTP client with a simulated clock: it does not wait, and records its waits."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agentci._util.http import DEFAULT_LIMITS, HttpLimits
from agentci._util.http_client import HttpClient


@dataclass(slots=True)
class Patience:
    """A clock that ``sleep`` moves forward at once.

    Attributes:
        slept: total seconds of all waits.
        told: messages that the client reported.
    """

    slept: float = 0
    told: list[str] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def clock(self) -> float:
        return time.monotonic() + self.slept

    def client(
        self,
        *,
        limits: HttpLimits = DEFAULT_LIMITS,
        stopped: Callable[[], bool] | None = None,
    ) -> HttpClient:
        """Makes a client that uses this clock."""
        return HttpClient(
            report=self.told.append,
            sleep=self.sleep,
            clock=self.clock,
            stopped=stopped or (lambda: False),
            limits=limits,
        )


def after(looks: int) -> Callable[[], bool]:
    """Makes a stop check: False for the first ``looks`` calls, then True."""
    counter = itertools.count(1)
    return lambda: next(counter) > looks
