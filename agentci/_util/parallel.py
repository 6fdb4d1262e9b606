"""Several hands for work that mostly waits; an interrupt waits for none of them."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

HANDS: Final = 8


def side_by_side(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Do ``work`` for all ``items``, at most eight at a time, and return what came of each.

    After a failure nothing new is begun.

    Raises:
        Exception: what ``work`` raised for the first of ``items`` that it failed for.
    """
    results: list[Future[R]] = [Future() for _ in items]
    left = deque(zip(results, items, strict=True))

    def work_on() -> None:
        while True:
            try:
                result, item = left.popleft()
            except IndexError:
                return
            try:
                result.set_result(work(item))
            except Exception as error:  # noqa: BLE001 (raised again where the result is wanted)
                left.clear()
                result.set_exception(error)

    # A machine without a thread to spare has one hand at least: ours.
    with suppress(RuntimeError):
        for _ in items[1:HANDS]:
            Thread(target=work_on, daemon=True).start()
    work_on()
    # What was never begun comes after what failed, and is not waited for.
    return [result.result() for result in results]
