"""Sends requests to model services over HTTP, with retries, rate limits and deadlines."""

import random
import re
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from agentci._util.http.interface import HttpLimits, HttpResponse
from agentci._util.http.retries import (
    DeadlineExceededError,
    RetryableError,
    check_stopped,
    parse_http_date,
    run_with_deadline,
    sleep_unless_stopped,
)
from agentci._util.text.format import format_count, format_number
from agentci.errors import EvaluatorError
from agentci.judges.provider import ServiceCapabilities
from agentci.model.judges import ModelSettings

if TYPE_CHECKING:
    from agentci._util.http.transport import HttpRequest, HttpTransport


RETRYABLE_STATUSES: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
TOO_MANY_REQUESTS: Final = 429

FIRST_BACKOFF_SECONDS: Final = 0.5
MAX_BACKOFF_SECONDS: Final = 30.0
# Share of a wait; spreads the retries of requests that failed together.
MAX_JITTER: Final = 0.25

_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)


def is_retryable(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a retry may succeed; the ``x-should-retry`` header overrides the status.

    Args:
        headers: by name in lower case.
    """
    said = headers.get("x-should-retry", "").strip().lower()
    return said == "true" or (status in RETRYABLE_STATUSES and said != "false")


def parse_retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Parse how many seconds a service asks to wait; None if it does not.

    Args:
        now: seconds since 1970, used with a date if the service does not send its own time.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    said = headers.get("retry-after", "").strip()
    if _NUMBER.fullmatch(said):
        return float(said)
    until, here = parse_http_date(said), parse_http_date(headers.get("date", ""))
    if until is None:
        return None
    return max(0.0, until - (now if here is None else here))


def compute_backoff(tries: int) -> float:
    """Compute the wait after ``tries`` attempts without a Retry-After; it doubles each time."""
    seconds = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** (tries - 1))
    return seconds * (1 - random.uniform(0, MAX_JITTER))  # noqa: S311 (nothing to guess)


class ServiceState:
    """The state of one account at one service: pauses, failure, capabilities of models."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._not_before = 0.0
        self._disabled_reason = ""
        self._capabilities: dict[str, ServiceCapabilities] = {}

    def wait_seconds(self, now: float) -> float:
        """Return how long to wait before the next request.

        Raises:
            EvaluatorError: the service is disabled.
        """
        with self._lock:
            if self._disabled_reason:
                raise EvaluatorError(self._disabled_reason)
            return max(0.0, self._not_before - now)

    def pause_until(self, until: float) -> None:
        """Delay all requests until ``until``."""
        with self._lock:
            self._not_before = max(self._not_before, until)

    def disable(self, why: str) -> None:
        """Refuse all further requests."""
        with self._lock:
            self._disabled_reason = why

    def known_capabilities(self, model: str) -> ServiceCapabilities | None:
        """Return the capabilities that worked for a model; None before its first response."""
        return self._capabilities.get(model)

    def remember_capabilities(self, model: str, way: ServiceCapabilities) -> None:
        """Remember the capabilities that worked for a model."""
        self._capabilities[model] = way


class ServiceStates:
    """The service states of one run."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._states: dict[Hashable, ServiceState] = {}

    def get(self, settings: ModelSettings) -> ServiceState:
        """Return the state for ``settings``."""
        key = (settings.provider, settings.base_url, settings.key_variable, settings.federation)
        with self._lock:
            return self._states.setdefault(key, ServiceState())


T = TypeVar("T")

# Far above the size of any verdict.
MAX_RESPONSE_BYTES: Final = 4 * 1024**2

LIMITS: Final = HttpLimits(tries=5, connect_seconds=5, silence_seconds=60, longest_wait_seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRequest:
    """A request with its key.

    Attributes:
        content: body; None for none.
        method: HTTP method; empty for POST with a body and GET without one.
        until: deadline, by the clock of the transport.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)
    has_key: bool
    until: float
    method: str = ""


class Transport:
    """Connections to services; thread-safe.

    Args:
        tell: receives a line for every wait.
        stopped: returns True when the run has to end; it interrupts every wait and read.
    """

    def __init__(
        self,
        *,
        tell: Callable[[str], None],
        stopped: Callable[[], bool],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        limits: HttpLimits = LIMITS,
    ) -> None:
        self.clock = clock
        self.report = tell
        self.stopped = stopped
        self._sleep = sleep
        self._limits = limits
        self._lock = Lock()
        self._exchange: HttpTransport | None = None

    def send(
        self,
        letter: ServiceRequest,
        account: ServiceState,
        attempt: Callable[[Callable[[], HttpResponse]], T],
    ) -> T:
        """Send a request, with retries.

        Args:
            attempt: makes one attempt by calling its argument once, and returns the result; a
                RetryableError that it raises leads to a retry, too.

        Raises:
            EvaluatorError: no attempt succeeded, or no time is left for one.
            FetchError: the service cannot be trusted, or the run has to end.
        """
        # requests is slow to import, and most runs call no model.
        from agentci._util.http.transport import make_http_request  # noqa: PLC0415 (see above)

        wish = make_http_request(
            letter.url,
            letter.headers,
            MAX_RESPONSE_BYTES,
            content=letter.content,
            method=letter.method,
            unencrypted=not letter.has_key,
        )
        tries = 1
        while True:
            # Another thread may extend the wait in the meantime.
            while (seconds := account.wait_seconds(self.clock())) > 0:
                self._wait(seconds, letter, "it asked to be left alone")
            try:
                return attempt(partial(self._send_once, wish, letter))
            except RetryableError as failure:
                self._wait_for_retry(failure, wish.address.shown, tries, letter, account)
            tries += 1

    def _send_once(self, wish: "HttpRequest", letter: ServiceRequest) -> HttpResponse:
        """Send the request once.

        Raises:
            RetryableError: a retry may succeed.
        """
        check_stopped(self.stopped)
        seconds = letter.until - self.clock()
        if seconds <= 0:  # the request may cost money, and its response would be lost
            raise EvaluatorError(f"no time is left to ask {wish.address.shown}")
        try:
            return run_with_deadline(
                partial(self._connections().send_once, wish),
                seconds=seconds,
                clock=self.clock,
                stopped=self.stopped,
            )
        except DeadlineExceededError:
            raise EvaluatorError(f"{wish.address.shown} did not answer in time") from None

    def _wait_for_retry(
        self,
        failure: RetryableError,
        shown: str,
        tries: int,
        letter: ServiceRequest,
        account: ServiceState,
    ) -> None:
        """Wait for the next attempt, or make all threads wait.

        Raises:
            EvaluatorError: there is no next attempt.
        """
        most, longest = self._limits.tries, self._limits.longest_wait_seconds
        asked = failure.asked_seconds
        if asked is not None and asked > longest:
            raise EvaluatorError(f"{shown}: {failure} and asks to wait {asked:,.0f} s")
        seconds = compute_backoff(tries) if asked is None else asked
        concerns_all = asked is not None or isinstance(failure, RateLimitedError)
        if concerns_all:
            account.pause_until(self.clock() + seconds)
        if tries >= most:
            said = f"{shown}: {failure} (tried {format_count(most, 'time')}); {failure.hint}"
            raise EvaluatorError(said)
        why = f"{failure} (try {tries} of {most})"
        self.report(f"waiting {format_number(seconds, 1)} s for {shown}: {why}")
        if not concerns_all:
            self._wait(seconds, letter, str(failure))

    def _wait(self, seconds: float, letter: ServiceRequest, why: str) -> None:
        if self.clock() + seconds >= letter.until:
            raise EvaluatorError(f"no time is left to ask the judge again: {why}")
        sleep_unless_stopped(seconds, sleep=self._sleep, stopped=self.stopped)

    def _connections(self) -> "HttpTransport":
        from agentci._util.http.transport import HttpTransport  # noqa: PLC0415 (slow to import)

        with self._lock:
            self._exchange = self._exchange or HttpTransport(self._limits)
            return self._exchange


class RateLimitedError(RetryableError):
    """A service received too many requests from all threads together."""
