"""Work side by side, and what is asked for once."""

import threading
import time

import pytest

from agentci._util.parallel import MAX_WORKERS, OncePerKey, parallel_map
from agentci.errors import PermanentFetchError, UnreachableError


class TestWorkSideBySide:
    def test_gives_results_in_the_order_of_the_items(self) -> None:
        def work(item: int) -> int:
            time.sleep((20 - item) / 2000)
            return item * item

        assert parallel_map(work, range(20)) == [item * item for item in range(20)]

    def test_of_nothing_gives_nothing(self) -> None:
        assert parallel_map(str, ()) == []

    def test_is_done_by_so_many_hands_and_no_more(self) -> None:
        together = threading.Barrier(MAX_WORKERS, timeout=10)
        # Waits until as many as there are hands have come, twice.
        parallel_map(lambda _: together.wait(), range(2 * MAX_WORKERS))

    def test_ends_with_the_first_failure(self) -> None:
        begun = []

        def work(item: int) -> None:
            begun.append(item)
            if item == 3:
                raise PermanentFetchError("no")
            time.sleep(0.05)

        with pytest.raises(PermanentFetchError, match="no"):
            parallel_map(work, range(1000))
        assert len(begun) < 50

    def test_does_not_wait_for_hands_where_it_is_interrupted(self) -> None:
        main, held = threading.current_thread(), threading.Event()

        def work(_: int) -> None:
            if threading.current_thread() is main:
                raise KeyboardInterrupt
            held.wait(30)

        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            parallel_map(work, range(MAX_WORKERS))
        assert time.monotonic() - started < 10
        assert all(each.daemon for each in threading.enumerate() if each is not main)
        held.set()


class TestWhatIsAskedForOnce:
    def test_is_known_from_then_on(self) -> None:
        once: OncePerKey[str, int] = OncePerKey()
        assert [once.get_or_compute("a", lambda: 1), once.get_or_compute("a", lambda: 2)] == [1, 1]
        assert once.get_or_compute("b", lambda: 3) == 3

    def test_fails_from_then_on(self) -> None:
        once: OncePerKey[str, int] = OncePerKey()

        def ask() -> int:
            raise UnreachableError("down")

        for question in (ask, lambda: 1):
            with pytest.raises(UnreachableError, match="down"):
                once.get_or_compute("a", question)

    def test_holds_nobody_who_asks_for_something_else(self) -> None:
        once: OncePerKey[str, int] = OncePerKey()
        assert once.get_or_compute("a", lambda: once.get_or_compute("b", lambda: 2) + 1) == 3
