"""Sends requests to model services: rate limits that all threads share, deadlines of verdicts."""

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from agentci._util.http.client import HttpConnections
from agentci._util.http.interface import HttpLimits, HttpResponse
from agentci._util.http.retries import (
    RETRYABLE_STATUSES,
    TOO_MANY_REQUESTS,
    DeadlineExceededError,
    Retries,
    RetryableError,
    parse_retry_after,
)
from agentci.errors import EvaluatorError
from agentci.judges.provider import ServiceCapabilities
from agentci.model.judges import ModelSettings

if TYPE_CHECKING:
    from agentci._util.http.transport import HttpRequest

SERVICE_RETRYABLE_STATUSES: Final = RETRYABLE_STATUSES | {408, 409, 425, 529}
OUTAGE_HINT: Final = "try again later, or check whether the service reports an outage"


class RateLimitedError(RetryableError):
    """A service received too many requests from all threads together."""


def find_retryable_error(
    response: HttpResponse, message: str, *, now: float
) -> RetryableError | None:
    """Return the error of a response that a retry may fix; None for other responses.

    The ``x-should-retry`` header overrides the status.

    Args:
        message: of the error.
        now: seconds since 1970, if the service does not send its own time.
    """
    advice = response.headers.get("x-should-retry", "").strip().lower()
    if advice != "true" and (
        response.status not in SERVICE_RETRYABLE_STATUSES or advice == "false"
    ):
        return None
    kind = RateLimitedError if response.status == TOO_MANY_REQUESTS else RetryableError
    seconds = parse_retry_after(response.headers, now=now)
    return kind(message, hint=OUTAGE_HINT, asked_seconds=seconds)


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

    def remember_capabilities(self, model: str, capabilities: ServiceCapabilities) -> None:
        """Remember the capabilities that worked for a model."""
        self._capabilities[model] = capabilities


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

LIMITS: Final = HttpLimits(
    tries=5,
    connect_seconds=5,
    silence_seconds=60,
    first_wait_seconds=0.375,  # 0.5 s with jitter
    longest_wait_seconds=60,
)


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


class Transport(HttpConnections):
    """Connections to services; thread-safe."""

    def __init__(
        self,
        *,
        report: Callable[[str], None],
        stopped: Callable[[], bool],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        limits: HttpLimits = LIMITS,
    ) -> None:
        super().__init__(report=report, stopped=stopped, sleep=sleep, clock=clock, limits=limits)

    def send(
        self,
        request: ServiceRequest,
        state: ServiceState,
        attempt: Callable[[Callable[[], HttpResponse]], T],
    ) -> T:
        """Send a request, with retries.

        Args:
            attempt: makes one attempt by calling its argument once, and returns the result; a
                RetryableError that it raises leads to a retry, too.

        Raises:
            EvaluatorError: the service is disabled, or no time is left.
            FetchError: no attempt succeeded, or the run has to end.
        """
        from agentci._util.http.transport import make_http_request  # noqa: PLC0415 (slow to import)

        prepared = make_http_request(
            request.url,
            request.headers,
            MAX_RESPONSE_BYTES,
            content=request.content,
            method=request.method,
            unencrypted=not request.has_key,
        )
        retries = Retries(prepared.address.shown, limits=self.limits, report=self.report)
        while True:
            # Another thread may extend the wait in the meantime.
            while (seconds := state.wait_seconds(self.clock())) > 0:
                self._wait(seconds, request, "the service asked to wait")
            try:
                return attempt(partial(self._send_once, prepared, request.until))
            except RetryableError as failure:
                seconds = retries.compute_wait(failure)
                concerns_all = failure.asked_seconds is not None or isinstance(
                    failure, RateLimitedError
                )
                if concerns_all:
                    state.pause_until(self.clock() + seconds)
                retries.start_retry(failure, seconds)
                if not concerns_all:
                    self._wait(seconds, request, str(failure))

    def _send_once(self, request: "HttpRequest", until: float) -> HttpResponse:
        """Send the request once.

        Raises:
            RetryableError: a retry may succeed.
        """
        seconds = until - self.clock()
        if seconds <= 0:  # the request may cost money, and its response would be lost
            raise EvaluatorError(f"no time left to call {request.address.shown}")
        try:
            return self.run_attempt(partial(self.transport.send_once, request), seconds=seconds)
        except DeadlineExceededError:
            raise EvaluatorError(f"{request.address.shown} did not respond in time") from None

    def _wait(self, seconds: float, request: ServiceRequest, why: str) -> None:
        if self.clock() + seconds >= request.until:
            raise EvaluatorError(f"no time left to call the judge again: {why}")
        self.sleep(seconds)
