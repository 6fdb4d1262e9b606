"""Asks services over HTTP: again where that may help, never longer than there is time."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from agentci._util.http.deadline import OverdueError, heed, pause, watched
from agentci._util.http.document import Response
from agentci._util.http.limits import Limits
from agentci._util.http.retries import PassingError
from agentci._util.text.format import count, number
from agentci.errors import EvaluatorError
from agentci.judges.rate_limit import Account
from agentci.judges.retry import guessed_seconds

if TYPE_CHECKING:
    from agentci._util.http.transport import Exchange, Wish

T = TypeVar("T")

# No verdict is near it.
MAX_ANSWER_BYTES: Final = 4 * 1024**2

LIMITS: Final = Limits(tries=5, connect_seconds=5, silence_seconds=60, longest_wait_seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A request with its key.

    Attributes:
        content: is sent along; None where there is none.
        method: of HTTP; by default content is posted, and something else just asked for.
        until: when nobody waits for an answer any more, by the clock of the transport.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)
    has_key: bool
    until: float
    method: str = ""


class Transport:
    """Connections to services, for any number of threads.

    Args:
        tell: is called with a line for every wait.
        stopped: whether the run is to end; every wait and every read does within a moment.
    """

    def __init__(
        self,
        *,
        tell: Callable[[str], None],
        stopped: Callable[[], bool],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        limits: Limits = LIMITS,
    ) -> None:
        self.clock = clock
        self.tell = tell
        self.stopped = stopped
        self._sleep = sleep
        self._limits = limits
        self._lock = Lock()
        self._exchange: Exchange | None = None

    def send(
        self,
        letter: Letter,
        account: Account,
        attempt: Callable[[Callable[[], Response]], T],
    ) -> T:
        """Ask, and again while that may help.

        Args:
            attempt: makes one try by calling what it is given once, and returns what that means;
                a PassingError of its own leads to another try, too.

        Raises:
            EvaluatorError: no try led to anything, or no time is left for one.
            FetchError: the service cannot be trusted, or the run is to end.
        """
        # requests is slow to import, and most runs ask no model.
        from agentci._util.http.transport import wish_of  # noqa: PLC0415 (see above)

        wish = wish_of(
            letter.url,
            letter.headers,
            MAX_ANSWER_BYTES,
            content=letter.content,
            method=letter.method,
            unencrypted=not letter.has_key,
        )
        tries = 1
        while True:
            # Whoever else asks it may be told to wait in the meantime.
            while (seconds := account.wait_seconds(self.clock())) > 0:
                self._wait(seconds, letter, "it asked to be left alone")
            try:
                return attempt(partial(self._try, wish, letter))
            except PassingError as failure:
                self._bear(failure, wish.address.shown, tries, letter, account)
            tries += 1

    def _try(self, wish: "Wish", letter: Letter) -> Response:
        """Ask once.

        Raises:
            PassingError: another try may do better.
        """
        heed(self.stopped)
        seconds = letter.until - self.clock()
        if seconds <= 0:  # what is sent may cost something, and nobody would see the answer
            raise EvaluatorError(f"no time is left to ask {wish.address.shown}")
        try:
            return watched(
                partial(self._connections().once, wish),
                seconds=seconds,
                clock=self.clock,
                stopped=self.stopped,
            )
        except OverdueError:
            raise EvaluatorError(f"{wish.address.shown} did not answer in time") from None

    def _bear(
        self, failure: PassingError, shown: str, tries: int, letter: Letter, account: Account
    ) -> None:
        """Wait for the next try, or have everybody wait.

        Raises:
            EvaluatorError: there is no next try.
        """
        most, longest = self._limits.tries, self._limits.longest_wait_seconds
        asked = failure.asked_seconds
        if asked is not None and asked > longest:
            raise EvaluatorError(f"{shown}: {failure} and asks to wait {asked:,.0f} s")
        seconds = guessed_seconds(tries) if asked is None else asked
        concerns_all = asked is not None or isinstance(failure, LimitedError)
        if concerns_all:
            account.leave_alone(self.clock() + seconds)
        if tries >= most:
            said = f"{shown}: {failure} (tried {count(most, 'time')}); {failure.hint}"
            raise EvaluatorError(said)
        why = f"{failure} (try {tries} of {most})"
        self.tell(f"waiting {number(seconds, 1)} s for {shown}: {why}")
        if not concerns_all:
            self._wait(seconds, letter, str(failure))

    def _wait(self, seconds: float, letter: Letter, why: str) -> None:
        if self.clock() + seconds >= letter.until:
            raise EvaluatorError(f"no time is left to ask the judge again: {why}")
        pause(seconds, sleep=self._sleep, stopped=self.stopped)

    def _connections(self) -> "Exchange":
        from agentci._util.http.transport import Exchange  # noqa: PLC0415 (slow to import)

        with self._lock:
            self._exchange = self._exchange or Exchange(self._limits)
            return self._exchange


class LimitedError(PassingError):
    """A service was asked too often, by all of us together."""
