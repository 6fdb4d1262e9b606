"""Work in parallel threads, and results that are computed once per key."""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Final, Generic, TypeVar

from agentci._util.http.retries import INTERRUPTED
from agentci.errors import UnreachableError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class OncePerKey(Generic[K, V]):
    """Remembers one answer a key; a failure too, which asking again would only draw out."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: dict[K, Future[V]] = {}

    def get_or_compute(self, key: K, ask: Callable[[], V]) -> V:
        """The answer to ``key``: by ``ask`` the first time; whoever comes meanwhile waits for it.

        Raises:
            Exception: what ``ask`` raised, every time.
        """
        with self._lock:
            known = self._answers.get(key)
            answer = self._answers.setdefault(key, Future())
        if known is None:
            try:
                answer.set_result(ask())
            except BaseException as error:
                # Whatever it is, those who wait must not wait for ever. But an interrupt is for
                # us alone: in another thread it would end in a traceback.
                interrupted = UnreachableError(INTERRUPTED)
                answer.set_exception(error if isinstance(error, Exception) else interrupted)
                raise
        return answer.result()


T = TypeVar("T")
R = TypeVar("R")

MAX_WORKERS: Final = 8


def parallel_map(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
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
        for _ in items[1:MAX_WORKERS]:
            Thread(target=work_on, daemon=True).start()
    work_on()
    # What was never begun comes after what failed, and is not waited for.
    return [result.result() for result in results]
