"""HTTP clients: their interface and limits, which failures they retry, and their deadlines."""

import random
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Final, NoReturn, Protocol, TypeVar

from msgspec import Struct, field

from agentci._util.text.format import format_count, format_number
from agentci.errors import OfflineError, UnreachableError

MAX_TRIES: Final = 5
CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 20.0
DOCUMENT_SECONDS: Final = 60.0
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
MAX_REDIRECTS: Final = 5


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Limits for requests to a server.

    Attributes:
        tries: attempts per document, including the first.
        silence_seconds: maximum time between two bytes, and before the first.
        document_seconds: time limit of one attempt, from resolving the host name to the last byte,
            redirects included.
        first_wait_seconds: minimum wait after the first attempt; doubled after each further one.
        longest_wait_seconds: longest wait that a server may ask for.
    """

    tries: int = MAX_TRIES
    connect_seconds: float = CONNECT_SECONDS
    silence_seconds: float = SILENCE_SECONDS
    document_seconds: float = DOCUMENT_SECONDS
    first_wait_seconds: float = FIRST_WAIT_SECONDS
    longest_wait_seconds: float = LONGEST_WAIT_SECONDS
    redirects: int = MAX_REDIRECTS


DEFAULT_LIMITS: Final = HttpLimits()


class HttpResponse(Struct, frozen=True, kw_only=True):
    """The final response: a success, or an error that a retry does not help with.

    Attributes:
        headers: by name in lower case.
    """

    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpGetter(Protocol):
    """Downloads documents; thread-safe."""

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Get ``url``, with retries.

        Args:
            limit_bytes: maximum size of the content.
            headers: sent only to the host of ``url``, not to redirect targets.

        Raises:
            UnreachableError: no attempt got a complete response, or the run has to end.
            PermanentFetchError: the response is too large, or redirects to an address that is not
                allowed.
        """


class OfflineHttp:
    """Client for offline runs: every request fails."""

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> NoReturn:
        """Refuse the request.

        Raises:
            OfflineError: always.
        """
        del url, limit_bytes, headers
        raise OfflineError("it is not in the cache, and `--offline` forbids the download")


INTERRUPTED: Final = "was interrupted"
# Interval of checks whether the run has to end; results are seen at once.
POLL_SECONDS: Final = 0.1

T = TypeVar("T")


class DeadlineExceededError(Exception):
    """The work was not finished in time."""


def run_with_deadline(
    work: Callable[[Callable[[], bool]], T],
    *,
    seconds: float,
    clock: Callable[[], float],
    stopped: Callable[[], bool],
) -> T:
    """Run ``work`` in its own thread, which is abandoned at the deadline.

    Sockets cannot enforce a deadline for everything, and a name lookup cannot be cancelled. The
    thread is a daemon, so it does not keep the process alive.

    Args:
        work: receives a function that returns True once the result is no longer needed.

    Raises:
        DeadlineExceededError: it was not finished after ``seconds``.
        UnreachableError: the run has to end.
    """
    from concurrent.futures import Future, wait  # noqa: PLC0415 (most runs fetch nothing)

    left = Event()
    future: Future[T] = Future()

    def carry_out() -> None:
        try:
            future.set_result(work(left.is_set))
        except BaseException as error:  # noqa: BLE001 (raised by result())
            future.set_exception(error)

    until = clock() + seconds
    Thread(target=carry_out, name="agentci-http", daemon=True).start()
    try:
        while not wait((future,), timeout=POLL_SECONDS).done:
            check_stopped(stopped)
            if clock() >= until:
                raise DeadlineExceededError
        return future.result()
    finally:
        left.set()


def sleep_unless_stopped(
    seconds: float, *, sleep: Callable[[float], None], stopped: Callable[[], bool]
) -> None:
    """Sleep in short pieces, so that the run can end quickly.

    Raises:
        UnreachableError: the run has to end.
    """
    left = seconds
    while left > 0:
        check_stopped(stopped)
        sleep(min(left, POLL_SECONDS))
        left -= POLL_SECONDS
    check_stopped(stopped)


def check_stopped(stopped: Callable[[], bool]) -> None:
    """Raise if the run has to end.

    Raises:
        UnreachableError: the run has to end.
    """
    if stopped():
        raise UnreachableError(INTERRUPTED)


# Share by which a wait is extended at random; spreads the retries of requests that failed together.
MAX_JITTER: Final = 1 / 3

RETRYABLE_STATUSES: Final = frozenset({429, 500, 502, 503, 504})
FORBIDDEN: Final = 403
TOO_MANY_REQUESTS: Final = 429

RATE_LIMIT_HINT: Final = "try again later; a token (GITHUB_TOKEN) raises the limit of GitHub"
NETWORK_HINT: Final = "check that the server is up and that no firewall blocks it"
STATUS_HINT: Final = "try again later, or check whether the server reports an outage"

# Allows more than any accepted or plausible wait.
_SECONDS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", re.ASCII)
_MAX_DATE_CHARACTERS = 64


class RetryableError(Exception):
    """A failure that a retry may fix; the message is a phrase without the URL ("status 503").

    Attributes:
        hint: what the user can do if all attempts failed.
        asked_seconds: how long the server asked to wait, if it did.
        arrived: whether the server may have processed the request; False if it was not reached or
            refused.
    """

    def __init__(
        self, why: str, *, hint: str, asked_seconds: float | None = None, arrived: bool = True
    ) -> None:
        self.hint = hint
        self.asked_seconds = asked_seconds
        self.arrived = arrived
        super().__init__(why)


class Retries:
    """Counts the attempts of one request: how long to wait, what to report, when to give up.

    Args:
        url: for messages.
        report: receives a line for every retry.
        resend: whether to repeat a request that the server may have processed.
    """

    def __init__(
        self, url: str, *, limits: HttpLimits, report: Callable[[str], None], resend: bool = True
    ) -> None:
        self._url = url
        self._limits = limits
        self._report = report
        self._resend = resend
        self._attempts = 1

    def compute_wait(self, failure: RetryableError) -> float:
        """Compute the wait before the next attempt, in seconds: as asked, else doubled each time.

        Raises:
            UnreachableError: the server asks for a longer wait than is allowed.
        """
        longest, asked = self._limits.longest_wait_seconds, failure.asked_seconds
        if asked is None:
            seconds = self._limits.first_wait_seconds * 2.0 ** (self._attempts - 1)
            jitter = random.uniform(0, MAX_JITTER)  # noqa: S311 (there is nothing to guess)
            return min(seconds * (1 + jitter), longest)
        if asked > longest:
            raise self._give_up(
                failure, f"; it asks to wait {asked:,.0f} s, the limit is {longest:,.0f} s"
            )
        return asked

    def start_retry(self, failure: RetryableError, seconds: float) -> None:
        """Count the failed attempt, and report that the next one follows after ``seconds``.

        Raises:
            UnreachableError: there is no next attempt.
        """
        attempts, limit = self._attempts, self._limits.tries
        if failure.arrived and not self._resend:
            raise self._give_up(
                failure, "; the server may have processed the request, so it is not repeated"
            )
        if attempts >= limit:
            raise self._give_up(failure, f" ({format_count(attempts, 'attempt')})")
        self._attempts += 1
        wait = f"retrying in {format_number(seconds, 1)} s ({attempts}/{limit})"
        self._report(f"{self._url}: {failure}; {wait}")

    def _give_up(self, failure: RetryableError, why: str) -> UnreachableError:
        return UnreachableError(f"{self._url}: {failure}{why}", hint=failure.hint)


def find_retryable_error(
    status: int, headers: Mapping[str, str], *, now: float
) -> RetryableError | None:
    """Return the error of a status that a retry may fix; None for other statuses.

    Args:
        now: seconds since 1970, if the server does not send its own time.
    """
    limited = status == TOO_MANY_REQUESTS or _is_rate_limit(status, headers)
    if not limited and status not in RETRYABLE_STATUSES:
        return None
    seconds = parse_retry_after(headers, now=now)
    if seconds is None and limited:
        seconds = _parse_rate_limit_reset(headers, now=now)
    return RetryableError(
        f"status {status}",
        hint=RATE_LIMIT_HINT if limited else STATUS_HINT,
        asked_seconds=seconds or None,
        arrived=not limited,
    )


def _is_rate_limit(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a 403 is a rate limit, for which GitHub uses it like 429."""
    return status == FORBIDDEN and (_is_quota_exhausted(headers) or "retry-after" in headers)


def _is_quota_exhausted(headers: Mapping[str, str]) -> bool:
    return headers.get("x-ratelimit-remaining") == "0"


def _parse_rate_limit_reset(headers: Mapping[str, str], *, now: float) -> float | None:
    """Parse how many seconds GitHub's rate limit lasts; None if that is unknown."""
    reset = headers.get("x-ratelimit-reset", "")
    if not (_is_quota_exhausted(headers) and _SECONDS.fullmatch(reset)):
        return None
    # The limit resets after the named second.
    return max(0.0, float(reset) - _get_server_time(headers, now) + 1)


def parse_retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Parse how many seconds a server asks to wait; None if it does not, or invalidly.

    Args:
        headers: by name in lower case.
        now: seconds since 1970, used with a date if the server does not send its own time.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    if (until := parse_http_date(value)) is None:
        return None
    return max(0.0, until - _get_server_time(headers, now))


def _get_server_time(headers: Mapping[str, str], now: float) -> float:
    date = parse_http_date(headers.get("date", ""))
    return now if date is None else date


def parse_http_date(date: str) -> float | None:
    """Parse an HTTP date to seconds since 1970; None if it is invalid."""
    if not 0 < len(date) <= _MAX_DATE_CHARACTERS:
        return None
    # Imports sockets and the email package, which offline runs need not load.
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 (see above)

    try:
        moment = parsedate_to_datetime(date)
        return _assume_utc(moment).timestamp()
    except (ValueError, OverflowError):
        return None


def _assume_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
