"""Sends requests to model services: rate limits that all threads share, deadlines of verdicts.

Error responses are parsed, and formatted without keys.
"""

import json
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from agentci._util.http import (
    RETRYABLE_STATUSES,
    TOO_MANY_REQUESTS,
    DeadlineExceededError,
    HttpLimits,
    HttpResponse,
    Retries,
    RetryableError,
    parse_retry_after,
)
from agentci._util.http_client import HttpConnections
from agentci._util.text import escape, truncate
from agentci._util.text.secrets import redact
from agentci.errors import EvaluatorError
from agentci.judges.providers import ServiceCapabilities
from agentci.model.judges import ModelSettings
from agentci.model.values import Json, JsonObject

if TYPE_CHECKING:
    from agentci._util.http_transport import HttpRequest

# In characters; longer texts are truncated.
MAX_MESSAGE: Final = 2000

PAYMENT_REQUIRED: Final = 402
BAD_REQUEST: Final = 400
# Retrying does not help with these, although their status is 429 or 400.
OUT_OF_CREDIT_CODES: Final = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "enforced_spend_limit_reached",
    }
)
OUT_OF_CREDIT_TEXT: Final = "credit balance is too low"
CONTENT_FILTER_CODE: Final = "content_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiErrorDetails:
    """The error response of a service.

    Attributes:
        codes: all its error codes and types.
        param: the request parameter that it is about.
        message: may quote the request, including the key.
    """

    status: int
    codes: frozenset[str]
    param: str
    message: str = field(repr=False)

    @property
    def is_out_of_credit(self) -> bool:
        """Whether the credit is used up, so that further requests would fail, too."""
        return (
            self.status == PAYMENT_REQUIRED
            or not OUT_OF_CREDIT_CODES.isdisjoint(self.codes)
            or OUT_OF_CREDIT_TEXT in self.message.lower()
        )

    @property
    def is_content_filtered(self) -> bool:
        """Whether a content filter blocked the prompt."""
        return self.status == BAD_REQUEST and CONTENT_FILTER_CODE in self.codes


def parse_api_error(status: int, content: bytes) -> ApiErrorDetails:
    """Parse the body of an unsuccessful response; accepts any bytes."""
    try:
        document: Json = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    parts = tuple(_find_error_objects(document))
    return ApiErrorDetails(
        status=status,
        codes=frozenset(_find_texts(parts, "code", "type", "status")),
        param=next(_find_texts(parts, "param"), ""),
        message=next(_find_texts(parts, "message", "detail", "error"), "")[:MAX_MESSAGE],
    )


def _find_error_objects(document: Json) -> Iterator[JsonObject]:
    """Find the objects that may describe the error, the innermost first."""
    if isinstance(document, list):
        document = document[0] if document else None
    if isinstance(document, Mapping):
        if isinstance(error := document.get("error"), Mapping):
            yield error
        yield document


def _find_texts(parts: tuple[JsonObject, ...], *names: str) -> Iterator[str]:
    for part in parts:
        for name in names:
            if isinstance(value := part.get(name), str) and value:
                yield value


MAX_MESSAGE_SHOWN: Final = 300
MAX_ID: Final = 80
UNAUTHORIZED: Final = frozenset({401, 403})
REDIRECTS: Final = range(300, 400)
NOT_FOUND: Final = 404
GONE: Final = 410
REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id", "apim-request-id")


def format_api_error_with_advice(
    details: ApiErrorDetails, response: HttpResponse, settings: ModelSettings, key: str
) -> str:
    """Format an error response with advice on what to do."""
    shown = format_api_error(details, response, key)
    return f"the judge's service returned {shown}; {_advise(details, settings)}"


def format_api_error(details: ApiErrorDetails, response: HttpResponse, key: str) -> str:
    """Format an error response without advice."""
    shown = f"status {details.status}"
    # A service may quote the rejected key, or a part of it.
    if details.message and details.status not in UNAUTHORIZED:
        shown += f" ({truncate.short(_hide_key(details.message, key), MAX_MESSAGE_SHOWN)})"
    if request_id := _find_request_id(response, key):
        shown += f", request ID {request_id}"
    return shown


def _advise(details: ApiErrorDetails, settings: ModelSettings) -> str:
    status = details.status
    key = settings.key_variable
    if details.is_out_of_credit:
        return f"the key in {key} has no credit left" if key else "no credit is left"
    if status in UNAUTHORIZED:
        return _advise_on_key(settings)
    if status in REDIRECTS:
        return "a redirect is not followed with a key and texts; correct `base_url`"
    if status in {NOT_FOUND, GONE}:
        return f"check that it offers {settings.model}, and that `base_url` is right"
    return "check the judge's settings"


def _advise_on_key(settings: ModelSettings) -> str:
    key = settings.key_variable
    if settings.federation is not None:
        return f"check that the account in `auth` may use {settings.model}"
    if not key:
        return "set `api_key_env` to the environment variable with its key"
    return f"check the key in {key}, and that it may use {settings.model}"


def _find_request_id(response: HttpResponse, key: str) -> str:
    request_id = next(
        (response.headers[name] for name in REQUEST_ID_HEADERS if name in response.headers), ""
    )
    return truncate.short(_hide_key(request_id, key), MAX_ID)


def _hide_key(text: str, key: str) -> str:
    line = escape.escape_for_log_line(text)
    return redact(line, (key,)) if key else line


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
        from agentci._util.http_transport import make_http_request  # noqa: PLC0415 (slow to import)

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
