"""``trajectory``: the tool calls of a run against the expected ones, and their differences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text import json_text, truncate
from agentci._util.text.change import ABSENT as ABSENT_TEXT
from agentci._util.text.change import (
    MAX_CHANGES,
    ArgumentChange,
    format_changes,
    list_changes,
    shorten_pair,
)
from agentci._util.text.format import format_count, format_number
from agentci.errors import EvaluatorError
from agentci.evaluators.checks.check import CheckFinding
from agentci.evaluators.checks.tools import (
    MAX_CALL,
    RECORD_STATUS,
    format_call,
    list_forbidden_calls,
    list_forbidden_tools,
    make_recorded_calls,
)
from agentci.evaluators.evaluator import check_tool_calls_recorded
from agentci.evaluators.trajectory.expectation import CallPattern, ExpectedTrajectory
from agentci.evaluators.trajectory.match import (
    LEFT_OUT,
    AlignedCall,
    RecordedCall,
    TrajectoryMatch,
    UnrecordedCallError,
    compare_call_arguments,
    list_patterns,
    match_calls,
)
from agentci.evaluators.trajectory.matchers import (
    MAX_SHOWN,
    PREFIX,
    WHOLE,
    Absent,
    WrongArgument,
    format_value,
)
from agentci.model.case import Case
from agentci.model.trace import Turn
from agentci.model.values import JsonObject, replace

RowMark: TypeAlias = Literal["=", "~", "-", "+", ">", "!", "."]
# How each mark is called in reports.
MARK_NAMES: Final[dict[RowMark, str]] = {
    "=": "",
    "~": "differs",
    "-": "missing",
    "+": "unexpected",
    ">": "moved",
    "!": "forbidden",
    ".": "allowed",
}


class AlignedRow(Struct, frozen=True, kw_only=True):
    """A recorded call, an expected one, or both.

    Attributes:
        number: of the recorded call, counted from 1; None without one.
        note: what is wrong.
        changed: of a call that differs, only the arguments that do.
    """

    mark: RowMark
    number: int | None
    expected: str
    actual: str
    note: str = ""
    changed: str = ""

    @property
    def line(self) -> str:
        """The row as a line of text."""
        number = "." if self.number is None else f"{self.number}"
        line = f"{self.mark} {number:>2}  {self.actual or self.expected}"
        return f"{line}   {self.note}" if self.note else line

    @property
    def as_json(self) -> JsonObject:
        """The row for the details of a result."""
        return {
            "mark": MARK_NAMES[self.mark],
            "call": self.number,
            "expected": self.expected,
            "actual": self.actual,
            "note": self.note,
        }


def describe_numbers(match: TrajectoryMatch, score: str) -> str:
    """Describe a comparison in one line: ``3 of 4 expected calls, 1 extra (precision ...)``.

    If only extra calls are wrong, it is ``1 extra call``. The numbers are left out if the option
    ``score`` is ``strict``, which does not use them, or if they say no more than that no call
    matches.
    """
    parts = [f"{match.matched_required} of {format_count(match.required, 'expected call')}"]
    extra = sum(each.kind == "extra" for each in match.calls)
    forbidden = sum(bool(each.rules) for each in match.calls)
    if extra and match.matched_required == match.required:
        parts = [format_count(extra, "extra call")]
    elif extra:
        parts.append(f"{extra} extra")
    if forbidden:
        parts.append(f"{forbidden} forbidden")
    if not match.f1 or score == "strict":
        return ", ".join(parts)
    numbers = ", ".join(
        f"{name} {format_number(float(value), 2)}"
        for name, value in (
            ("precision", match.precision),
            ("recall", match.recall),
            ("F1", match.f1),
        )
    )
    return f"{', '.join(parts)} ({numbers})"


def describe_branches(match: TrajectoryMatch) -> Iterator[str]:
    """Name the path that was compared, for each choice of paths."""
    for each in match.branches:
        if each.choice == LEFT_OUT:
            yield f"group {each.path}: left out"
        else:
            yield f"any_of {each.path}: path {int(each.choice) + 1} of {each.paths}"


def make_rows(match: TrajectoryMatch, calls: Sequence[RecordedCall]) -> tuple[AlignedRow, ...]:
    """Make one row per recorded call, and one per missing one after what is written before it."""
    moved = {call: slot for slot, call in match.moved}
    rows: list[tuple[int | None, AlignedRow]] = []
    for index, (call, aligned) in enumerate(zip(calls, match.calls, strict=True)):
        slot = moved.get(index, aligned.slot)
        rows.append((aligned.slot, _make_row(match, index, call, aligned, slot)))
    for slot in match.missing:
        if slot not in moved.values():
            earlier = [
                at for at, (other, _) in enumerate(rows) if other is not None and other < slot
            ]
            row = AlignedRow(
                mark="-",
                number=None,
                expected=_format_pattern(match.variant.patterns[slot]),
                actual="",
                note="expected, not called",
            )
            rows.insert(earlier[-1] + 1 if earlier else 0, (slot, row))
    return tuple(row for _, row in rows)


def _make_row(
    match: TrajectoryMatch,
    index: int,
    call: RecordedCall,
    aligned: AlignedCall,
    slot: int | None,
) -> AlignedRow:
    pattern = None if slot is None else match.variant.patterns[slot]
    expected = "" if pattern is None else _format_pattern(pattern)
    mark, note = _describe_call(match, aligned, slot, index)
    text, changed = format_call(call), ""
    if mark == "~" and pattern is not None:
        wrong = compare_call_arguments(pattern, call).wrong
        text = _format_changed(call, wrong)
        note = "; ".join(filter(None, map(_explain, wrong)))
        note = note if wrong else f"expected status {pattern.status}"
        changes = [change for each in wrong for change in _list_changes(each)]
        changed = format_changes(call.name, changes) if wrong else call.name
    return AlignedRow(
        mark=mark, number=index + 1, expected=expected, actual=text, note=note, changed=changed
    )


def _describe_call(
    match: TrajectoryMatch, aligned: AlignedCall, slot: int | None, index: int
) -> tuple[RowMark, str]:
    if aligned.rules:
        rules = ", ".join(f"{rule + 1}" for rule in aligned.rules)
        return "!", f"forbidden by rule {rules}"
    if aligned.slot is None and slot is not None:
        return ">", _describe_move(match, slot, index)
    notes: dict[str, tuple[RowMark, str]] = {
        "match": ("=", ""),
        "changed": ("~", ""),
        "allowed": (".", "allowed"),
        "extra": ("+", "not expected"),
    }
    return notes[aligned.kind]


def _describe_move(match: TrajectoryMatch, slot: int, index: int) -> str:
    """Name the other call to which the order is wrong; there is one, else the call would match."""
    slots, patterns = match.variant.slots, match.variant.patterns
    places = {each.slot: call for call, each in enumerate(match.calls) if each.slot is not None}
    later = [
        other for other, call in places.items() if slots[other].before >> slot & 1 and call < index
    ]
    if later:
        return f"called too late: expected before {patterns[min(later)].tools[0]}"
    earlier = max(
        other for other, call in places.items() if slots[slot].before >> other & 1 and call > index
    )
    return f"called too early: expected after {patterns[earlier].tools[0]}"


def _explain(wrong: WrongArgument) -> str:
    if wrong.note is not None:
        return wrong.note
    if wrong.matcher is None:
        return f"{wrong.name} is not expected"
    return "" if wrong.matcher.is_plain else f"expected {wrong.matcher.text}"


def _format_changed(call: RecordedCall, wrong: Sequence[WrongArgument]) -> str:
    """Format only the changed arguments: ``refund_order(amount: 19.99 → 199.9)``."""
    parts = [f"{each.name}: {' → '.join(_format_sides(each))}" for each in wrong]
    return truncate.short(f"{call.name}({', '.join(parts)})", MAX_CALL)


def _format_sides(wrong: WrongArgument) -> tuple[str, str]:
    matcher, found = wrong.matcher, wrong.found
    if matcher is None or isinstance(found, Absent) or not matcher.is_plain:
        return ABSENT_TEXT if matcher is None else matcher.text, format_value(found)
    sides = json_text.dumps_readable(matcher.written), json_text.dumps_readable(found)
    return shorten_pair(*sides, MAX_SHOWN)


def _list_changes(wrong: WrongArgument) -> Iterator[ArgumentChange]:
    """Yield the values of an argument that differ; it is one value for a matcher."""
    matcher, found = wrong.matcher, wrong.found
    if matcher is None or isinstance(found, Absent) or not matcher.is_plain:
        yield ArgumentChange(wrong.name, *_format_sides(wrong))
        return
    changes = tuple(list_changes(matcher.written, found, wrong.name))
    if not changes or any(f".{PREFIX}" in each.path for each in changes):
        changes = (ArgumentChange(wrong.name, *_format_sides(wrong)),)  # a matcher inside of it
    yield from changes


def _format_pattern(pattern: CallPattern) -> str:
    name = "|".join(pattern.tools)
    if pattern.args is None:
        return name
    if pattern.args.whole is not None:
        return f"{name}({WHOLE}: {pattern.args.whole.text})"
    written = (f"{key}={matcher.text}" for key, matcher in pattern.args.named.items())
    return truncate.short(f"{name}({', '.join(written)})", MAX_CALL)


def list_expected_tools(expected: ExpectedTrajectory) -> Iterator[str]:
    """List the patterns of the tools that an expectation requires or forbids."""
    for pattern in list_patterns(expected.calls):
        yield from (*pattern.tools, *pattern.by_tool)
    yield from list_forbidden_tools(expected.forbidden)


def find_hints(expected: ExpectedTrajectory, calls: Sequence[RecordedCall]) -> Iterator[str]:
    """Yield the single changes of options with which the calls would be as expected."""
    wider = {
        "`extra: allow`": replace(expected, extra=("*",)),
        "`order: any_order`": replace(expected, calls=replace(expected.calls, order="any_order")),
    }
    for hint, changed in wider.items():
        if changed != expected and match_calls(changed, calls).is_satisfied:
            yield f"with {hint} it would pass"


WHOLE_RUN: Final = "run"
DESCRIPTIONS: Final = {
    "args": "the arguments of `{}` are compared and were not recorded; turn on content capture in "
    "the instrumentation of the tools",
    "status": f"the recording does not say whether `{{}}` succeeded; {RECORD_STATUS}",
}


class _ComparedCalls(Struct, frozen=True, kw_only=True):
    """The calls of a turn, or of the run, and the comparison."""

    title: str
    expected: ExpectedTrajectory
    calls: tuple[RecordedCall, ...]
    match: TrajectoryMatch

    @property
    def rows(self) -> tuple[AlignedRow, ...]:
        return make_rows(self.match, self.calls)

    @property
    def score(self) -> float:
        """Its score; 0 with a forbidden call."""
        return 0.0 if self.match.has_forbidden else self.match.score(self.expected.score)

    @property
    def details(self) -> JsonObject:
        rows = [row.as_json for row in self.rows]
        # Advice to expect less is no finding.
        hints = [*find_hints(self.expected, self.calls)] if not self.match.is_satisfied else []
        shown = {"hints": hints} if hints else {}
        return {"title": self.title, **self.match.as_json, "rows": rows, **shown}


class TrajectoryRule(Struct, frozen=True, kw_only=True):
    """The calls of each turn, or of the run, must be the expected ones."""

    expected: ExpectedTrajectory

    @property
    def named_tools(self) -> Mapping[str, bool]:
        """See ``ToolRule``."""
        return dict.fromkeys(list_expected_tools(self.expected), False)

    @property
    def forbidden_calls(self) -> tuple[CallPattern, ...]:
        """See ``CallRule``."""
        return list_forbidden_calls(self.expected.forbidden)

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        turns = case.trace.turns
        check_tool_calls_recorded(turns)
        lists = [("the run", turns)]
        if self.expected.scope != WHOLE_RUN:
            lists = [(f"turn {number}", (turn,)) for number, turn in enumerate(turns, start=1)]
        compared = [_compare(title, self.expected, each) for title, each in lists]
        is_forbidden = any(each.match.has_forbidden for each in compared)
        scores = tuple(each.match.score(self.expected.score) for each in compared)
        return CheckFinding(
            score=0.0 if is_forbidden else sum(scores) / len(scores),
            passes=False if is_forbidden else None,
            turn_scores=() if self.expected.scope == WHOLE_RUN else scores,
            misses=tuple(line for each in compared for line in _describe(each)),
            details={"trajectories": [each.details for each in compared]},
        )


class CaseCalls(Struct, frozen=True, kw_only=True):
    """The calls of each turn must be those that its eval case expects.

    Attributes:
        expected: by turn; None for a turn whose calls are not compared.
    """

    expected: tuple[ExpectedTrajectory | None, ...]

    @property
    def named_tools(self) -> Mapping[str, bool]:
        """See ``ToolRule``."""
        turns = (each for each in self.expected if each is not None)
        return dict.fromkeys((tool for turn in turns for tool in list_expected_tools(turn)), False)

    @property
    def forbidden_calls(self) -> tuple[CallPattern, ...]:
        """See ``CallRule``."""
        turns = (each for each in self.expected if each is not None)
        return tuple(call for turn in turns for call in list_forbidden_calls(turn.forbidden))

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``; a turn that is missing, or one too many, fails."""
        turns = case.trace.turns
        check_tool_calls_recorded(turns)
        compared = [
            _compare(f"turn {number}", expected, (turn,))
            for number, (turn, expected) in enumerate(zip(turns, self.expected, strict=False), 1)
            if expected is not None
        ]
        mismatch = _describe_turn_mismatch(turns, len(self.expected))
        missing = sum(each is not None for each in self.expected[len(turns) :])
        scores = (*(each.score for each in compared), *(0.0,) * missing)
        misses = [
            f"{line}; {_describe_mean('this turn', each.score, scores)}"
            if len(scores) > 1
            else line
            for each in compared
            for line in _describe(each)
        ]
        if mismatch and missing and len(scores) > 1:
            mismatch = f"{mismatch}; {_describe_mean('a missing turn', 0.0, scores)}"
        are_right = all(each.score >= each.expected.threshold for each in compared)
        passes = are_right and not mismatch
        score = sum(scores) / len(scores) if scores else float(passes)
        # The score of right calls does not show why the check fails.
        is_reason = bool(mismatch) and are_right and not missing
        return CheckFinding(
            score=score,
            passes=passes,
            reason=mismatch if is_reason else None,
            misses=tuple(misses if is_reason or not mismatch else [*misses, mismatch]),
            details={"trajectories": [each.details for each in compared]},
        )


def _describe_mean(turn: str, score: float, scores: Sequence[float]) -> str:
    """Describe what the score of a turn is to that of the run, which is the mean."""
    mean = format_number(sum(scores) / len(scores), 2)
    return f"{turn} scores {format_number(score, 2)}, the mean of {len(scores)} turns is {mean}"


def _describe_turn_mismatch(turns: Sequence[Turn], expected: int) -> str:
    """Describe the turns that the eval case has too many or too few; empty if it has neither."""
    if len(turns) == expected:
        return ""
    counts = f"the eval case has {format_count(expected, 'turn')}, the recorded run {len(turns)}"
    if len(turns) < expected:
        return counts
    turn = turns[expected]
    calls = ", ".join(map(format_call, make_recorded_calls([turn]))) or "no tool call"
    asked = truncate.quote_truncated(turn.user_text, MAX_SHOWN)
    return f"{counts}: turn {expected + 1} is not expected ({asked}; {_shorten(calls)})"


def matches_calls(expected: ExpectedTrajectory, turn: Turn) -> bool:
    """Return whether the calls of a turn are the expected ones.

    Raises:
        EvaluatorError: what is compared was not recorded.
    """
    compared = _compare("turn", expected, (turn,))
    return compared.score >= expected.threshold


def _compare(title: str, expected: ExpectedTrajectory, turns: Sequence[Turn]) -> _ComparedCalls:
    calls = make_recorded_calls(turns)
    try:
        match = match_calls(expected, calls)
    except UnrecordedCallError as error:
        raise EvaluatorError(DESCRIPTIONS[error.what].format(error.tool)) from None
    return _ComparedCalls(title=title, expected=expected, calls=calls, match=match)


def describe_first_row(rows: Sequence[AlignedRow]) -> str:
    """Describe the first call that is not as expected, a forbidden one before others; or nothing.

    Like ``refund: amount 8.50 EUR → 85.00 EUR``, ``cancel(id="1") is missing`` or
    ``close(id="1") instead of refund(id="1")``.
    """
    wrong = [(at, row) for at, row in enumerate(rows) if row.mark not in ("=", ".")]
    if not wrong:
        return ""
    at, first = next((each for each in wrong if each[1].mark == "!"), wrong[0])
    following = rows[at + 1] if at + 1 < len(rows) else None
    if following is not None and {first.mark, following.mark} == {"-", "+"}:
        new, old = (first, following) if first.mark == "+" else (following, first)
        actual, expected = shorten_pair(new.actual, old.expected, MAX_CHANGES)
        return f"{actual} instead of {expected}"
    if first.mark == "~":
        return f"{first.changed} ({first.note})" if first.note else first.changed
    word = {"-": "is missing", "+": "is not expected", "!": f"is {first.note}"}
    return f"{_shorten(first.actual or first.expected)} {word.get(first.mark, first.note)}"


def _shorten(call: str) -> str:
    return truncate.short(call, MAX_CHANGES)


def _describe(compared: _ComparedCalls) -> Iterator[str]:
    match = compared.match
    if match.is_satisfied:
        return
    numbers = describe_numbers(match, compared.expected.score)
    parts = (describe_first_row(compared.rows), numbers)
    yield f"{compared.title}: {'; '.join(filter(None, parts))}"
    for line in describe_branches(match):
        yield f"{compared.title}: {line}"
