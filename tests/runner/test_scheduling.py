"""Slots are shared out between the evaluators that have checks left."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agentci.runner.run_checks import CheckSchedule

EVALUATORS = st.lists(st.sampled_from("abc"), max_size=30)


def _all_of(schedule: CheckSchedule) -> list[int]:
    return list(iter(schedule.start_next, None))


def test_evaluators_take_turns_as_long_as_they_have_checks() -> None:
    assert _all_of(CheckSchedule("aaaabbc")) == [0, 4, 6, 1, 5, 2, 3]


def test_a_slow_evaluator_has_the_slots_that_others_leave_and_no_more() -> None:
    schedule = CheckSchedule("sfsfsf")
    assert [schedule.start_next(), schedule.start_next()] == [0, 1]
    for ended, started in ((1, 3), (3, 5), (5, 2)):
        schedule.finish(ended)
        assert schedule.start_next() == started


def test_where_all_have_as_many_running_the_order_of_the_plan_decides() -> None:
    schedule = CheckSchedule("abab")
    for number in range(4):
        assert schedule.start_next() == number
        schedule.finish(number)


def test_nothing_is_started_once_it_is_closed() -> None:
    schedule = CheckSchedule("aab")
    schedule.start_next()
    schedule.close()
    assert schedule.start_next() is None


@given(EVALUATORS, st.randoms(use_true_random=False), st.integers(1, 5))
def test_the_check_of_whoever_has_the_fewest_running_is_next(
    evaluators: list[str], random: Random, jobs: int
) -> None:
    schedule = CheckSchedule(evaluators)
    waiting, running = set(range(len(evaluators))), set[int]()
    while waiting:
        if len(running) == jobs:
            ended = random.choice(sorted(running))
            schedule.finish(ended)
            running.remove(ended)
        busy = Counter(evaluators[number] for number in running)
        wanted = min(waiting, key=lambda number: (busy[evaluators[number]], number))
        assert schedule.start_next() == wanted
        waiting.remove(wanted)
        running.add(wanted)
    assert schedule.start_next() is None
