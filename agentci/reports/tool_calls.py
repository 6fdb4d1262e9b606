"""Expected and actual tool calls of a check, side by side."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from msgspec import Struct

from agentci._util.text import change, json_text, truncate
from agentci.model.values import IdentityKey, Json, JsonObject, replace

# Of a line that shows a call or a sentence, and of all its lines.
WIDTH: Final = 88
MAX_CHARACTERS: Final = 2 * WIDTH

DiffMark: TypeAlias = Literal[
    "", "differs", "missing", "unexpected", "moved", "forbidden", "allowed"
]
# Signs of the rows of the check `trajectory`, which aligns calls itself.
SIGNS: Final[Mapping[str, str]] = {
    "": "=",
    "differs": "~",
    "missing": "-",
    "unexpected": "+",
    "moved": ">",
    "forbidden": "!",
    "allowed": ".",
}
MAX_CALLS = 40
# The most serious first: of these, all others, and changed arguments.
_WRONG_TOOLS: Final = ("forbidden", "missing", "unexpected")
# A longer call that differs is shown with only the arguments that do.
MAX_WHOLE_CALL: Final = 80
_CONTAINERS: Final = (Mapping, list, tuple)
_Call: TypeAlias = tuple[str, Json]
_Pair: TypeAlias = tuple[_Call | None, _Call | None]
_Item = TypeVar("_Item")


class ToolCallRow(Struct, frozen=True, kw_only=True):
    """An expected call and its best matching actual call; "" where one is missing.

    Attributes:
        note: what is wrong; empty for rows of a metric.
        changed: of a call that differs, both sides with only their differing arguments.
        changes: of a call that differs, these arguments; not of rows of the check `trajectory`.
    """

    mark: DiffMark
    expected: str
    actual: str
    note: str = ""
    changed: tuple[str, str] | None = None
    changes: tuple[change.ArgumentChange, ...] = ()

    @property
    def label(self) -> str:
        """The mark with the note."""
        return ": ".join(filter(None, (self.mark, self.note)))


class TurnCalls(Struct, frozen=True, kw_only=True):
    """The tool calls of one turn that did not match.

    Attributes:
        title: ``turn 1``, counted from 1, or ``the run``.
        is_aligned: whether the rows are those of the check ``trajectory``.
        rows: at most ``MAX_CALLS`` calls of each side.
        hidden: number of calls of the longer side that ``rows`` omits.
    """

    title: str
    rows: tuple[ToolCallRow, ...]
    hidden: int
    is_aligned: bool = False


def find_unmatched_turns(details: JsonObject) -> tuple[TurnCalls, ...]:
    """Return the turns of ``details["comparisons"]`` and ``trajectories`` that did not match.

    Custom evaluators may put any value there. Items without the shape that the trajectory metric
    writes (``expected`` and ``actual`` calls, ``matched``) are ignored.
    """
    return _find_unmatched_turns(IdentityKey(details))


# Ranking a check, describing it and its pattern need them, in each report format.
@lru_cache(maxsize=256)
def _find_unmatched_turns(details: IdentityKey[JsonObject]) -> tuple[TurnCalls, ...]:
    comparisons = enumerate(_items(details.value, "comparisons"), 1)
    turns = [
        *(_turn(number, item) for number, item in comparisons),
        *map(_read_aligned, _items(details.value, "trajectories")),
    ]
    return tuple(turn for turn in turns if turn is not None)


def has_forbidden_call(details: JsonObject) -> bool:
    """Return whether a check found a call that its config forbids."""
    turns = [each for each in _items(details, "trajectories") if isinstance(each, Mapping)]
    return any(_items(each, "forbidden") for each in (details, *turns))


def list_forbidden_tools(details: JsonObject) -> list[str]:
    """List the tools that a check names as forbidden, each once and sorted."""
    return sorted({each for each in _items(details, "forbidden") if isinstance(each, str)})


def _items(details: JsonObject, key: str) -> Sequence[Json]:
    found = details.get(key)
    return found if isinstance(found, list | tuple) else ()


def _read_aligned(item: Json) -> TurnCalls | None:
    """Read what the check ``trajectory`` wrote of a turn that is not as expected."""
    if not isinstance(item, Mapping) or item.get("satisfied") is not False:
        return None
    title, rows = item.get("title"), [_read_row(row) for row in _items(item, "rows")]
    known = [row for row in rows if row is not None]
    if not isinstance(title, str) or not known or len(known) < len(rows):
        return None
    hidden = max(0, len(known) - MAX_CALLS)
    return TurnCalls(title=title, rows=tuple(known[:MAX_CALLS]), hidden=hidden, is_aligned=True)


def _read_row(row: Json) -> ToolCallRow | None:
    if not isinstance(row, Mapping):
        return None
    values: dict[str, Any] = {key: row.get(key) for key in ("mark", "expected", "actual", "note")}
    is_known = values["mark"] in get_args(DiffMark)
    return ToolCallRow(**values) if is_known and all(map(_is_text, values.values())) else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def format_diff(details: JsonObject) -> tuple[str, ...]:
    """Format unmatched turns as a diff: ``-`` expected, ``+`` actual."""
    lines: list[str] = []
    for turn in find_unmatched_turns(details):
        legend = "~ changed, - missing, + unexpected, > moved, ! forbidden"
        moved = ", > moved" if any(row.mark == "moved" for row in turn.rows) else ""
        legend = legend if turn.is_aligned else f"- expected, + actual, = both{moved}"
        lines.append(f"tool calls of {turn.title} ({legend}):")
        for row in turn.rows:
            lines += [_aligned_line(row)] if turn.is_aligned else _diff_lines(row)
        if turn.hidden:
            lines.append(truncate.format_omitted(turn.hidden))
    return tuple(lines)


def describe_worst_call(details: JsonObject) -> str:
    """Describe the first of the most serious calls that are not as expected; "" if all are."""
    found = [
        (turn.title, row)
        for turn in find_unmatched_turns(details)
        for row in turn.rows
        if row.mark not in ("", "allowed")
    ]
    if not found:
        return ""
    title, row = min(found, key=lambda each: rank_row(each[1]))
    return f"{title}: {row.label} `{row.actual or row.expected}`"


def rank_row(row: ToolCallRow) -> int:
    """Return what sorts wrong tools before moved calls before changed arguments."""
    return 0 if row.mark in _WRONG_TOOLS else 2 if row.mark == "differs" else 1


def _aligned_line(row: ToolCallRow) -> str:
    note = f"   {row.note}" if row.note else ""
    return f"{SIGNS[row.mark]} {row.actual or row.expected}{note}"


def _diff_lines(row: ToolCallRow) -> Iterator[str]:
    if not row.mark:
        yield f"= {row.actual}"
    elif row.mark == "moved":
        # Its other row is where it is expected.
        if row.actual:
            yield f"> {row.actual}"
    else:
        yield from list_sides(row)


def list_sides(row: ToolCallRow) -> Iterator[str]:
    """Yield ``- expected`` and ``+ actual`` of a call that is not as expected."""
    expected, actual = row.changed or (row.expected, row.actual)
    if expected:
        yield f"- {expected}"
    if actual:
        yield f"+ {actual}"


def _turn(number: int, item: Json) -> TurnCalls | None:
    if not isinstance(item, Mapping) or item.get("matched") is not False:
        return None
    expected, actual = _calls(item.get("expected")), _calls(item.get("actual"))
    if expected is None or actual is None:
        return None
    pairs = tuple(_align_calls(expected[:MAX_CALLS], actual[:MAX_CALLS]))
    return TurnCalls(
        title=f"turn {number}",
        rows=_rows(pairs),
        hidden=max(0, max(len(expected), len(actual)) - MAX_CALLS),
    )


def compare_calls(
    expected: Sequence[tuple[str, Json]], actual: Sequence[tuple[str, Json]]
) -> tuple[ToolCallRow, ...]:
    """Align names and arguments of calls; an expected call without arguments matches any."""
    rows = _rows(tuple(_align_calls(expected[:MAX_CALLS], actual[:MAX_CALLS])))
    free = {name for name, args in expected if args is None}
    return tuple(
        replace(row, mark="") if row.mark == "differs" and row.expected in free else row
        for row in rows
    )


def _calls(found: Json) -> list[_Call] | None:
    if not isinstance(found, list | tuple):
        return None
    calls: list[_Call] = []
    for call in found:
        if not isinstance(call, Mapping) or not isinstance(name := call.get("name"), str):
            return None
        calls.append((name, json_text.make_strict(call.get("args"))))
    return calls


def _align_calls(expected: Sequence[_Call], actual: Sequence[_Call]) -> Iterator[_Pair]:
    return align(expected, actual, _call_similarity)


def align(
    expected: Sequence[_Item],
    actual: Sequence[_Item],
    find_similarity: Callable[[_Item, _Item], int],
) -> Iterator[tuple[_Item | None, _Item | None]]:
    """Pair the items of both sides in order, to maximise the total similarity.

    Those with a similarity of 0 are not paired.
    """
    best = _score_pairings(expected, actual, find_similarity)
    i = j = 0
    while i < len(expected) and j < len(actual):
        similarity = find_similarity(expected[i], actual[j])
        if similarity and best[i][j] == similarity + best[i + 1][j + 1]:
            yield expected[i], actual[j]
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            yield expected[i], None
            i += 1
        else:
            yield None, actual[j]
            j += 1
    yield from ((each, None) for each in expected[i:])
    yield from ((None, each) for each in actual[j:])


def _score_pairings(
    expected: Sequence[_Item],
    actual: Sequence[_Item],
    find_similarity: Callable[[_Item, _Item], int],
) -> list[list[int]]:
    """Return the best total similarity of the items from (i, j) on.

    This is a weighted longest common subsequence.
    """
    best = [[0] * (len(actual) + 1) for _ in range(len(expected) + 1)]
    for i in reversed(range(len(expected))):
        for j in reversed(range(len(actual))):
            similarity = find_similarity(expected[i], actual[j])
            paired = similarity + best[i + 1][j + 1] if similarity else 0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    return best


def _call_similarity(expected: _Call, actual: _Call) -> int:
    if expected[0] != actual[0]:
        return 0
    return 3 if expected[1] == actual[1] else 1


def _rows(pairs: Sequence[_Pair]) -> tuple[ToolCallRow, ...]:
    missing = [expected for expected, actual in pairs if actual is None]
    unexpected = [actual for expected, actual in pairs if expected is None]
    return tuple(
        ToolCallRow(
            mark=_mark(expected, actual, moved=expected in unexpected or actual in missing),
            expected="" if expected is None else format_call(*expected),
            actual="" if actual is None else format_call(*actual),
            changed=None
            if expected is None or actual is None or expected == actual
            else _format_changed(expected, actual),
            changes=()
            if expected is None or actual is None or expected == actual
            else tuple(change.list_changes(expected[1], actual[1])),
        )
        for expected, actual in pairs
    )


def _format_changed(expected: _Call, actual: _Call) -> tuple[str, str] | None:
    """Format both calls with only the values that differ; None for short ones without nesting."""
    name, one = expected
    other = actual[1]
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return None
    is_nested = any(isinstance(each, _CONTAINERS) for each in (*one.values(), *other.values()))
    is_long = max(len(format_call(*expected)), len(format_call(*actual))) > MAX_WHOLE_CALL
    if not is_nested and not is_long:
        return None
    leaves = _write_leaves(one), _write_leaves(other)
    changes = [
        change.ArgumentChange(path, *(side.get(path, "") for side in leaves))
        for path in dict.fromkeys((*leaves[0], *leaves[1]))
        if leaves[0].get(path) != leaves[1].get(path)
    ]
    if sum(len(each.before) + len(each.after) for each in changes) > MAX_CHARACTERS:
        changes = change.sort_by_size(changes)
    some = len(changes) < len({*leaves[0], *leaves[1]})
    sides = [
        (each.path, change.shorten_pair(each.before, each.after, change.MAX_SIDE))
        for each in changes
    ]
    rest = [truncate.ELLIPSIS] if some else []
    return (
        f"{name}({', '.join([f'{path}={old}' for path, (old, _) in sides if old] + rest)})",
        f"{name}({', '.join([f'{path}={new}' for path, (_, new) in sides if new] + rest)})",
    )


def _write_leaves(args: Json) -> dict[str, str]:
    return {path: json_text.dumps_readable(value) for path, value in change.list_leaves(args, "")}


def _mark(expected: _Call | None, actual: _Call | None, *, moved: bool) -> DiffMark:
    if expected == actual:
        return ""
    if expected is not None and actual is not None:
        return "differs"
    if moved:
        return "moved"
    return "missing" if actual is None else "unexpected"


def format_call(name: str, args: Json) -> str:
    """Format ``search(query="x", limit=3)``; a call without recorded arguments has no brackets."""
    if args is None:
        return name
    if not isinstance(args, Mapping):
        return f"{name}({json_text.dumps_readable(args)})"
    written = (f"{key}={json_text.dumps_readable(value)}" for key, value in args.items())
    return f"{name}({', '.join(written)})"
