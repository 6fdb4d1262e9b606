"""Parallel work, and values computed once per key."""

import threading
import time

import pytest

from agentci._util.parallel import MAX_WORKERS, OncePerKey, parallel_map
from agentci.errors import InterruptionError, PermanentFetchError, UnreachableError


class TestParallelMap:
    def test_results_keep_order_of_items(self) -> None:
        def work(item: int) -> int:
            time.sleep((20 - item) / 2000)
            return item * item

        assert parallel_map(work, range(20)) == [item * item for item in range(20)]

    def test_no_items_give_no_results(self) -> None:
        assert parallel_map(str, ()) == []

    def test_all_workers_run_in_parallel(self) -> None:
        together = threading.Barrier(MAX_WORKERS, timeout=10)
        # Returns only if all workers wait at the same time, twice.
        parallel_map(lambda _: together.wait(), range(2 * MAX_WORKERS))

    def test_first_failure_stops_remaining_items(self) -> None:
        begun = []

        def work(item: int) -> None:
            begun.append(item)
            if item == 3:
                raise PermanentFetchError("no")
            time.sleep(0.05)

        with pytest.raises(PermanentFetchError, match="no"):
            parallel_map(work, range(1000))
        assert len(begun) < 50

    def test_interrupt_does_not_wait_for_workers(self) -> None:
        main, released = threading.current_thread(), threading.Event()

        def work(_: int) -> None:
            if threading.current_thread() is main:
                raise KeyboardInterrupt
            released.wait(600)

        with pytest.raises(KeyboardInterrupt):
            parallel_map(work, range(MAX_WORKERS))
        assert all(each.daemon for each in threading.enumerate() if each is not main)
        released.set()


class TestOncePerKey:
    def test_value_is_computed_once(self) -> None:
        once: OncePerKey[str, int] = OncePerKey()
        assert [once.get_or_compute("a", lambda: 1), once.get_or_compute("a", lambda: 2)] == [1, 1]
        assert once.get_or_compute("b", lambda: 3) == 3

    def test_failure_is_kept(self) -> None:
        once: OncePerKey[str, int] = OncePerKey()

        def fail() -> int:
            raise UnreachableError("down")

        for compute in (fail, lambda: 1):
            with pytest.raises(UnreachableError, match="down"):
                once.get_or_compute("a", compute)

    def test_computing_one_key_does_not_block_another(self) -> None:
        once: OncePerKey[str, int] = OncePerKey()
        assert once.get_or_compute("a", lambda: once.get_or_compute("b", lambda: 2) + 1) == 3

    def test_interrupt_reaches_only_its_own_thread(self) -> None:
        once: OncePerKey[str, str] = OncePerKey()
        started, interrupted = threading.Event(), threading.Event()
        errors: list[Exception] = []

        def wait() -> None:
            started.wait()
            interrupted.set()
            try:
                once.get_or_compute("key", lambda: "never computed")
            except UnreachableError as error:
                errors.append(error)

        def compute() -> str:
            started.set()
            interrupted.wait()
            raise InterruptionError(2)

        other = threading.Thread(target=wait)
        other.start()
        with pytest.raises(InterruptionError):
            once.get_or_compute("key", compute)
        other.join()
        assert [str(error) for error in errors] == ["was interrupted"]
