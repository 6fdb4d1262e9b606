"""An HTTP client for unreliable and untrusted servers, with retries and deadlines."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final

from agentci._util.http.interface import DEFAULT_LIMITS, HttpLimits, HttpResponse
from agentci._util.http.retries import (
    NETWORK_HINT,
    DeadlineExceededError,
    RetryableError,
    check_stopped,
    compute_wait_seconds,
    run_with_deadline,
    sleep_unless_stopped,
)
from agentci._util.text.format import format_count, format_number
from agentci.errors import UnreachableError

if TYPE_CHECKING:
    from agentci._util.http.transport import HttpRequest, HttpTransport

GET: Final = "GET"
POST: Final = "POST"


def _never_stopped() -> bool:
    return False


def _find_no_failure(_: HttpResponse) -> None:
    return None


class HttpClient:
    """The HTTP client of a run; implements ``HttpGetter``.

    Args:
        tell: receives a line for every wait, in the waiting thread.
        stopped: returns True when the run has to end; it interrupts every wait and read.
    """

    def __init__(
        self,
        *,
        tell: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        stopped: Callable[[], bool] = _never_stopped,
        limits: HttpLimits = DEFAULT_LIMITS,
    ) -> None:
        self._tell = tell
        self._sleep = sleep
        self._clock = clock
        self._stopped = stopped
        self._limits = limits
        self._lock = Lock()
        self._exchange: HttpTransport | None = None

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Get ``url``, with retries.

        Of an unsuccessful response, at most ``limit_bytes`` are read and the rest is dropped.

        Raises:
            UnreachableError: no attempt got a complete response, or the run has to end.
            PermanentFetchError: the response is too large, or redirects to an address that is not
                allowed.
        """
        return self.ask(url, limit_bytes=limit_bytes, headers=headers or {})

    def ask(
        self,
        url: str,
        *,
        limit_bytes: int,
        headers: Mapping[str, str],
        method: str = GET,
        content: bytes | None = None,
        busy: Callable[[HttpResponse], RetryableError | None] = _find_no_failure,
    ) -> HttpResponse:
        """Send a request, with retries; redirects are followed only for GET.

        A POST is not retried if a server may have processed it.

        Args:
            busy: returns an error if a response asks for a retry in its body.

        Raises:
            FetchError: as for ``get``.
        """
        # requests is slow to import, and most runs fetch nothing.
        from agentci._util.http.transport import HttpTransport, make_http_request  # noqa: PLC0415 (see above)

        wish = make_http_request(url, headers, limit_bytes, content=content, method=method)
        with self._lock:
            exchange = self._exchange = self._exchange or HttpTransport(self._limits)
        fetch = partial(exchange.fetch if method == GET else exchange.send_checked, wish)
        tries = 1
        while True:
            try:
                response = self._try(fetch)
                if failure := busy(response):
                    raise failure
            except RetryableError as failure:
                self._wait(failure, wish, tries)
            else:
                return response
            tries += 1

    def _try(self, fetch: Callable[[Callable[[], bool]], HttpResponse]) -> HttpResponse:
        seconds = self._limits.document_seconds
        check_stopped(self._stopped)
        try:
            return run_with_deadline(
                fetch, seconds=seconds, clock=self._clock, stopped=self._stopped
            )
        except DeadlineExceededError as error:
            said = f"it was not all there after {format_number(seconds)} s"
            raise RetryableError(said, hint=NETWORK_HINT) from error

    def _wait(self, failure: RetryableError, wish: "HttpRequest", tries: int) -> None:
        """Wait for the next attempt.

        Raises:
            UnreachableError: there is none.
        """
        most, shown = self._limits.tries, wish.address.shown
        if failure.arrived and wish.method == POST:
            said = f"nobody knows whether {shown} took what was sent: {failure}"
            raise UnreachableError(said, hint=failure.hint) from failure
        if tries >= most:
            said = f"{shown} cannot be had: {failure} (tried {format_count(most, 'time')})"
            raise UnreachableError(said, hint=failure.hint) from failure
        longest, asked = self._limits.longest_wait_seconds, failure.asked_seconds
        if asked is not None and asked > longest:
            said = f"{shown} cannot be had: {failure} and asks to wait {asked:,.0f} s"
            raise UnreachableError(said, hint=failure.hint) from failure
        seconds = min(compute_wait_seconds(failure, tries), longest)
        self._tell(
            f"waiting {format_number(seconds, 1)} s for {shown}: {failure} (try {tries} of {most})"
        )
        sleep_unless_stopped(seconds, sleep=self._sleep, stopped=self._stopped)
