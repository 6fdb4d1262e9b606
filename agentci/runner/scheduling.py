"""Which check is judged next, so that no evaluator waits because another one is slow."""

from collections import Counter, deque
from collections.abc import Hashable, Iterable
from threading import Lock


class Schedule:
    """Hands out the numbers of checks: of the evaluator that has the fewest running, the first.

    Of several such evaluators it is the one whose check stands first in the plan. So all have their
    share of the slots while they have checks, and a slow one has all that the others leave. May be
    asked by several threads at a time.
    """

    def __init__(self, evaluators: Iterable[Hashable]) -> None:
        """Begin with the evaluator of every check, in the order of the plan."""
        self._waiting: dict[Hashable, deque[int]] = {}
        for number, evaluator in enumerate(evaluators):
            self._waiting.setdefault(evaluator, deque()).append(number)
        self._running: Counter[Hashable] = Counter()
        self._taken: dict[int, Hashable] = {}
        self._lock = Lock()

    def take(self) -> int | None:
        """The number of the check to start now, None where all are started."""
        with self._lock:
            if not self._waiting:
                return None
            evaluator = min(self._waiting, key=self._turn)
            number = self._waiting[evaluator].popleft()
            if not self._waiting[evaluator]:
                del self._waiting[evaluator]
            self._running[evaluator] += 1
            self._taken[number] = evaluator
            return number

    def end(self, number: int) -> None:
        """Tell that a check that was started has come to its end."""
        with self._lock:
            self._running[self._taken.pop(number)] -= 1

    def close(self) -> None:
        """Start nothing more."""
        with self._lock:
            self._waiting.clear()

    def _turn(self, evaluator: Hashable) -> tuple[int, int]:
        return self._running[evaluator], self._waiting[evaluator][0]
