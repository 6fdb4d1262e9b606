"""Gets documents from servers that fail, stall and lie."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from agentci.errors import UnreachableError
from agentci.http.base import Response
from agentci.http.limits import DEFAULT_LIMITS, Limits
from agentci.http.retries import NETWORK_HINT, PassingError, wait_seconds
from agentci.http.watch import OverdueError, heed, pause, watched
from agentci.text.words import count, number

if TYPE_CHECKING:
    from agentci.http.exchange import Exchange


def _never() -> bool:
    return False


class HttpClient:
    """The ``Http`` of a run.

    Args:
        tell: is called with a line for every wait; from the thread that waits.
        stopped: whether the run is to end; every wait and every read does within a moment.
    """

    def __init__(
        self,
        *,
        tell: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        stopped: Callable[[], bool] = _never,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._tell = tell
        self._sleep = sleep
        self._clock = clock
        self._stopped = stopped
        self._limits = limits
        self._lock = Lock()
        self._exchange: Exchange | None = None

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Get ``url``; waits and tries again where that may help.

        Of an answer that is no success, ``limit_bytes`` are read and the rest is left.

        Raises:
            UnreachableError: no whole answer came, however often it was asked for; or the run is
                to end.
            RefusedError: the answer is too large, or leads to where we do not follow.
        """
        # requests is slow to import, and most runs fetch nothing.
        from agentci.http.exchange import Exchange, wish_of  # noqa: PLC0415 (see above)

        wish = wish_of(url, headers or {}, limit_bytes)
        with self._lock:
            exchange = self._exchange = self._exchange or Exchange(self._limits)
        tries = 1
        while True:
            try:
                return self._try(partial(exchange.fetch, wish))
            except PassingError as failure:
                self._wait(failure, wish.address.shown, tries)
            tries += 1

    def _try(self, fetch: Callable[[Callable[[], bool]], Response]) -> Response:
        seconds = self._limits.document_seconds
        heed(self._stopped)
        try:
            return watched(fetch, seconds=seconds, clock=self._clock, stopped=self._stopped)
        except OverdueError as error:
            said = f"it was not all there after {number(seconds)} s"
            raise PassingError(said, hint=NETWORK_HINT) from error

    def _wait(self, failure: PassingError, shown: str, tries: int) -> None:
        """Wait for the next try.

        Raises:
            UnreachableError: there is none.
        """
        most = self._limits.tries
        if tries >= most:
            said = f"{shown} cannot be had: {failure} (tried {count(most, 'time')})"
            raise UnreachableError(said, hint=failure.hint) from failure
        longest, asked = self._limits.longest_wait_seconds, failure.asked_seconds
        if asked is not None and asked > longest:
            said = f"{shown} cannot be had: {failure} and asks to wait {asked:,.0f} s"
            raise UnreachableError(said, hint=failure.hint) from failure
        seconds = min(wait_seconds(failure, tries), longest)
        self._tell(f"waiting {number(seconds, 1)} s for {shown}: {failure} (try {tries} of {most})")
        pause(seconds, sleep=self._sleep, stopped=self._stopped)
