"""Questions that are asked once by several threads, where the one who asks is interrupted."""

from threading import Event, Thread

import pytest

from agentci._util.parallel import OncePerKey
from agentci.errors import InterruptionError, UnreachableError


def test_an_interrupt_is_for_the_thread_that_it_came_to_alone() -> None:
    once: OncePerKey[str, str] = OncePerKey()
    asked, interrupted = Event(), Event()
    told: list[Exception] = []

    def wait() -> None:
        asked.wait()
        interrupted.set()
        try:
            once.get_or_compute("key", lambda: "never asked")
        except UnreachableError as error:
            told.append(error)

    def ask() -> str:
        asked.set()
        interrupted.wait()
        raise InterruptionError(2)

    other = Thread(target=wait)
    other.start()
    with pytest.raises(InterruptionError):
        once.get_or_compute("key", ask)
    other.join()
    assert [str(error) for error in told] == ["was interrupted"]
