"""An HTTP client for unreliable and untrusted servers, with retries and deadlines."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final

from agentci._util.http import (
    DEFAULT_LIMITS,
    NETWORK_HINT,
    DeadlineExceededError,
    HttpLimits,
    HttpResponse,
    Retries,
    RetryableError,
    check_stopped,
    run_with_deadline,
    sleep_unless_stopped,
)
from agentci._util.text.format import format_number
from agentci.model.values import replace

if TYPE_CHECKING:
    from agentci._util.http_transport import HttpTransport

GET: Final = "GET"
POST: Final = "POST"


class HttpConnections:
    """What HTTP clients share: connections, retries, time limits and interruption; thread-safe.

    Args:
        report: receives a line for every retry, in the waiting thread.
        stopped: returns True when the run has to end; it interrupts every wait and read.
    """

    def __init__(
        self,
        *,
        report: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        stopped: Callable[[], bool] = lambda: False,
        limits: HttpLimits = DEFAULT_LIMITS,
    ) -> None:
        self.report = report
        self.clock = clock
        self.stopped = stopped
        self.limits = limits
        self._sleep = sleep
        self._lock = Lock()
        self._transport: HttpTransport | None = None

    @property
    def transport(self) -> "HttpTransport":
        """The open connections."""
        # requests is slow to import, and most runs fetch nothing.
        from agentci._util.http_transport import HttpTransport  # noqa: PLC0415 (see above)

        with self._lock:
            self._transport = self._transport or HttpTransport(self.limits)
            return self._transport

    def run_attempt(
        self, send: Callable[[Callable[[], bool]], HttpResponse], *, seconds: float
    ) -> HttpResponse:
        """Send a request once.

        Raises:
            DeadlineExceededError: it was not finished after ``seconds``.
            RetryableError: a retry may succeed.
            FetchError: a retry would fail, or the run has to end.
        """
        check_stopped(self.stopped)
        return run_with_deadline(send, seconds=seconds, clock=self.clock, stopped=self.stopped)

    def sleep(self, seconds: float) -> None:
        """Sleep.

        Raises:
            UnreachableError: the run has to end.
        """
        sleep_unless_stopped(seconds, sleep=self._sleep, stopped=self.stopped)


class HttpClient(HttpConnections):
    """The HTTP client of a run; implements ``HttpGetter``."""

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """See ``HttpGetter``; an unsuccessful response is truncated at ``limit_bytes``."""
        return self.ask(url, limit_bytes=limit_bytes, headers=headers or {})

    def ask(  # noqa: PLR0913 (the last four have defaults)
        self,
        url: str,
        *,
        limit_bytes: int,
        headers: Mapping[str, str],
        method: str = GET,
        content: bytes | None = None,
        busy: Callable[[HttpResponse], RetryableError | None] = lambda _: None,
        retry: bool = True,
    ) -> HttpResponse:
        """Send a request, with retries; redirects are followed only for GET.

        A POST is not retried if a server may have processed it.

        Args:
            busy: returns an error if a response asks for a retry in its body.
            retry: False for what a run can do without.

        Raises:
            FetchError: as for ``get``.
        """
        from agentci._util.http_transport import make_http_request  # noqa: PLC0415 (slow to import)

        request = make_http_request(url, headers, limit_bytes, content=content, method=method)
        transport = self.transport
        send = partial(transport.fetch if method == GET else transport.send_checked, request)
        limits = self.limits if retry else replace(self.limits, tries=1)
        retries = Retries(
            request.address.shown, limits=limits, report=self.report, resend=method != POST
        )
        while True:
            try:
                response = self._run_attempt(send)
                if failure := busy(response):
                    raise failure
            except RetryableError as failure:
                seconds = retries.compute_wait(failure)
                retries.start_retry(failure, seconds)
            else:
                return response
            self.sleep(seconds)

    def _run_attempt(self, send: Callable[[Callable[[], bool]], HttpResponse]) -> HttpResponse:
        seconds = self.limits.document_seconds
        try:
            return self.run_attempt(send, seconds=seconds)
        except DeadlineExceededError as error:
            message = f"no complete response within {format_number(seconds)} s"
            raise RetryableError(message, hint=NETWORK_HINT) from error
