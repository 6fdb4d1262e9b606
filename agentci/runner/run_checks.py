"""Run all checks of a plan in parallel, in a fair order, and show the progress."""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Final

from msgspec import Struct

from agentci._util.files import write_to_stream
from agentci.model.result import CheckResult, EvaluatorCalls, JudgeSpending
from agentci.runner.check import Check, run_check
from agentci.runner.services import Services


class CheckSchedule:
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

    def start_next(self) -> int | None:
        """The number of the check to start now, None where all are started."""
        with self._lock:
            if not self._waiting:
                return None
            evaluator = min(self._waiting, key=self._priority)
            number = self._waiting[evaluator].popleft()
            if not self._waiting[evaluator]:
                del self._waiting[evaluator]
            self._running[evaluator] += 1
            self._taken[number] = evaluator
            return number

    def finish(self, number: int) -> None:
        """Tell that a check that was started has come to its end."""
        with self._lock:
            self._running[self._taken.pop(number)] -= 1

    def close(self) -> None:
        """Start nothing more."""
        with self._lock:
            self._waiting.clear()

    def _priority(self, evaluator: Hashable) -> tuple[int, int]:
        return self._running[evaluator], self._waiting[evaluator][0]


BAR_WIDTH = 24
SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_FRAMES = 0.1


class ProgressDisplay:
    """Counts results as they come in and shows the count on ``err``."""

    def __init__(self, total: int, services: Services, *, quiet: bool) -> None:
        self._total = total
        self._services = services
        self._counts: Counter[str] = Counter()
        self._is_shown = not quiet and total > 0
        self._terminal = services.err.isatty()
        self._every = SECONDS_BETWEEN_FRAMES if self._terminal else SECONDS_BETWEEN_LINES
        self._shown_at = services.clock()

    def count(self, result: CheckResult) -> None:
        """Take one more result into account."""
        self._counts[result.status] += 1
        now = self._services.clock()
        if self._is_shown and now - self._shown_at >= self._every:
            self._shown_at = now
            self._show()

    def announce(self, text: str) -> None:
        """Say what is about to take a while."""
        if self._is_shown:
            write_to_stream(
                f"\r{text}\x1b[K" if self._terminal else f"{text}\n", self._services.err
            )

    def finish(self) -> None:
        """Clear the bar away."""
        if self._is_shown and self._terminal:
            write_to_stream("\r\x1b[K", self._services.err)

    def _show(self) -> None:
        done = self._counts.total()
        text = f"{done} of {self._total} checks"
        bad = [
            f"{self._counts[name]} {name}" for name in ("failed", "errored") if self._counts[name]
        ]
        text = ", ".join([text, *bad])
        if self._terminal:
            filled = BAR_WIDTH * done // self._total
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            write_to_stream(f"\r{bar} {text}\x1b[K", self._services.err)
        else:
            write_to_stream(f"{text}\n", self._services.err)


# What is computed here seldom takes as long.
THREAD_START_SECONDS: Final = 0.03
# Woken for each end that comes, the thread that takes them would hold up those that work, too.
COLLECT_PAUSE_SECONDS: Final = 0.01


class Outcome(Struct, frozen=True, kw_only=True):
    """What a run came to.

    Attributes:
        results: of the checks that were judged, in the plan's order.
        complete: False where some were not.
        bug: an exception of ours that broke the run off, to be raised once all is written.
        spending: of the judges.
        transcripts: what evaluators were sent and what came back.
    """

    results: tuple[CheckResult, ...]
    complete: bool
    bug: Exception | None = None
    spending: tuple[JudgeSpending, ...] = ()
    transcripts: EvaluatorCalls = EvaluatorCalls()


def run_checks(
    checks: Sequence[Check], *, services: Services, jobs: int, tell: Callable[[CheckResult], None]
) -> Outcome:
    """Judge ``checks``, ``jobs`` at a time, until all are done or an interruption is requested.

    Args:
        tell: is called from this thread with every result, in the order in which they come.
    """
    results: dict[int, CheckResult] = {}
    bug: Exception | None = None
    for end in _run_in_threads(checks, services, jobs):
        bug = bug or end.bug
        if end.result is not None:
            results[end.number] = end.result
            tell(end.result)
    return Outcome(
        results=tuple(results[number] for number in sorted(results)),
        complete=len(results) == len(checks),
        bug=bug,
    )


class _FinishedCheck(Struct, frozen=True, kw_only=True):
    """What became of a check that was started.

    Attributes:
        number: its place in the plan.
        result: None where the run was to end before the check had one, or a bug kept it from one.
    """

    number: int
    result: CheckResult | None = None
    bug: Exception | None = None


def _run_in_threads(
    checks: Sequence[Check], services: Services, jobs: int
) -> Iterator[_FinishedCheck]:
    """The ends of all checks that were started, as they come.

    Threads that compute hold each other up: a further one begins only when none of those that work
    has come to an end for a while, and so waits for a program.
    """
    most = max(1, min(jobs, len(checks)))
    schedule = CheckSchedule((check.config, check.evaluator.identity.name) for check in checks)
    ends: SimpleQueue[_FinishedCheck | None] = SimpleQueue()
    over = Event()

    def work() -> None:
        try:
            while (
                not services.interruption.is_requested()
                and (number := schedule.start_next()) is not None
            ):
                ends.put(_finish_check(number, checks[number], services))
                schedule.finish(number)
        finally:
            ends.put(None)
            over.set()

    threads: list[Thread] = []

    def begin() -> None:
        thread = Thread(target=work)
        thread.start()
        threads.append(thread)

    try:
        yield from _collect_finished(ends, over, begin=begin, most=most)
    finally:
        schedule.close()
        for thread in threads:
            thread.join()


def _collect_finished(
    ends: SimpleQueue[_FinishedCheck | None], over: Event, *, begin: Callable[[], object], most: int
) -> Iterator[_FinishedCheck]:
    """All that comes from threads, which tell by None when they are done.

    Args:
        over: is set as soon as one of them is done.
        begin: begins a thread; is called up to ``most`` times.
    """
    begin()
    begun, done = 1, 0
    while done < begun:
        try:
            end = ends.get(timeout=THREAD_START_SECONDS if begun < most else None)
        except Empty:
            for _ in range(min(begun, most - begun)):
                begin()
            begun = min(2 * begun, most)
            continue
        if end is None:
            done += 1
            continue
        yield end
        if ends.empty():
            over.wait(COLLECT_PAUSE_SECONDS)


def _finish_check(number: int, check: Check, services: Services) -> _FinishedCheck:
    try:
        result = run_check(check, services)
    except Exception as error:  # noqa: BLE001 (a bug of ours must not lose what was judged)
        return _FinishedCheck(number=number, bug=error)
    stopped = result.status == "errored" and services.interruption.is_requested()
    return _FinishedCheck(number=number, result=None if stopped else result)
