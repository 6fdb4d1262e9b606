"""Judges all checks of a plan, several at a time; results stand in the order of the plan."""

from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final

from msgspec import Struct

from agentci.model.call import Exchanges
from agentci.model.result import Result
from agentci.model.spending import Spending
from agentci.runner.check import Check, judge
from agentci.runner.scheduling import Schedule
from agentci.runner.services import World

# What is computed here seldom takes as long.
PATIENCE_SECONDS: Final = 0.03
# Woken for each end that comes, the thread that takes them would hold up those that work, too.
PAUSE_SECONDS: Final = 0.01


class Outcome(Struct, frozen=True, kw_only=True):
    """What a run came to.

    Attributes:
        results: of the checks that were judged, in the plan's order.
        complete: False where some were not.
        bug: an exception of ours that broke the run off, to be raised once all is written.
        spending: of the judges.
        exchanges: what evaluators were sent and what came back.
    """

    results: tuple[Result, ...]
    complete: bool
    bug: Exception | None = None
    spending: tuple[Spending, ...] = ()
    exchanges: Exchanges = Exchanges()


def judge_all(
    checks: Sequence[Check], *, world: World, jobs: int, tell: Callable[[Result], None]
) -> Outcome:
    """Judge ``checks``, ``jobs`` at a time, until all are done or the world asks to stop.

    Args:
        tell: is called from this thread with every result, in the order in which they come.
    """
    results: dict[int, Result] = {}
    bug: Exception | None = None
    for end in _ends(checks, world, jobs):
        bug = bug or end.bug
        if end.result is not None:
            results[end.number] = end.result
            tell(end.result)
    return Outcome(
        results=tuple(results[number] for number in sorted(results)),
        complete=len(results) == len(checks),
        bug=bug,
    )


class _End(Struct, frozen=True, kw_only=True):
    """What became of a check that was started.

    Attributes:
        number: its place in the plan.
        result: None where the run was to end before the check had one, or a bug kept it from one.
    """

    number: int
    result: Result | None = None
    bug: Exception | None = None


def _ends(checks: Sequence[Check], world: World, jobs: int) -> Iterator[_End]:
    """The ends of all checks that were started, as they come.

    Threads that compute hold each other up: a further one begins only when none of those that work
    has come to an end for a while, and so waits for a program.
    """
    most = max(1, min(jobs, len(checks)))
    schedule = Schedule((check.config, check.evaluator.identity.name) for check in checks)
    ends: SimpleQueue[_End | None] = SimpleQueue()
    over = Event()

    def work() -> None:
        try:
            while not world.interruption.asked() and (number := schedule.take()) is not None:
                ends.put(_end(number, checks[number], world))
                schedule.end(number)
        finally:
            ends.put(None)
            over.set()

    threads: list[Thread] = []

    def begin() -> None:
        thread = Thread(target=work)
        thread.start()
        threads.append(thread)

    try:
        yield from _arriving(ends, over, begin=begin, most=most)
    finally:
        schedule.close()
        for thread in threads:
            thread.join()


def _arriving(
    ends: SimpleQueue[_End | None], over: Event, *, begin: Callable[[], object], most: int
) -> Iterator[_End]:
    """All that comes from threads, which tell by None when they are done.

    Args:
        over: is set as soon as one of them is done.
        begin: begins a thread; is called up to ``most`` times.
    """
    begin()
    begun, done = 1, 0
    while done < begun:
        try:
            end = ends.get(timeout=PATIENCE_SECONDS if begun < most else None)
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
            over.wait(PAUSE_SECONDS)


def _end(number: int, check: Check, world: World) -> _End:
    try:
        result = judge(check, world)
    except Exception as error:  # noqa: BLE001 (a bug of ours must not lose what was judged)
        return _End(number=number, bug=error)
    stopped = result.status == "errored" and world.interruption.asked()
    return _End(number=number, result=None if stopped else result)
