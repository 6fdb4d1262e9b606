"""What is asked for once, by however many threads it is wanted."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

from agentci._util.http.deadline import INTERRUPTED
from agentci.errors import UnreachableError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Once(Generic[K, V]):
    """Remembers one answer a key; a failure too, which asking again would only draw out."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: dict[K, Future[V]] = {}

    def answer(self, key: K, ask: Callable[[], V]) -> V:
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
