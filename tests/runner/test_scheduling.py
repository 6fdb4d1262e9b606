"""Slots are shared between the evaluators that have checks left."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agentci.runner.run_checks import CheckSchedule

EVALUATORS = st.lists(st.sampled_from("abc"), max_size=30)


def _all_of(schedule: CheckSchedule) -> list[int]:
    return list(iter(schedule.start_next, None))


def test_evaluators_take_turns() -> None:
    assert _all_of(CheckSchedule("aaaabbc")) == [0, 4, 6, 1, 5, 2, 3]


def test_slow_evaluator_does_not_occupy_all_slots() -> None:
    schedule = CheckSchedule("sfsfsf")
    assert [schedule.start_next(), schedule.start_next()] == [0, 1]
    for ended, started in ((1, 3), (3, 5), (5, 2)):
        schedule.finish(ended)
        assert schedule.start_next() == started


def test_plan_order_decides_ties() -> None:
    schedule = CheckSchedule("abab")
    for number in range(4):
        assert schedule.start_next() == number
        schedule.finish(number)


def test_closed_schedule_starts_no_check() -> None:
    schedule = CheckSchedule("aab")
    schedule.start_next()
    schedule.close()
    assert schedule.start_next() is None


@given(EVALUATORS, st.randoms(use_true_random=False), st.integers(1, 5))
def test_evaluator_with_fewest_running_checks_is_next(
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
        expected = min(waiting, key=lambda number: (busy[evaluators[number]], number))
        assert schedule.start_next() == expected
        waiting.remove(expected)
        running.add(expected)
    assert schedule.start_next() is None
