"""Alignment of 80 recorded calls with expected ones: sequences, sets, groups, lanes and paths."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from agentci.evaluators.trajectory.expectation import read_trajectory
from agentci.evaluators.trajectory.match import RecordedCall, match_calls
from agentci.model.values import Json

CALLS: Final = 80
MAX_SECONDS: Final = 0.2
RUNS: Final = 5


def call(tool: str, number: int) -> RecordedCall:
    return RecordedCall(name=tool, args={"i": number})


NUMBERS: Final = range(CALLS)
HALF: Final = CALLS // 2
SAME: Final = [call("f", number) for number in NUMBERS]
CASES: Final[Mapping[str, tuple[Json, Sequence[RecordedCall]]]] = {
    "in order, equal names": (["f"] * CALLS, SAME),
    "in order, arguments": ([{"f": {"i": number}} for number in NUMBERS], SAME),
    "any order, equal names": ({"order": "any_order", "calls": ["f"] * CALLS}, SAME),
    "any order, arguments": (
        {"order": "any_order", "calls": [{"f": {"i": number}} for number in reversed(NUMBERS)]},
        SAME,
    ),
    "repeats": ([{"tool": "f", "times": "1.."}], SAME),
    "group between calls": (
        ["a", {"any_order": [{"f": {"i": number}} for number in range(CALLS - 2)]}, "z"],
        [call("a", 0), *reversed(SAME[: CALLS - 2]), call("z", 0)],
    ),
    "two lanes": (
        [{"any_order": [{"in_order": [f"{lane}{each}" for each in range(HALF)]} for lane in "ab"]}],
        [call(f"{'ab'[number % 2]}{number // 2}", number) for number in NUMBERS],
    ),
    "parallel calls": (
        [f"f{number}" for number in NUMBERS],
        [RecordedCall(name=f"f{number}", args={}, group=f"{number // 10}") for number in NUMBERS],
    ),
}


def measure() -> bool:
    """Print how long alignments take; return whether that is within the limit."""
    print(f"alignment of {CALLS} calls (at most {MAX_SECONDS:g} s each, of processor time)")
    slow = False
    for name, (written, calls) in CASES.items():
        expected = read_trajectory(written)
        taken: list[float] = []
        for _ in range(RUNS):
            start = time.process_time()
            is_satisfied = match_calls(expected, calls).is_satisfied
            taken.append(time.process_time() - start)
            assert is_satisfied, name
        print(f"  {name:<24} {min(taken):.3f} s")
        slow = slow or min(taken) > MAX_SECONDS
    return not slow
