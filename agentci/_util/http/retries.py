"""Retries and deadlines: which failures to retry, how long to wait, when to give up."""

import math
import random
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Final, TypeVar

from agentci.errors import UnreachableError

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


FIRST_WAIT_SECONDS: Final = 1.0
# Share of a wait; spreads the retries of requests that failed together.
MAX_JITTER: Final = 0.5

RETRYABLE_STATUSES: Final = frozenset({429, 500, 502, 503, 504})
FORBIDDEN: Final = 403
TOO_MANY_REQUESTS: Final = 429

RATE_LIMIT_HINT: Final = "try again later; a token (GITHUB_TOKEN) raises the limit of GitHub"
NETWORK_HINT: Final = (
    "see whether the server is up, and whether a firewall keeps this machine from it"
)
STATUS_HINT: Final = "try again later, or see whether the server has told of an outage"

# Allows more than any accepted or plausible wait.
_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
_MAX_DATE_CHARACTERS = 64


class RetryableError(Exception):
    """A failure that a retry may fix; the message is a sentence whose subject is usually "it".

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


def find_retryable_error(
    who: str, status: int, headers: Mapping[str, str], *, now: float
) -> RetryableError | None:
    """Return the error of a status that a retry may fix; None for other statuses.

    Args:
        who: start of the error message.
        now: seconds since 1970, if the server does not send its own time.
    """
    limited = status == TOO_MANY_REQUESTS or _is_rate_limit(status, headers)
    if not limited and status not in RETRYABLE_STATUSES:
        return None
    return RetryableError(
        f"{who} answered {status}",
        hint=RATE_LIMIT_HINT if limited else STATUS_HINT,
        asked_seconds=_parse_retry_after(headers, limited=limited, now=now),
        arrived=not limited,
    )


def compute_wait_seconds(failure: RetryableError, tries: int) -> float:
    """Compute the wait after ``tries`` attempts: as asked, else doubled each time."""
    if failure.asked_seconds is not None:
        return failure.asked_seconds
    jitter = random.uniform(0, MAX_JITTER)  # noqa: S311 (there is nothing to guess)
    return FIRST_WAIT_SECONDS * 2.0 ** (tries - 1) * (1 + jitter)


def _is_rate_limit(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a 403 is a rate limit, for which GitHub uses it like 429."""
    return status == FORBIDDEN and (_is_quota_exhausted(headers) or "retry-after" in headers)


def _is_quota_exhausted(headers: Mapping[str, str]) -> bool:
    return headers.get("x-ratelimit-remaining") == "0"


def _parse_retry_after(headers: Mapping[str, str], *, limited: bool, now: float) -> float | None:
    """Parse how many seconds the server asks to wait; None if it does not, or invalidly."""
    said = headers.get("retry-after", "")
    reset = headers.get("x-ratelimit-reset", "") if limited and _is_quota_exhausted(headers) else ""
    moment = parse_http_date(headers.get("date", ""))
    here = now if moment is None else moment
    if _SECONDS.fullmatch(said):
        asked = float(said)
    elif (until := parse_http_date(said)) is not None:
        asked = until - here
    elif _SECONDS.fullmatch(reset):
        asked = float(reset) - here + 1  # the limit resets after the named second
    else:
        return None
    return math.ceil(asked) if asked > 0 else None


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
