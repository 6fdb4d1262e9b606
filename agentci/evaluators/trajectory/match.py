"""Compares recorded calls with expected ones: the best alignment, its numbers and score.

Expected calls are lowered to slots in a partial order, one variant per choice of paths.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text.patterns import matches_any
from agentci.errors import EvaluatorError
from agentci.evaluators.trajectory.align import Pair, Slot, TooManyWaysError, align_calls
from agentci.evaluators.trajectory.expectation import (
    ANY_OF,
    IN_ORDER,
    CallGroup,
    CallItem,
    CallPattern,
    ExpectedTrajectory,
    ForbiddenCall,
)
from agentci.evaluators.trajectory.matchers import (
    ArgumentComparison,
    compare_arguments,
    read_arguments,
)
from agentci.model.values import Json, JsonObject

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


CallKind: TypeAlias = Literal["match", "changed", "extra", "allowed", "forbidden"]

STATUS: Final = "status"
DIGITS: Final = 6
_NOTHING_COMPARED: Final = ArgumentComparison(compared=0, wrong=())


class RecordedCall(Struct, frozen=True, kw_only=True):
    """A call that the agent made.

    Attributes:
        args: None if they were not recorded.
        status: ``ok`` or ``error``; None if it was not recorded.
        group: the model answer that it is from; None if it is known to be the only call of one, or
            if that was not recorded.
    """

    name: str
    args: Json = None
    status: str | None = None
    group: str | None = None


class UnrecordedCallError(EvaluatorError):
    """Something that is compared was not recorded, so there is no verdict.

    Attributes:
        what: ``args`` or ``status``.
        tool: the first call that lacks it.
    """

    def __init__(self, what: str, tool: str) -> None:
        self.what = what
        self.tool = tool
        super().__init__(f"not recorded: {what} of {tool}")


class AlignedCall(Struct, frozen=True, kw_only=True):
    """A recorded call, and the slot that it is paired with.

    Attributes:
        slot: None without one.
        rules: indexes of the forbidden calls that it is.
    """

    kind: CallKind
    slot: int | None = None
    rules: tuple[int, ...] = ()


class TrajectoryMatch(Struct, frozen=True, kw_only=True):
    """The result of a comparison.

    Attributes:
        calls: one per recorded call.
        missing: required slots without a call.
        moved: of these, the ones that a call without a slot would match, with that call.
        right: matched required slots; with ``credit: arguments`` plus the shares of changed calls.
        right_optional: likewise for optional slots.
        counted_calls: calls that count for the precision.
        changed: number of changed calls, and the sum of their shares of right arguments.
    """

    variant: Variant
    calls: tuple[AlignedCall, ...]
    missing: tuple[int, ...]
    moved: tuple[tuple[int, int], ...]
    required: int
    matched_required: int
    matched_optional: int
    right: Fraction
    right_optional: Fraction
    counted_calls: int
    changed: int
    similarity: Fraction
    is_satisfied: bool
    has_forbidden: bool

    @property
    def recall(self) -> Fraction:
        """Share of the required calls that were made."""
        return self.right / self.required if self.required else Fraction(1)

    @property
    def precision(self) -> Fraction:
        """Share of the calls that are expected."""
        found = self.right + self.right_optional
        return found / self.counted_calls if self.counted_calls else Fraction(1)

    @property
    def f1(self) -> Fraction:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else Fraction(0)

    def score(self, kind: str) -> float:
        """Return the score by the option ``score``; a forbidden call makes it 0."""
        if self.has_forbidden:
            return 0.0
        if kind == "strict":
            return float(self.is_satisfied)
        return float({"f1": self.f1, "recall": self.recall, "precision": self.precision}[kind])

    @property
    def as_json(self) -> JsonObject:
        """The details for reports; slots by their paths, calls by their indexes."""
        slots = self.variant.slots
        return {
            "satisfied": self.is_satisfied,
            "precision": round(float(self.precision), DIGITS),
            "recall": round(float(self.recall), DIGITS),
            "f1": round(float(self.f1), DIGITS),
            "required": self.required,
            "matched_required": self.matched_required,
            "matched_optional": self.matched_optional,
            "counted_calls": self.counted_calls,
            "branches": [f"{each.path}={each.choice}" for each in self.branches],
            "alignment": [
                [None if each.slot is None else slots[each.slot].path, each.kind]
                for each in self.calls
            ],
            "missing": [slots[slot].path for slot in self.missing],
            "moved": [[slots[slot].path, call] for slot, call in self.moved],
            "forbidden": [
                {"call": call, "rule": rule}
                for call, each in enumerate(self.calls)
                for rule in each.rules
            ],
        }

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The paths that were chosen."""
        return self.variant.branches


# Pairs of a call and a slot, of all variants, times the digits of their weights (one per call),
# and what a pair costs besides. 780 calls of one tool with as many slots take a few seconds.
MAX_WORK: Final = 10**9
PAIR_COST: Final = 1000


def match_calls(expected: ExpectedTrajectory, calls: Sequence[RecordedCall]) -> TrajectoryMatch:
    """Find the variant and the alignment that fit the calls best.

    Raises:
        UnrecordedCallError: something that is compared was not recorded.
        TooManyWaysError: the expectation can be aligned in too many ways.
    """
    comparer = CallComparer(calls)
    comparer.check_recorded(_list_all_patterns(expected))
    rules = tuple(find_forbidden(expected.forbidden, comparer))
    variants = list(list_variants(expected.calls, comparer.count_named))
    limits = [_limit_f1(expected, each, comparer) for each in variants]
    compared: dict[_Rank, TrajectoryMatch] = {}
    best_f1 = Fraction(0)
    work = 0
    for index in sorted(range(len(variants)), key=lambda each: (-limits[each], each)):
        if limits[index] >= best_f1:
            pairs = sum(len(comparer.find_pairs(each)) for each in variants[index].patterns)
            work += pairs * (len(calls) + PAIR_COST)
            if work > MAX_WORK:
                raise TooManyWaysError
            found = _match_variant(expected, variants[index], comparer, rules)
            compared[_rank(found, index)] = found
            best_f1 = max(best_f1, found.f1)
    return compared[max(compared)]


_Rank: TypeAlias = tuple[bool, Fraction, Fraction, int, Fraction, int]


def _rank(match: TrajectoryMatch, index: int) -> _Rank:
    """What is better comes later; the first variant as written, of those that are equal."""
    numbers = (match.is_satisfied, match.f1, match.recall, match.changed, match.similarity)
    return (*numbers, -index)


def _list_all_patterns(expected: ExpectedTrajectory) -> Iterator[CallPattern]:
    yield from list_patterns(expected.calls)
    for each in expected.forbidden:
        yield from list_rule_patterns(each)


def list_rule_patterns(rule: ForbiddenCall) -> Iterator[CallPattern]:
    """Yield the patterns that a rule compares calls with."""
    yield from (each for each in (rule.pattern, rule.before, rule.after) if each is not None)


class CallComparer:
    """Compares the calls of one list with patterns, each pair once."""

    def __init__(self, calls: Sequence[RecordedCall]) -> None:
        self.calls = tuple(calls)
        # By the id of a pattern, which the pattern beside the pairs keeps from being used again.
        self._known: dict[int, tuple[CallPattern, Mapping[int, Pair]]] = {}

    def check_recorded(self, patterns: Iterator[CallPattern]) -> None:
        """Check that all that the patterns compare was recorded.

        Raises:
            UnrecordedCallError: it was not.
        """
        needed = list(patterns)
        for call in self.calls:
            meant = [each for each in needed if each.names(call.name)]
            if call.args is None and any(each.find_rules(call.name) for each in meant):
                raise UnrecordedCallError("args", call.name)
        for call in self.calls:
            if call.status is None:
                for each in needed:
                    if each.status != "any" and each.names(call.name):
                        raise UnrecordedCallError(STATUS, call.name)

    def count_named(self, pattern: CallPattern) -> int:
        """Count the calls of the tools of a pattern."""
        return len(self.find_pairs(pattern))

    def find_pairs(self, pattern: CallPattern) -> Mapping[int, Pair]:
        """Compare the calls of the pattern's tools with it."""
        known = self._known.get(id(pattern))
        if known is None:
            pairs = {
                index: _compare_call(pattern, call)
                for index, call in enumerate(self.calls)
                if pattern.names(call.name)
            }
            known = self._known[id(pattern)] = (pattern, pairs)
        return known[1]

    def matches(self, pattern: CallPattern, call: int) -> bool:
        """Return whether a call is as the pattern says."""
        pair = self.find_pairs(pattern).get(call)
        return pair is not None and pair.matches

    def find_places(self, *, parallel_is_free: bool) -> tuple[int, ...]:
        """Number the places of the calls; those of one model answer share one."""
        first: dict[str, int] = {}
        return tuple(
            index
            if call.group is None or not parallel_is_free
            else first.setdefault(call.group, index)
            for index, call in enumerate(self.calls)
        )


def _limit_f1(expected: ExpectedTrajectory, variant: Variant, comparer: "CallComparer") -> Fraction:
    """A bound of the F1 of a variant that takes no alignment to know."""
    partial = expected.credit == "arguments"
    counts = Counter(map(id, variant.patterns))
    useful: set[int] = set()
    most = 0
    for pattern in {id(each): each for each in variant.patterns}.values():
        pairs = comparer.find_pairs(pattern).items()
        own = {call for call, pair in pairs if pair.matches or partial}
        most += min(len(own), counts[id(pattern)])
        useful |= own
    most = min(most, len(useful))
    required = sum(slot.required for slot in variant.slots)
    others = sum(
        not matches_any(expected.extra, call.name)
        for index, call in enumerate(comparer.calls)
        if index not in useful
    )
    recall = min(Fraction(most, required), Fraction(1)) if required else Fraction(1)
    precision = Fraction(most, most + others) if most + others else Fraction(1)
    total = precision + recall
    return 2 * precision * recall / total if total else Fraction(0)


def compare_call_arguments(pattern: CallPattern, call: RecordedCall) -> ArgumentComparison:
    """Compare the arguments of a call of one of the pattern's tools."""
    rules, args = pattern.find_rules(call.name), read_arguments(call.args)
    if rules is None or args is None:
        return _NOTHING_COMPARED
    return compare_arguments(rules, args)


def _compare_call(pattern: CallPattern, call: RecordedCall) -> Pair:
    found = compare_call_arguments(pattern, call)
    right = found.compared - len(found.wrong)
    return Pair(
        not found.wrong and pattern.status in ("any", call.status),
        Fraction(right, found.compared) if found.compared else Fraction(1),
    )


def find_forbidden(
    rules: Sequence[ForbiddenCall], comparer: CallComparer
) -> Iterator[tuple[int, ...]]:
    """Yield, for each call, the indexes of the rules that it breaks."""
    places = comparer.find_places(parallel_is_free=True)
    for call in range(len(comparer.calls)):
        yield tuple(
            index
            for index, rule in enumerate(rules)
            if comparer.matches(rule.pattern, call) and _holds(rule, call, places, comparer)
        )


def _holds(rule: ForbiddenCall, call: int, places: Sequence[int], comparer: CallComparer) -> bool:
    """Whether a call is forbidden by what was called at earlier places."""
    earlier = [each for each in range(len(places)) if places[each] < places[call]]
    if rule.before is not None and any(comparer.matches(rule.before, each) for each in earlier):
        return False
    return rule.after is None or any(comparer.matches(rule.after, each) for each in earlier)


def _match_variant(
    expected: ExpectedTrajectory,
    variant: Variant,
    comparer: CallComparer,
    rules: tuple[tuple[int, ...], ...],
) -> TrajectoryMatch:
    allowed = [matches_any(expected.extra, call.name) for call in comparer.calls]
    pairs = dict(_list_pairs(variant, comparer, allowed))
    places = comparer.find_places(parallel_is_free=expected.parallel == "free")
    aligned = align_calls(places, variant.slots, pairs)
    calls = tuple(
        _make_aligned_call(aligned.get(call), pairs, call, is_allowed=is_allowed, rules=rules[call])
        for call, is_allowed in enumerate(allowed)
    )
    return _measure(expected, variant, calls, pairs, comparer, allowed)


def _list_pairs(
    variant: Variant, comparer: CallComparer, allowed: Sequence[bool]
) -> Iterator[tuple[tuple[int, int], Pair]]:
    for number, pattern in enumerate(variant.patterns):
        required = variant.slots[number].required
        for call, pair in comparer.find_pairs(pattern).items():
            # A near miss of an optional call is not a pair where it may be any other call.
            if pair.matches or required or not allowed[call]:
                yield (call, number), pair


def _make_aligned_call(
    slot: int | None,
    pairs: Mapping[tuple[int, int], Pair],
    call: int,
    *,
    is_allowed: bool,
    rules: tuple[int, ...],
) -> AlignedCall:
    kind: CallKind
    if slot is not None:
        kind = "match" if pairs[call, slot].matches else "changed"
    elif rules:
        kind = "forbidden"
    else:
        kind = "allowed" if is_allowed else "extra"
    return AlignedCall(kind=kind, slot=slot, rules=rules)


def _measure(
    expected: ExpectedTrajectory,
    variant: Variant,
    calls: tuple[AlignedCall, ...],
    pairs: Mapping[tuple[int, int], Pair],
    comparer: CallComparer,
    allowed: Sequence[bool],
) -> TrajectoryMatch:
    slots = variant.slots
    matched = [slots[each.slot] for each in calls if each.slot is not None and each.kind == "match"]
    changed = [
        (slots[each.slot], pairs[call, each.slot].similarity)
        for call, each in enumerate(calls)
        if each.slot is not None and each.kind == "changed"
    ]
    partial = expected.credit == "arguments"
    counted = sum(
        each.kind == "match"
        or bool(each.rules)
        or not is_allowed
        or (partial and each.kind == "changed")
        for each, is_allowed in zip(calls, allowed, strict=True)
    )
    required = sum(slot.required for slot in slots)
    in_required = sum(slot.required for slot in matched)
    missing = _find_missing(slots, calls)
    return TrajectoryMatch(
        variant=variant,
        calls=calls,
        missing=missing,
        moved=tuple(_find_moved(missing, variant, calls, comparer)),
        required=required,
        matched_required=in_required,
        matched_optional=len(matched) - in_required,
        right=in_required + _sum_credit(changed, partial=partial, required=True),
        right_optional=len(matched)
        - in_required
        + _sum_credit(changed, partial=partial, required=False),
        counted_calls=counted,
        changed=len(changed),
        similarity=sum((share for _, share in changed), Fraction(0)),
        is_satisfied=in_required == required
        and all(each.kind in ("match", "allowed") and not each.rules for each in calls),
        has_forbidden=any(each.rules for each in calls),
    )


def _sum_credit(
    changed: Sequence[tuple[Slot, Fraction]], *, partial: bool, required: bool
) -> Fraction:
    shares = (share for slot, share in changed if partial and slot.required == required)
    return sum(shares, Fraction(0))


def _find_missing(slots: Sequence[Slot], calls: Sequence[AlignedCall]) -> tuple[int, ...]:
    paired = {each.slot for each in calls}
    return tuple(index for index, slot in enumerate(slots) if slot.required and index not in paired)


def _find_moved(
    missing: Sequence[int],
    variant: Variant,
    calls: Sequence[AlignedCall],
    comparer: CallComparer,
) -> Iterator[tuple[int, int]]:
    left = [call for call, each in enumerate(calls) if each.slot is None]
    for slot in missing:
        pattern = variant.patterns[slot]
        found = next((call for call in left if comparer.matches(pattern, call)), None)
        if found is not None:
            left.remove(found)
            yield slot, found
