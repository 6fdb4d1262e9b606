"""Lowers expected calls to slots in a partial order, one variant per choice of paths."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Final

from msgspec import Struct

from agentci.evaluators.trajectory.align import Slot
from agentci.evaluators.trajectory.expectation import (
    ANY_OF,
    IN_ORDER,
    CallGroup,
    CallItem,
    CallPattern,
)

MAX_VARIANTS: Final = 256
# The choice of an optional group that is left out.
LEFT_OUT: Final = "none"


class Branch(Struct, frozen=True, kw_only=True):
    """The path that a variant takes.

    Attributes:
        path: of the group.
        choice: index of the path; ``none`` for an optional group that is left out.
        paths: number of paths.
    """

    path: str
    choice: str
    paths: int


class Variant(Struct, frozen=True, kw_only=True):
    """The slots of one choice of paths, in the order in which they are written.

    Attributes:
        patterns: the pattern of each slot.
    """

    slots: tuple[Slot, ...]
    patterns: tuple[CallPattern, ...]
    branches: tuple[Branch, ...]


class _LoweredCall(Struct, frozen=True):
    """The slots of one expected call."""

    path: str
    call: CallItem


class _LoweredGroup(Struct, frozen=True):
    """The parts of a group, without choices."""

    is_ordered: bool
    parts: "tuple[_LoweredCall | _LoweredGroup, ...]"


# A group without choices, and the choices that it is made by.
class _Choice(Struct, frozen=True):
    part: _LoweredCall | _LoweredGroup
    branches: tuple[Branch, ...] = ()


_NOTHING: Final = _LoweredGroup(is_ordered=True, parts=())


def count_variants(calls: CallGroup) -> int:
    """Count the choices of paths."""
    counts = [count_variants(each) if isinstance(each, CallGroup) else 1 for each in calls.items]
    if calls.order == ANY_OF:
        total = sum(counts)
    else:
        total = 1
        for count in counts:
            total *= count
    return total + (1 if calls.optional else 0)


def list_patterns(calls: CallGroup) -> Iterator[CallPattern]:
    """Yield the patterns of all expected calls."""
    for each in calls.items:
        if isinstance(each, CallGroup):
            yield from list_patterns(each)
        else:
            yield each.pattern


def list_variants(calls: CallGroup, count_calls: Callable[[CallPattern], int]) -> Iterator[Variant]:
    """Yield the variants, first as written.

    Args:
        count_calls: returns how many calls can fill a slot of a pattern.
    """
    for choice in _lower_group(calls, ""):
        slots: list[Slot] = []
        patterns: list[CallPattern] = []
        _add_slots(choice.part, 0, slots, patterns, count_calls)
        yield Variant(slots=tuple(slots), patterns=tuple(patterns), branches=choice.branches)


def _lower_group(group: CallGroup, path: str) -> Iterator[_Choice]:
    paths = [f"{path}/{index}" if path else f"{index}" for index in range(len(group.items))]
    if group.order == ANY_OF:
        for index, (each, inner) in enumerate(zip(group.items, paths, strict=True)):
            branch = Branch(path=path, choice=f"{index}", paths=len(paths))
            for choice in _lower(each, inner):
                yield _Choice(choice.part, (branch, *choice.branches))
        return
    lowered = [list(_lower(each, inner)) for each, inner in zip(group.items, paths, strict=True)]
    for choices in product(*lowered):
        yield _Choice(
            _LoweredGroup(group.order == IN_ORDER, tuple(each.part for each in choices)),
            tuple(branch for each in choices for branch in each.branches),
        )
    if group.optional:
        yield _Choice(_NOTHING, (Branch(path=path, choice=LEFT_OUT, paths=1),))


def _lower(item: CallItem | CallGroup, path: str) -> Iterator[_Choice]:
    if isinstance(item, CallGroup):
        return _lower_group(item, path)
    return iter([_Choice(_LoweredCall(path, item))])


def _add_slots(
    part: _LoweredCall | _LoweredGroup,
    before: int,
    slots: list[Slot],
    patterns: list[CallPattern],
    count_calls: Callable[[CallPattern], int],
) -> int:
    """Append the slots of a part, all after those of ``before``; returns their bit mask."""
    if isinstance(part, _LoweredGroup):
        added = 0
        for each in part.parts:
            earlier = before | added if part.is_ordered else before
            added |= _add_slots(each, earlier, slots, patterns, count_calls)
        return added
    call = part.call
    # More slots than there are calls would stay empty.
    named = count_calls(call.pattern) if call.most is None else max(1, count_calls(call.pattern))
    count = max(call.least, named if call.most is None else min(call.most, named))
    first = len(slots)
    for number in range(count):
        name = part.path if call.most == 1 else f"{part.path}#{number + 1}"
        required = number < call.least
        slots.append(Slot(path=name, item=first, required=required, before=before))
        patterns.append(call.pattern)
    return sum(1 << index for index in range(first, first + count))
