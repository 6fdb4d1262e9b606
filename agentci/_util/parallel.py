"""Work in parallel threads, and results that are computed once per key."""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Final, Generic, TypeVar

from agentci._util.http import INTERRUPTED
from agentci.errors import UnreachableError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class OncePerKey(Generic[K, V]):
    """Computes one value per key; a failure is remembered, too, as a retry would only take time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: dict[K, Future[V]] = {}

    def get_or_compute(self, key: K, ask: Callable[[], V]) -> V:
        """Return the value for ``key``; ``ask`` computes it once while other threads wait.

        Raises:
            Exception: the error of ``ask``, every time.
        """
        with self._lock:
            known = self._answers.get(key)
            answer = self._answers.setdefault(key, Future())
        if known is None:
            try:
                answer.set_result(ask())
            except BaseException as error:
                # Waiting threads must be released in any case. An interrupt is raised only in this
                # thread: in another one it would end in a traceback.
                interrupted = UnreachableError(INTERRUPTED)
                answer.set_exception(error if isinstance(error, Exception) else interrupted)
                raise
        return answer.result()


T = TypeVar("T")
R = TypeVar("R")

MAX_WORKERS: Final = 8


def parallel_map(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Call ``work`` for all ``items``, at most eight at a time, and return the results in order.

    After a failure no further item is started.

    Raises:
        Exception: the error of the first item in order that failed.
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
            except Exception as error:  # noqa: BLE001 (raised again by result())
                left.clear()
                result.set_exception(error)

    # If no thread can be started, the current thread does all the work.
    with suppress(RuntimeError):
        for _ in items[1:MAX_WORKERS]:
            Thread(target=work_on, daemon=True).start()
    work_on()
    # Items that were not started come after the failed one, so result() never waits for them.
    return [result.result() for result in results]
