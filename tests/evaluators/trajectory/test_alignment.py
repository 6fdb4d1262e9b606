"""The alignment is the best of all alignments, found by trying them all."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentci.evaluators.trajectory import align
from agentci.evaluators.trajectory.align import (
    Assignment,
    Pair,
    Slot,
    TooManyWaysError,
    align_calls,
)
from agentci.evaluators.trajectory.expectation import read_trajectory
from agentci.evaluators.trajectory.match import RecordedCall, match_calls
from agentci.model.values import Json

Alignment = Mapping[int, int]


def list_alignments(
    places: Sequence[int], slots: Sequence[Slot], pairs: Mapping[tuple[int, int], Pair]
) -> Iterator[Alignment]:
    """Yield every alignment that keeps the order."""

    def extend(call: int, taken: Alignment) -> Iterator[Alignment]:
        if call == len(places):
            yield taken
            return
        yield from extend(call + 1, taken)
        for slot in range(len(slots)):
            if (call, slot) in pairs and slot not in taken.values():
                new = {**taken, call: slot}
                if is_ordered(new):
                    yield from extend(call + 1, new)

    def is_ordered(alignment: Alignment) -> bool:
        return all(
            places[first] <= places[second]
            for first, one in alignment.items()
            for second, other in alignment.items()
            if slots[other].before >> one & 1
        )

    return extend(0, {})


def rank(
    alignment: Alignment, calls: int, slots: Sequence[Slot], pairs: Mapping[tuple[int, int], Pair]
) -> tuple[object, ...]:
    used = [(slots[slot], pairs[call, slot]) for call, slot in alignment.items()]
    return (
        sum(pair.matches and slot.required for slot, pair in used),
        sum(pair.matches and not slot.required for slot, pair in used),
        sum(not pair.matches for _, pair in used),
        sum((pair.similarity for _, pair in used), Fraction(0)),
        [-alignment.get(call, len(slots)) for call in range(calls)],
    )


@st.composite
def orders(draw: st.DrawFn, size: int) -> list[int]:
    """Bit masks of the slots before each slot, of nested groups with and without order."""
    masks = [0] * size

    def divide(first: int, last: int) -> None:
        if last - first < 2:
            return
        middle = draw(st.integers(first + 1, last - 1))
        if draw(st.booleans()):
            for slot in range(middle, last):
                masks[slot] |= sum(1 << earlier for earlier in range(first, middle))
        divide(first, middle)
        divide(middle, last)

    divide(0, size)
    return masks


@st.composite
def problems(
    draw: st.DrawFn,
) -> tuple[list[int], list[Slot], dict[tuple[int, int], Pair]]:
    size, calls = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    slots = [
        Slot(path=f"{index}", item=index, required=draw(st.booleans()), before=mask)
        for index, mask in enumerate(draw(orders(size)))
    ]
    places: list[int] = []
    for call in range(calls):
        joins = bool(places) and draw(st.booleans())
        places.append(places[-1] if joins else call)
    pairs = {
        (call, slot): draw(
            st.builds(
                lambda matches, right: Pair(
                    matches, Fraction(1 if matches else right, 1 if matches else 3)
                ),
                st.booleans(),
                st.integers(0, 2),
            )
        )
        for call in range(calls)
        for slot in range(size)
        if draw(st.booleans())
    }
    return places, slots, pairs


@pytest.mark.slow
@given(problems())
@settings(max_examples=600, deadline=None)
def test_alignment_is_the_best_of_all(
    problem: tuple[list[int], list[Slot], dict[tuple[int, int], Pair]],
) -> None:
    places, slots, pairs = problem
    every = list_alignments(places, slots, pairs)
    best = max(every, key=lambda each: rank(each, len(places), slots, pairs))
    assert dict(align_calls(places, slots, pairs)) == dict(best)


@given(st.lists(st.dictionaries(st.integers(0, 4), st.integers(1, 20)), max_size=5))
def test_assignment_has_the_largest_total(rows: list[dict[int, int]]) -> None:
    assignment = Assignment()
    for row, weights in enumerate(rows):
        assignment.insert(row, weights)

    def best(row: int, taken: frozenset[int]) -> int:
        if row == len(rows):
            return 0
        choices = [
            weight + best(row + 1, taken | {column})
            for column, weight in rows[row].items()
            if column not in taken
        ]
        return max([best(row + 1, taken), *choices])

    found = assignment.columns
    assert assignment.total == best(0, frozenset())
    assert assignment.total == sum(rows[row][column] for row, column in found.items())
    assert len({*found.values()}) == len(found)


def lanes(count: int, length: int) -> list[Slot]:
    slots: list[Slot] = []
    for lane in range(count):
        before = 0
        for _ in range(length):
            index = len(slots)
            slots.append(Slot(path=f"{index}", item=index, required=True, before=before))
            before |= 1 << index
        assert lane >= 0
    return slots


def test_too_many_states_have_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "MAX_STATES", 3)
    slots = lanes(3, 3)
    pairs = {
        (call, slot): Pair(False, Fraction(call * slot % 5, 7))
        for call in range(9)
        for slot in range(9)
    }
    with pytest.raises(TooManyWaysError, match="too many ways"):
        align_calls(range(9), slots, pairs)


def blocks(count: int, size: int) -> list[Slot]:
    return [
        Slot(
            path=f"{index}",
            item=index,
            required=True,
            before=sum(1 << each for each in range(index - index % size)),
        )
        for index in range(count * size)
    ]


def test_too_many_insertions_have_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "MAX_INSERTIONS", 3)
    pairs = {(call, slot): Pair(True, Fraction(1)) for call in range(4) for slot in range(4)}
    with pytest.raises(TooManyWaysError):
        align_calls(range(4), blocks(2, 2), pairs)


def test_too_many_contested_parallel_calls_have_no_result() -> None:
    pairs = {(call, slot): Pair(True, Fraction(1)) for call in range(13) for slot in range(4)}
    with pytest.raises(TooManyWaysError):
        align_calls([0] * 12 + [12], blocks(2, 2), pairs)


def test_all_parallel_calls_take_any_slots() -> None:
    pairs = {(call, 11 - call): Pair(True, Fraction(1)) for call in range(12)}
    found = align_calls([0] * 12, blocks(6, 2), pairs)
    assert found == {call: 11 - call for call in range(12)}


def test_repeats_in_lanes_are_taken_from_the_first() -> None:
    written: Json = {
        "calls": [
            {
                "any_order": [
                    {"in_order": [{"tool": "a", "times": 2}, "b"]},
                    {"in_order": ["a", "c"]},
                ]
            }
        ]
    }
    calls = [RecordedCall(name=name, args={}) for name in ("a", "a", "c", "a", "b")]
    match = match_calls(read_trajectory(written), calls)
    assert match.is_satisfied
    assert match.as_json["alignment"] == [
        ["0/0/0#1", "match"],
        ["0/1/0", "match"],
        ["0/1/1", "match"],
        ["0/0/0#2", "match"],
        ["0/0/1", "match"],
    ]


def test_best_path_is_chosen_of_many() -> None:
    written: Json = [{"any_of": ["a", "b", ["c", "d"]]}] * 4
    calls = [RecordedCall(name=name, args={}) for name in ("b", "c", "d", "a", "x")]
    match = match_calls(read_trajectory(written), calls)
    assert match.as_json["branches"] == ["0=0", "1=1", "2=2", "3=0"]


def test_optional_near_miss_is_no_pair_where_the_call_is_allowed() -> None:
    written: Json = {"calls": [{"tool": "a", "args": {"x": 1}, "optional": True}], "extra": ["a"]}
    match = match_calls(read_trajectory(written), [RecordedCall(name="a", args={"x": 2})])
    assert match.as_json["alignment"] == [[None, "allowed"]]
    assert match.is_satisfied


REPEATED = [{"tool": "f", "times": "0..1000"}] * 300


def test_repeats_beyond_the_calls_take_no_time() -> None:
    calls = [RecordedCall(name="f", args={}, status="ok") for _ in range(3)]
    match = match_calls(read_trajectory(REPEATED), calls)
    assert (match.is_satisfied, len(match.variant.slots)) == (True, 900)


@pytest.mark.slow
def test_too_many_pairs_of_calls_and_slots_have_no_result() -> None:
    calls = [RecordedCall(name="f", args={}, status="ok") for _ in range(1_000)]
    with pytest.raises(TooManyWaysError):
        match_calls(read_trajectory(["f"] * 1_000), calls)
