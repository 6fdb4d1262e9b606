"""The best alignment of recorded calls with expected ones, exactly.

Each pair has one integer weight that packs, in this order: required matches, optional matches,
changed pairs, similarity, and which slot earlier calls take. So the largest total weight is the
best alignment, and there is only one.

Expected calls without an order are assigned by successive shortest augmenting paths with potentials
(the Hungarian method). Those in lanes, slots in a partial order of which each lane is ordered in
itself, are found by a search.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.errors import EvaluatorError


class _Path(Struct, frozen=True):
    """An augmenting path.

    Attributes:
        column: the free column that it ends at; None if a row loses its column instead.
        row: that row.
        length: what the total weight loses by it; negative for a gain.
        done: the columns that the search left behind, with their distances.
        came_from: the row before each column.
    """

    column: int | None
    row: int
    length: int
    done: Mapping[int, int]
    came_from: Mapping[int, int]


class Assignment:
    """Grows by one row at a time; ``total`` is the largest total weight of the rows so far."""

    __slots__ = ("_column_of", "_columns", "_row_of", "_rows", "total")

    def __init__(self) -> None:
        self.total = 0
        self._row_of: dict[int, int] = {}
        self._column_of: dict[int, int] = {}
        self._columns: dict[int, int] = {}  # potentials
        self._rows: dict[int, tuple[int, Mapping[int, int]]] = {}  # potential and weights

    def copy(self) -> "Assignment":
        """Copy the state."""
        other = Assignment()
        other.total = self.total
        other._row_of, other._column_of = {**self._row_of}, {**self._column_of}
        other._columns, other._rows = {**self._columns}, {**self._rows}
        return other

    @property
    def columns(self) -> Mapping[int, int]:
        """The column of each row that has one."""
        return self._column_of

    def insert(self, row: int, weights: Mapping[int, int]) -> None:
        """Add a row.

        Args:
            weights: the positive weights of its columns.
        """
        self._rows[row] = (0, weights)
        path = self._find_path(row)
        self._update_potentials(row, path)
        self.total -= path.length
        self._augment(row, path)

    def _find_path(self, row: int) -> _Path:
        """Find the shortest path to a free column, or to a row that loses its column instead."""
        distance: dict[int, int] = {}
        came_from: dict[int, int] = {}
        done: dict[int, int] = {}
        at, moved = row, 0
        loser, loss = row, -self._rows[row][0]
        while True:
            potential, own = self._rows[at]
            for column, weight in own.items():
                if column not in done:
                    length = moved - weight - potential - self._columns.get(column, 0)
                    if column not in distance or length < distance[column]:
                        distance[column], came_from[column] = length, at
            if moved - potential < loss:
                loser, loss = at, moved - potential
            nearest = min(distance, key=distance.__getitem__, default=None)
            if nearest is None or loss <= distance[nearest]:
                return _Path(None, loser, loss, done, came_from)
            done[nearest] = moved = distance.pop(nearest)
            if nearest not in self._row_of:
                return _Path(nearest, row, moved, done, came_from)
            at = self._row_of[nearest]

    def _update_potentials(self, row: int, path: _Path) -> None:
        potential, weights = self._rows[row]
        self._rows[row] = (potential + path.length, weights)
        for column, reached_at in path.done.items():
            if column in self._row_of:
                moved = path.length - reached_at
                self._columns[column] = self._columns.get(column, 0) - moved
                other = self._row_of[column]
                potential, weights = self._rows[other]
                self._rows[other] = (potential + moved, weights)

    def _augment(self, row: int, path: _Path) -> None:
        if path.column is None and path.row == row:
            return
        column = self._column_of.pop(path.row) if path.column is None else path.column
        owner = path.came_from[column]
        while owner != row:
            previous = self._column_of[owner]
            self._row_of[column], self._column_of[owner] = owner, column
            column, owner = previous, path.came_from[previous]
        self._row_of[column], self._column_of[row] = row, column


MAX_STATES: Final = 20_000
# States of the first, quick search, which finds a total that the best one reaches at least.
QUICK_STATES: Final = 32


class TooManyWaysError(EvaluatorError):
    """An alignment would take too long; it has no result that looks like a verdict."""

    def __init__(self) -> None:
        super().__init__(
            "the calls can be aligned in too many ways; name more arguments in `trajectory`, or "
            "use fewer lanes in `any_order`"
        )


class _State(Struct, frozen=True):
    """A way to align the calls so far.

    Attributes:
        total: its weight.
        pairs: the last call with a slot, that slot, and the pairs before it.
    """

    total: int
    pairs: "tuple[int, int, tuple[object, ...]] | tuple[()]"


# Slots that later calls cannot take, and slots that calls of the current place took.
_Key: TypeAlias = tuple[int, int]


def search_lanes(
    groups: Sequence[Sequence[int]],
    before: Mapping[int, int],
    previous: Mapping[int, int],
    weights: Mapping[int, Mapping[int, int]],
) -> Mapping[int, int]:
    """Find the best alignment.

    A slot that is taken closes the slots before it for calls of later places.

    Args:
        groups: the calls of each place.
        before: bit masks of the slots before each slot.
        previous: the repeat before a slot, which is taken first.
        weights: by call, the weights of its slots.

    Raises:
        TooManyWaysError: there are more than ``MAX_STATES`` ways that may be the best.
    """
    search = _LaneSearch(before, previous, weights)
    quick = search.run(groups, least=0, limit=QUICK_STATES)
    best = search.run(groups, least=quick.total, limit=None)
    found: dict[int, int] = {}
    rest = best.pairs
    while rest:
        call, slot, rest = rest  # type: ignore[assignment]  # (a linked list)
        found[call] = slot
    return found


class _LaneSearch:
    def __init__(
        self,
        before: Mapping[int, int],
        previous: Mapping[int, int],
        weights: Mapping[int, Mapping[int, int]],
    ) -> None:
        self._before = before
        self._previous = previous
        self._weights = weights

    def run(self, groups: Sequence[Sequence[int]], *, least: int, limit: int | None) -> _State:
        """Find the best way that reaches ``least``.

        Args:
            limit: how many of the best states to follow; None to follow all.
        """
        open_total = sum(max(own.values()) for own in self._weights.values())
        states: dict[_Key, _State] = {(0, 0): _State(0, ())}
        for group in groups:
            for call in group:
                open_total -= max(self._weights[call].values())
                states = self._add_call(call, states, least - open_total)
                if limit is not None:
                    states = _keep_best(states, limit)
                elif len(states) > MAX_STATES:
                    raise TooManyWaysError
            states = self._end_place(states)
        return max(states.values(), key=lambda state: state.total)

    def _add_call(self, call: int, states: Mapping[_Key, _State], least: int) -> dict[_Key, _State]:
        found: dict[_Key, _State] = {}
        for key, state in states.items():
            for new, total, pairs in self._list_choices(call, key, state):
                if total >= least and (new not in found or total > found[new].total):
                    found[new] = _State(total, pairs)
        return found

    def _list_choices(
        self, call: int, key: _Key, state: _State
    ) -> "Iterator[tuple[_Key, int, tuple[int, int, tuple[object, ...]] | tuple[()]]]":
        closed, taken = key
        yield key, state.total, state.pairs
        unavailable = closed | taken
        for slot, weight in self._weights[call].items():
            previous = self._previous.get(slot)
            if unavailable >> slot & 1 or (
                previous is not None and not unavailable >> previous & 1
            ):
                continue
            pairs = (call, slot, state.pairs)
            yield (closed, taken | 1 << slot), state.total + weight, pairs

    def _end_place(self, states: Mapping[_Key, _State]) -> dict[_Key, _State]:
        found: dict[_Key, _State] = {}
        for (closed, taken), state in states.items():
            closing, left = closed | taken, taken
            while left:
                slot = left.bit_length() - 1
                left ^= 1 << slot
                closing |= self._before[slot]
            key = (closing, 0)
            if key not in found or state.total > found[key].total:
                found[key] = state
        return found


def _keep_best(states: dict[_Key, _State], limit: int) -> dict[_Key, _State]:
    if len(states) <= limit:
        return states
    best = sorted(states.items(), key=lambda each: -each[1].total)[:limit]
    return dict(best)


# Rows inserted into assignments in one alignment, at about 50 microseconds each.
MAX_INSERTIONS: Final = 60_000
# Parallel calls that two blocks of expected calls may take.
MAX_CONTESTED: Final = 10


class Slot(Struct, frozen=True, kw_only=True):
    """A place for one call.

    Attributes:
        path: of the expected call, with ``#k`` for its k-th repeat.
        item: index of the expected call; repeats of one call share it.
        required: False for a call that may be missing.
        before: the indexes of all slots that stand before it, as a bit mask.
    """

    path: str
    item: int
    required: bool
    before: int


class Pair(Struct, frozen=True):
    """A slot and a call of its tool.

    Attributes:
        matches: whether status and arguments fit.
        similarity: share of right arguments.
    """

    matches: bool
    similarity: Fraction


Pairs: TypeAlias = Mapping[tuple[int, int], Pair]
# By call: the weights of the slots that it may take.
Weights: TypeAlias = Mapping[int, Mapping[int, int]]
# Groups of calls of one place, and groups of slots without an order among themselves.
Groups: TypeAlias = Sequence[Sequence[int]]


def align_calls(places: Sequence[int], slots: Sequence[Slot], pairs: Pairs) -> Mapping[int, int]:
    """Find the best alignment: the slot of each call that has one.

    Args:
        places: of the calls; calls of one place have no order.
        pairs: by call and slot, those that are possible.

    Raises:
        TooManyWaysError: the slots are ordered in a way that would take too long.
    """
    weights = _weigh(len(places), slots, pairs)
    used = sorted({slot for own in weights.values() for slot in own})
    calls = _group_calls(places, weights)
    blocks = _find_blocks(used, slots)
    if len(calls) <= 1 or (blocks is not None and len(blocks) == 1):
        return _assign([call for group in calls for call in group], weights)
    if blocks is None:
        return search_lanes(calls, _keep_before(used, slots), _find_repeats(used, slots), weights)
    if all(len(each) == 1 for each in (*blocks, *calls)):
        return _align_chains([slot for [slot] in blocks], [call for [call] in calls], weights)
    if all(len(block) == 1 for block in blocks):
        # The same problem with the roles of calls and slots exchanged.
        found = _align_blocks(calls, blocks, _turn(weights))
        return {call: slot for slot, call in found.items()}
    return _align_blocks(blocks, calls, weights)


def _turn(weights: Weights) -> Weights:
    turned: dict[int, dict[int, int]] = {}
    for call, own in weights.items():
        for slot, weight in own.items():
            turned.setdefault(slot, {})[call] = weight
    return turned


def _weigh(calls: int, slots: Sequence[Slot], pairs: Pairs) -> Weights:
    """Pack the levels into integers, the less important ones in the lower digits."""
    scale = math.lcm(*{pair.similarity.denominator for pair in pairs.values()})
    count, similar, base = calls + 1, calls * scale + 1, len(slots) + 1
    ties = [base ** (calls - 1 - call) for call in range(calls)]
    unit = base**calls
    weights: dict[int, dict[int, int]] = {}
    for (call, slot), pair in pairs.items():
        levels = (pair.matches and slots[slot].required, pair.matches, not pair.matches)
        required, matched, changed = map(int, levels)
        packed = (required * count + (matched - required)) * count + changed
        packed = packed * similar + int(pair.similarity * scale)
        tie = (len(slots) - slot) * ties[call]
        weights.setdefault(call, {})[slot] = packed * unit + tie
    return weights


def _group_calls(places: Sequence[int], weights: Weights) -> Groups:
    groups: dict[int, list[int]] = {}
    for call in sorted(weights):
        groups.setdefault(places[call], []).append(call)
    return [groups[place] for place in sorted(groups)]


def _find_blocks(used: Sequence[int], slots: Sequence[Slot]) -> Groups | None:
    """Divide the slots into blocks, each of them after all of the one before.

    Repeats of one call become blocks of their own: their order makes no difference. None if the
    slots cannot be divided, as there are several lanes.
    """
    kept = sum(1 << slot for slot in used)
    levels: dict[int, list[int]] = {}
    for slot in used:
        levels.setdefault(slots[slot].before & kept, []).append(slot)
    blocks: list[list[int]] = []
    earlier = 0
    for before in sorted(levels, key=lambda mask: (mask.bit_count(), mask)):
        if before != earlier:
            return None
        earlier |= sum(1 << slot for slot in levels[before])
        repeats = len({slots[slot].item for slot in levels[before]}) == 1
        blocks += [[slot] for slot in levels[before]] if repeats else [levels[before]]
    return blocks


def _keep_before(used: Sequence[int], slots: Sequence[Slot]) -> Mapping[int, int]:
    kept = sum(1 << slot for slot in used)
    return {slot: slots[slot].before & kept for slot in used}


def _find_repeats(used: Sequence[int], slots: Sequence[Slot]) -> Mapping[int, int]:
    """The previous repeat of each slot that has one."""
    last: dict[int, int] = {}
    previous: dict[int, int] = {}
    for slot in used:
        item = slots[slot].item
        if item in last:
            previous[slot] = last[item]
        last[item] = slot
    return previous


def _assign(calls: Sequence[int], weights: Weights) -> Mapping[int, int]:
    assignment = Assignment()
    for call in calls:
        assignment.insert(call, weights[call])
    return assignment.columns


def _align_chains(
    slots: Sequence[int], calls: Sequence[int], weights: Weights
) -> Mapping[int, int]:
    """Align two sequences: the heaviest common subsequence."""
    best = [[0] * (len(slots) + 1) for _ in range(len(calls) + 1)]
    for i in reversed(range(len(calls))):
        own, row, below = weights[calls[i]], best[i], best[i + 1]
        for j in reversed(range(len(slots))):
            value = max(below[j], row[j + 1])
            weight = own.get(slots[j])
            row[j] = value if weight is None else max(value, weight + below[j + 1])
    found: dict[int, int] = {}
    i = j = 0
    while i < len(calls) and j < len(slots):
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            found[calls[i]] = slots[j]
            i, j = i + 1, j + 1
    return found


# A position in groups: the index of a group, and which of its rows are before the cut, of those
# that a later block may take.
_Cut: TypeAlias = tuple[int, frozenset[int]]
_START: Final[_Cut] = (0, frozenset())


class _Best(Struct, frozen=True):
    """The largest total weight up to a cut, and the cut at which the last block starts."""

    total: int
    start: _Cut


def _align_blocks(blocks: Groups, groups: Groups, weights: Weights) -> Mapping[int, int]:
    """Align blocks with groups, both in order, by all positions at which a block may end.

    Args:
        blocks: columns of ``weights``, one group after the other.
        groups: rows of ``weights``, likewise.
    """
    work = [_BlockWork(groups, *each) for each in _select_weights(blocks, weights)]
    ends: list[dict[_Cut, _Best]] = [{_START: _Best(0, _START)}]
    for each in work:
        ends.append(each.extend(ends[-1]))
        if sum(one.insertions for one in work) > MAX_INSERTIONS:
            raise TooManyWaysError
    found: dict[int, int] = {}
    cut = max(ends[-1], key=lambda each: ends[-1][each].total)
    for one, best in reversed(list(zip(work, ends[1:], strict=True))):
        start = best[cut].start
        found |= one.assign(start, cut)
        cut = start
    return found


def _select_weights(blocks: Groups, weights: Weights) -> Sequence[tuple[Weights, frozenset[int]]]:
    """The weights of each block, and the rows that later blocks may take."""
    later: set[int] = set()
    selected: list[tuple[Weights, frozenset[int]]] = []
    for block in map(frozenset, reversed(blocks)):
        own = {
            row: {column: weight for column, weight in each.items() if column in block}
            for row, each in weights.items()
            if block & each.keys()
        }
        selected.append((own, frozenset(later)))
        later |= own.keys()
    return selected[::-1]


class _BlockWork:
    """Assigns the rows between two cuts to the columns of one block.

    Args:
        weights: of the block.
        later: rows that later blocks may take.
    """

    def __init__(self, groups: Groups, weights: Weights, later: frozenset[int]) -> None:
        self._groups = groups
        self._weights = weights
        self._later = later
        self.insertions = 0

    def extend(self, starts: Mapping[_Cut, _Best]) -> dict[_Cut, _Best]:
        """The best totals with this block."""
        found: dict[_Cut, _Best] = {}
        for start, best in starts.items():
            if _is_dominated(start, starts, self._groups):
                continue
            for cut, total in self._list_totals(start):
                if cut not in found or best.total + total > found[cut].total:
                    found[cut] = _Best(best.total + total, start)
        return found

    def _list_totals(self, start: _Cut) -> Iterator[tuple[_Cut, int]]:
        """The weight of the best assignment up to every later cut."""
        assignment = Assignment()
        first, taken = start
        yield (first, taken & self._later), 0
        for index in range(first, len(self._groups)):
            left = [row for row in self._groups[index] if row not in taken]
            own = [row for row in left if row in self._weights]
            contested = [row for row in own if row in self._later]
            before = taken & self._later
            for part in _list_parts(contested, left, self._later):
                branch = assignment.copy()
                self._insert(branch, [row for row in own if row not in self._later])
                self._insert(branch, part)
                yield (index, before.union(part)), branch.total
            self._insert(assignment, own)
            taken = frozenset()
            yield (index + 1, taken), assignment.total

    def _insert(self, assignment: Assignment, rows: Sequence[int]) -> None:
        for row in rows:
            self.insertions += 1
            assignment.insert(row, self._weights[row])

    def assign(self, start: _Cut, end: _Cut) -> Mapping[int, int]:
        """The best assignment of the rows between two cuts."""
        assignment = Assignment()
        for index in range(start[0], min(end[0] + 1, len(self._groups))):
            rows = [row for row in self._groups[index] if row in self._weights]
            if index == start[0]:
                rows = [row for row in rows if row not in start[1]]
            if index == end[0]:
                rows = [row for row in rows if row in end[1] or row not in self._later]
            self._insert(assignment, rows)
        return assignment.columns


def _list_parts(
    contested: Sequence[int], left: Sequence[int], later: frozenset[int]
) -> Iterator[tuple[int, ...]]:
    """The rows of one group that a block may take where it leaves others to later blocks."""
    if len(contested) > MAX_CONTESTED:
        raise TooManyWaysError
    most = sum(row in later for row in left)
    for size in range(min(len(contested) + 1, most)):
        yield from combinations(contested, size)


def _is_dominated(cut: _Cut, starts: Mapping[_Cut, _Best], groups: Groups) -> bool:
    """Whether an earlier cut has the same total, which leaves more rows for the next block."""
    index, taken = cut
    total = starts[cut].total
    earlier: list[_Cut] = [(index, taken - {row}) for row in taken]
    if not taken and index:
        last = frozenset(groups[index - 1])
        earlier += [each for each in starts if each[0] == index - 1 and each[1] < last]
    return any(each in starts and starts[each].total >= total for each in earlier)
