"""Slots are shared out between the evaluators that have checks left."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agentci.runner.scheduling import Schedule

EVALUATORS = st.lists(st.sampled_from("abc"), max_size=30)


def _all_of(schedule: Schedule) -> list[int]:
    return list(iter(schedule.take, None))


def test_evaluators_take_turns_as_long_as_they_have_checks() -> None:
    assert _all_of(Schedule("aaaabbc")) == [0, 4, 6, 1, 5, 2, 3]


def test_a_slow_evaluator_has_the_slots_that_others_leave_and_no_more() -> None:
    schedule = Schedule("sfsfsf")
    assert [schedule.take(), schedule.take()] == [0, 1]
    for ended, started in ((1, 3), (3, 5), (5, 2)):
        schedule.end(ended)
        assert schedule.take() == started


def test_where_all_have_as_many_running_the_order_of_the_plan_decides() -> None:
    schedule = Schedule("abab")
    for number in range(4):
        assert schedule.take() == number
        schedule.end(number)


def test_nothing_is_started_once_it_is_closed() -> None:
    schedule = Schedule("aab")
    schedule.take()
    schedule.close()
    assert schedule.take() is None


@given(EVALUATORS, st.randoms(use_true_random=False), st.integers(1, 5))
def test_the_check_of_whoever_has_the_fewest_running_is_next(
    evaluators: list[str], random: Random, jobs: int
) -> None:
    schedule = Schedule(evaluators)
    waiting, running = set(range(len(evaluators))), set[int]()
    while waiting:
        if len(running) == jobs:
            ended = random.choice(sorted(running))
            schedule.end(ended)
            running.remove(ended)
        busy = Counter(evaluators[number] for number in running)
        wanted = min(waiting, key=lambda number: (busy[evaluators[number]], number))
        assert schedule.take() == wanted
        waiting.remove(wanted)
        running.add(wanted)
    assert schedule.take() is None
