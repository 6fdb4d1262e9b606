"""Expected and actual tool calls, and the calls and the first sentence of a case that differ."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from textwrap import wrap
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from agentci._util.text import change, escape, json_text, truncate
from agentci._util.text.format import format_count
from agentci.model.result import (
    BaselineTurn,
    CallContent,
    ExpectedCall,
    RunContent,
    TurnContent,
)
from agentci.model.values import Json, JsonObject, replace

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
    turns = [
        *(_turn(number, item) for number, item in enumerate(_items(details, "comparisons"), 1)),
        *map(_read_aligned, _items(details, "trajectories")),
    ]
    return tuple(turn for turn in turns if turn is not None)


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
    title, row = min(found, key=lambda each: _rank_row(each[1]))
    return f"{title}: {row.label} `{row.actual or row.expected}`"


def _rank_row(row: ToolCallRow) -> int:
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
    """Pair the calls of both sides in order, to maximise the total similarity."""
    best = _score_pairings(expected, actual)
    i = j = 0
    while i < len(expected) and j < len(actual):
        similarity = _call_similarity(expected[i], actual[j])
        if similarity and best[i][j] == similarity + best[i + 1][j + 1]:
            yield expected[i], actual[j]
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            yield expected[i], None
            i += 1
        else:
            yield None, actual[j]
            j += 1
    yield from ((call, None) for call in expected[i:])
    yield from ((None, call) for call in actual[j:])


def _score_pairings(expected: Sequence[_Call], actual: Sequence[_Call]) -> list[list[int]]:
    """Return the best total similarity of the calls from (i, j) on.

    This is a weighted longest common subsequence.
    """
    best = [[0] * (len(actual) + 1) for _ in range(len(expected) + 1)]
    for i in reversed(range(len(expected))):
        for j in reversed(range(len(actual))):
            similarity = _call_similarity(expected[i], actual[j])
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


WIDTH: Final = 88
MAX_CHARACTERS: Final = 2 * WIDTH

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")


Reference: TypeAlias = Literal["expected", "baseline"]
# Lines of a run's calls.
MAX_CALL_LINES: Final = 8
_MAX_NAME: Final = 40
_INDEX: Final = re.compile(r"\[\d+\]")


class TurnDifference(Struct, frozen=True, kw_only=True):
    """What differs in the calls or in the answer of one turn.

    Lines have at most ``WIDTH`` characters, apart from their sign: ``-`` reference, ``+`` this run,
    ``!`` moved.

    Attributes:
        turn: counted from 1.
        lines: of calls, or of the answer from the first sentence on that differs.
        rows: places of these calls among those of the turn that differ, from 0.
    """

    turn: int
    reference: Reference
    lines: tuple[str, ...]
    rows: tuple[int, ...] = ()

    def describe(self, what: str) -> str:
        """Describe what the lines show: ``answer of turn 1 (- expected, + actual)``."""
        new = "actual" if self.reference == "expected" else "this run"
        return f"{what} of turn {self.turn} (- {self.reference}, + {new})"


class RunDifference(Struct, frozen=True, kw_only=True):
    """What differs in a run, and how much more does.

    Attributes:
        missing_turns: turns that the run lacks, counted from 1.
        calls: by turn, the turn with the most serious first.
        more_calls, more_answers: how many more differ, in the turns that the run has.
        more_kinds: how these calls differ, unless calls that are shown differ in the same way.
        is_same: whether the run is as in the baseline, so that it is compared with the eval case.
    """

    missing_turns: tuple[int, ...]
    calls: tuple[TurnDifference, ...]
    answer: TurnDifference | None
    more_calls: int
    more_answers: int
    more_kinds: str = ""
    is_same: bool = False

    def list_parts(self, *, with_calls: bool = True) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the tool calls by turn, then the answer, each with its label."""
        for part in self.calls if with_calls else ():
            yield part.describe("tool calls"), part.lines
        if self.answer is not None:
            yield self.answer.describe("answer"), self.answer.lines

    def format_missing_turns(self) -> str:
        """Format ``turn 2 is missing``; empty for none."""
        numbers = ", ".join(map(str, self.missing_turns))
        some = len(self.missing_turns) > 1
        return f"turn{'s' * some} {numbers} {'are' if some else 'is'} missing" if numbers else ""

    def format_head(self) -> str:
        """Format whether the run is as in the baseline, and which turns are missing; or nothing."""
        same = "the same calls and answers as in the baseline" if self.is_same else ""
        return "; ".join(filter(None, (same, self.format_missing_turns())))

    def format_more(self, *, with_calls: bool = True) -> str:
        """Format ``and 2 more differences: missing refund``; "" for none."""
        count = self.more_answers + (self.more_calls if with_calls else 0)
        if not count:
            return ""
        kinds = f": {self.more_kinds}" if with_calls and self.more_kinds else ""
        return f"and {format_count(count, 'more difference')}{kinds}"


def find_difference(content: RunContent, reference: Reference) -> RunDifference | None:
    """Find the calls and the first answer that differ from the eval case or the baseline.

    None if nothing differs, or if there is nothing to compare with. Of many calls, each kind is
    shown before a second one of any, the most serious first; what is left of ``MAX_CALL_LINES``
    shows further ones.

    Args:
        reference: what a turn is compared with if it has both. A run that is as in the baseline is
            compared with the eval case.
    """
    if reference == "expected" or all(turn.baseline is None for turn in content.turns):
        return _find_differences(content, "expected")
    if found := _find_differences(content, "baseline"):
        return found
    found = _find_differences(content, "expected")
    return found and replace(found, is_same=True)


class _DifferingCall(Struct, frozen=True):
    """A call that differs: its place among those of its turn, and how it is shown."""

    turn: int
    reference: Reference
    place: int
    row: ToolCallRow
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        return (self.row.actual or self.row.expected).partition("(")[0]

    @property
    def kind(self) -> tuple[str, str, tuple[str, ...]]:
        """What calls that differ in the same way have in common."""
        paths = (_INDEX.sub("[]", each.path) for each in self.row.changes)
        return self.row.mark, self.name, tuple(dict.fromkeys(paths))


def _find_differences(content: RunContent, reference: Reference) -> RunDifference | None:
    calls: list[_DifferingCall] = []
    answers: list[TurnDifference] = []
    missing: list[int] = []
    for number, turn in enumerate(content.turns, start=1):
        own = choose_reference(turn, reference)
        if turn.missing:
            # One that the baseline lacks, too, is not a difference to it.
            missing += [number] if own == reference else []
            continue
        rows, texts = compare_turn(turn, own)
        calls += (
            _DifferingCall(number, own, place, row, tuple(_format_row(row, own)))
            for place, row in enumerate(rows)
        )
        if texts:
            lines = tuple(_format_answers(*texts))
            answers.append(TurnDifference(turn=number, reference=own, lines=lines))
    if not (missing or calls or answers):
        return None
    calls.sort(key=lambda each: _rank_row(each.row))
    shown = _choose_calls(calls)
    kinds = {each.kind for each in shown}
    same = (each for each in answers if shown and each.turn == shown[0].turn)
    answer = next(same, answers[0] if answers else None)
    return RunDifference(
        missing_turns=tuple(missing),
        calls=tuple(_group_by_turn(shown)),
        answer=answer,
        more_calls=len(calls) - len(shown),
        more_answers=len(answers) - (answer is not None),
        more_kinds=_name_kinds([each for each in calls if each.kind not in kinds]),
    )


def _choose_calls(calls: Sequence[_DifferingCall]) -> list[_DifferingCall]:
    """Choose the calls that are shown, in the same order: the first one, and others that fit.

    Args:
        calls: the most serious first.
    """
    kinds = {each.kind: each for each in reversed(calls)}
    firsts = [each for each in calls if each is kinds[each.kind]]
    others = [each for each in calls if each is not kinds[each.kind]]
    chosen: list[_DifferingCall] = []
    for each in (*firsts, *others):
        if each.lines not in (known.lines for known in chosen) and (
            not chosen or sum(len(one.lines) for one in (*chosen, each)) <= MAX_CALL_LINES
        ):
            chosen.append(each)
    return [each for each in calls if any(each is one for one in chosen)]


def _group_by_turn(calls: Sequence[_DifferingCall]) -> Iterator[TurnDifference]:
    for number in dict.fromkeys(each.turn for each in calls):
        own = [each for each in calls if each.turn == number]
        yield TurnDifference(
            turn=number,
            reference=own[0].reference,
            lines=tuple(line for each in own for line in each.lines),
            rows=tuple(each.place for each in own),
        )


def _name_kinds(calls: Sequence[_DifferingCall]) -> str:
    """Format ``missing refund; other arguments find_order (order_id), search (query, limit)``."""
    names: dict[str, dict[str, None]] = {}
    for each in calls:
        mark, name, paths = each.kind
        arguments = f" ({truncate.short(', '.join(paths), _MAX_NAME)})" if any(paths) else ""
        word = "other arguments" if mark == "differs" else mark
        names.setdefault(word, {})[f"{truncate.short(name, _MAX_NAME)}{arguments}"] = None
    text = "; ".join(f"{word} {', '.join(own)}" for word, own in names.items())
    return truncate.short(escape.flatten_line(text), MAX_CHARACTERS)


def choose_reference(turn: TurnContent, wanted: Reference) -> Reference:
    """Choose what a turn has of the eval case and the baseline, and ``wanted`` if it has both."""
    has_expectation = turn.expected_calls is not None or turn.expected_answer is not None
    if turn.baseline is None:
        return "expected"
    return wanted if has_expectation else "baseline"


def compare_turn(
    turn: TurnContent, reference: Reference
) -> tuple[Sequence[ToolCallRow], tuple[str, str | None] | None]:
    """Return the calls that differ, and both answers if they do."""
    before = turn.baseline
    if reference == "expected":
        calls, answer = turn.expected_calls, turn.expected_answer
    elif isinstance(before, BaselineTurn):
        calls, answer = before.calls, before.answer
    else:
        return (), None
    rows = [] if calls is None else _compare_calls(calls, turn.calls)
    differs = answer is not None and _split(answer) != _split(turn.answer)
    return rows, (answer, turn.answer) if answer is not None and differs else None


def _compare_calls(
    expected: Sequence[ExpectedCall], actual: Sequence[CallContent]
) -> list[ToolCallRow]:
    """List the calls that differ; a moved one once, where it was called, as the page does.

    Of calls with equal arguments, those that one side has more often are missing or unexpected.
    """
    rows = compare_calls(_read_calls(expected), _read_calls(actual))
    partners: dict[int, int] = {}
    for at, row in enumerate(rows):
        if row.mark == "moved" and row.actual:
            same = (
                n
                for n, each in enumerate(rows)
                if each.mark == "moved" and each.expected == row.actual
            )
            other = next((n for n in same if n not in partners.values()), None)
            partners |= {} if other is None else {at: other}
    joined = set(partners.values())
    found: list[ToolCallRow] = []
    for at, row in enumerate(rows):
        if at in partners:
            # The first of both says whether it was called earlier or later.
            found.append(rows[min(at, partners[at])])
        elif row.mark == "moved" and at not in joined:
            found.append(replace(row, mark="unexpected" if row.actual else "missing"))
        elif row.mark not in ("", "moved"):
            found.append(row)
    return found


def _read_calls(calls: Sequence[ExpectedCall | CallContent]) -> list[tuple[str, Json]]:
    return [(call.name, call.arguments) for call in calls]


def _format_row(row: ToolCallRow, reference: Reference) -> Iterator[str]:
    if row.mark == "moved":
        order = "later" if row.expected else "earlier"
        than = "expected" if reference == "expected" else "in the baseline"
        yield from _format("!", f"{row.expected or row.actual} was called {order} than {than}")
    else:
        for sign, _, call in (line.partition(" ") for line in list_sides(row)):
            yield from _format(sign, call)


def _split(text: str | None) -> list[str]:
    """Split a text into sentences; none without a text."""
    return [] if text is None else _SENTENCE_END.split(text.strip())


def _format_answers(expected: str, actual: str | None) -> Iterator[str]:
    """Yield both answers from the first sentence on that differs."""
    if actual is None:
        yield from _format("-", expected)
        yield "+ (no answer)"
        return
    one, other = _split(expected), _split(actual)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
    old, new = (escape.flatten_line(" ".join(side[same:])) for side in (one, other))
    for sign, text in zip("-+", change.shorten_pair(old, new, MAX_CHARACTERS), strict=True):
        yield from _format(sign, text)


def _format(sign: str, text: str) -> Iterator[str]:
    shown = truncate.short(escape.flatten_line(text), MAX_CHARACTERS)
    yield from (f"{sign} {line}" for line in wrap(shown, WIDTH))
