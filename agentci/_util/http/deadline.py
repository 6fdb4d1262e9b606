"""Work that blocks, done where it can be left: name look-ups, handshakes, headers that drip."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Final, TypeVar

from agentci.errors import UnreachableError

INTERRUPTED: Final = "was interrupted"
# Between two looks at whether the run is to end; an answer is seen at once.
GLANCE_SECONDS: Final = 0.1

T = TypeVar("T")


class OverdueError(Exception):
    """The work was not done in time."""


def watched(
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
        while not wait((future,), timeout=GLANCE_SECONDS).done:
            heed(stopped)
            if clock() >= until:
                raise OverdueError
        return future.result()
    finally:
        left.set()


def pause(seconds: float, *, sleep: Callable[[float], None], stopped: Callable[[], bool]) -> None:
    """Sleep, in pieces short enough for a run to end within one.

    Raises:
        UnreachableError: the run is to end.
    """
    left = seconds
    while left > 0:
        heed(stopped)
        sleep(min(left, GLANCE_SECONDS))
        left -= GLANCE_SECONDS
    heed(stopped)


def heed(stopped: Callable[[], bool]) -> None:
    """Go no further when the run is to end.

    Raises:
        UnreachableError: it is.
    """
    if stopped():
        raise UnreachableError(INTERRUPTED)
