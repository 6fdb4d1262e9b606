"""Retries and deadlines: which failures may pass, how long to wait, and when to give up."""

import math
import random
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Final, TypeVar

from agentci.errors import UnreachableError

INTERRUPTED: Final = "was interrupted"
# Between two looks at whether the run is to end; an answer is seen at once.
POLL_SECONDS: Final = 0.1

T = TypeVar("T")


class DeadlineExceededError(Exception):
    """The work was not done in time."""


def run_with_deadline(
    work: Callable[[Callable[[], bool]], T],
    *,
    seconds: float,
    clock: Callable[[], float],
    stopped: Callable[[], bool],
) -> T:
    """Do ``work`` in a thread of its own, which is left to itself when it takes too long.

    No socket can be told to heed a deadline in everything it does, and no look-up of a name can
    be broken off at all. The thread does not keep the process from ending.

    Args:
        work: is given what tells it that nobody waits for it any more.

    Raises:
        OverdueError: it was not done after ``seconds``.
        UnreachableError: the run is to end.
    """
    from concurrent.futures import Future, wait  # noqa: PLC0415 (most runs ask for nothing)

    left = Event()
    future: Future[T] = Future()

    def carry_out() -> None:
        try:
            future.set_result(work(left.is_set))
        except BaseException as error:  # noqa: BLE001 (is raised where it is waited for)
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
    """Sleep, in pieces short enough for a run to end within one.

    Raises:
        UnreachableError: the run is to end.
    """
    left = seconds
    while left > 0:
        check_stopped(stopped)
        sleep(min(left, POLL_SECONDS))
        left -= POLL_SECONDS
    check_stopped(stopped)


def check_stopped(stopped: Callable[[], bool]) -> None:
    """Go no further when the run is to end.

    Raises:
        UnreachableError: it is.
    """
    if stopped():
        raise UnreachableError(INTERRUPTED)


FIRST_WAIT_SECONDS: Final = 1.0
# Of a wait; so that those who failed together do not come back together.
MAX_JITTER: Final = 0.5

RETRYABLE_STATUSES: Final = frozenset({429, 500, 502, 503, 504})
FORBIDDEN: Final = 403
TOO_MANY_REQUESTS: Final = 429

RATE_LIMIT_HINT: Final = "try again later; a token (GITHUB_TOKEN) raises the limit of GitHub"
NETWORK_HINT: Final = (
    "see whether the server is up, and whether a firewall keeps this machine from it"
)
STATUS_HINT: Final = "try again later, or see whether the server has told of an outage"

# Longer than any wait that is obeyed, and than any that is meant.
_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
_MAX_DATE_CHARACTERS = 64


class RetryableError(Exception):
    """A failure that another try may mend; says which, as a sentence that starts with "it".

    Attributes:
        hint: a way out, for when no try has mended it.
        asked_seconds: how long the server asked to be left alone, where it did.
        arrived: whether the server may have done what it was asked for; False where nobody could
            be reached, or would hear of it.
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
    """What a status says that another try may mend; None where it says something else.

    Args:
        who: answered; the start of the sentence.
        now: seconds since 1970, for a server that does not say its own time.
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
    """How long to wait after ``tries`` tries: as asked, else twice as long each time."""
    if failure.asked_seconds is not None:
        return failure.asked_seconds
    jitter = random.uniform(0, MAX_JITTER)  # noqa: S311 (there is nothing to guess)
    return FIRST_WAIT_SECONDS * 2.0 ** (tries - 1) * (1 + jitter)


def _is_rate_limit(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a 403 is GitHub's way to say 429."""
    return status == FORBIDDEN and (_is_quota_exhausted(headers) or "retry-after" in headers)


def _is_quota_exhausted(headers: Mapping[str, str]) -> bool:
    return headers.get("x-ratelimit-remaining") == "0"


def _parse_retry_after(headers: Mapping[str, str], *, limited: bool, now: float) -> float | None:
    """What the server asks for; None where it asks for nothing, or for what makes no sense."""
    said = headers.get("retry-after", "")
    reset = headers.get("x-ratelimit-reset", "") if limited and _is_quota_exhausted(headers) else ""
    moment = parse_http_date(headers.get("date", ""))
    here = now if moment is None else moment
    if _SECONDS.fullmatch(said):
        asked = float(said)
    elif (until := parse_http_date(said)) is not None:
        asked = until - here
    elif _SECONDS.fullmatch(reset):
        asked = float(reset) - here + 1  # the second that is named has to be over
    else:
        return None
    return math.ceil(asked) if asked > 0 else None


def parse_http_date(date: str) -> float | None:
    """Seconds since 1970 of an HTTP date; None where it is none."""
    if not 0 < len(date) <= _MAX_DATE_CHARACTERS:
        return None
    # Brings sockets and all of mail along, which runs that fetch nothing need not load.
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 (see above)

    try:
        moment = parsedate_to_datetime(date)
        return _assume_utc(moment).timestamp()
    except (ValueError, OverflowError):
        return None


def _assume_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
