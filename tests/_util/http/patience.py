"""A client in a world of its own: it waits for nothing, and remembers what it would have done."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agentci._util.http.client import HttpClient
from agentci._util.http.interface import DEFAULT_LIMITS, HttpLimits


@dataclass(slots=True)
class Patience:
    """Time that passes at once when somebody sleeps.

    Attributes:
        slept: how long, in all.
        told: what the client said.
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
        """A client that lives in this time."""
        return HttpClient(
            report=self.told.append,
            sleep=self.sleep,
            clock=self.clock,
            stopped=stopped or (lambda: False),
            limits=limits,
        )


def after(looks: int) -> Callable[[], bool]:
    """Whether the run is to end: not at the first ``looks`` looks, but from then on."""
    counter = itertools.count(1)
    return lambda: next(counter) > looks
