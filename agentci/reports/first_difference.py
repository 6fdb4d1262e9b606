"""The first tool call and sentence in which a run differs from what is expected of it."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from textwrap import wrap
from typing import Final, Literal

from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count
from agentci.model.json import Json
from agentci.model.result import (
    BaselineTurn,
    CallContent,
    ExpectedCall,
    RunContent,
    TurnContent,
)
from agentci.model.values import replace
from agentci.reports.tool_calls import ToolCallRow, compare_calls, list_sides

WIDTH: Final = 88
MAX_CHARACTERS: Final = 2 * WIDTH

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")


class FirstDifference(Struct, frozen=True, kw_only=True):
    """What differs first in a run, and how much more does.

    Lines have at most ``WIDTH`` characters, apart from their sign: ``-`` reference, ``+`` this run,
    ``!`` moved.

    Attributes:
        turn: counted from 1.
        reference: what the run is compared with; the baseline without an eval case.
        calls: lines of the first call that differs in the turn; empty if none does.
        answer: lines of its answer from the first sentence on that differs.
        more_calls, more_answers: how many more differ, in all turns.
    """

    turn: int
    reference: Literal["expected", "baseline"]
    calls: tuple[str, ...]
    answer: tuple[str, ...]
    more_calls: int
    more_answers: int

    def list_parts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the tool calls, then the answer, each with its label; parts without lines not."""
        new = "actual" if self.reference == "expected" else "this run"
        for name, lines in (("tool calls", self.calls), ("answer", self.answer)):
            if lines:
                yield f"{name} of turn {self.turn} (- {self.reference}, + {new})", lines


def format_more_differences(count: int) -> str:
    """Format ``and 2 more differences``; "" for none."""
    return f"and {format_count(count, 'more difference')}" if count else ""


def find_first_difference(content: RunContent) -> FirstDifference | None:
    """Find the first turn that differs from the eval case, else from the baseline.

    None if nothing differs, or if there is nothing to compare with.
    """
    first: FirstDifference | None = None
    more_calls = more_answers = 0
    for number, turn in enumerate(content.turns, start=1):
        rows, answers = _compare_turn(turn)
        if first is None and (rows or answers):
            first = FirstDifference(
                turn=number,
                reference="expected" if _has_expectation(turn) else "baseline",
                calls=tuple(_format_row(rows[0])) if rows else (),
                answer=tuple(_format_answers(*answers)) if answers else (),
                more_calls=max(0, len(rows) - 1),
                more_answers=0,
            )
        elif first is not None:
            more_calls += len(rows)
            more_answers += answers is not None
    if first is None:
        return None
    return replace(first, more_calls=first.more_calls + more_calls, more_answers=more_answers)


def _has_expectation(turn: TurnContent) -> bool:
    return turn.expected_calls is not None or turn.expected_answer is not None


def _compare_turn(
    turn: TurnContent,
) -> tuple[Sequence[ToolCallRow], tuple[str, str | None] | None]:
    """Return the calls that differ, and both answers if they do."""
    before = turn.baseline
    if _has_expectation(turn):
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
    """List the calls that differ; a moved one once, where it is in either."""
    rows = compare_calls(_read_calls(expected), _read_calls(actual))
    found: list[ToolCallRow] = []
    moved: list[str] = []
    for row in rows:
        call = row.expected or row.actual
        if row.mark == "moved" and call in moved:
            moved.remove(call)
        elif row.mark:
            found.append(row)
            moved += [call] if row.mark == "moved" else []
    return found


def _read_calls(calls: Sequence[ExpectedCall | CallContent]) -> list[tuple[str, Json]]:
    return [(call.name, call.arguments) for call in calls]


def _format_row(row: ToolCallRow) -> Iterator[str]:
    if row.mark == "moved":
        order = "later" if row.expected else "earlier"
        yield from _format("!", f"{row.expected or row.actual} was called {order} than expected")
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
    yield from _format("-", " ".join(one[same:]))
    yield from _format("+", " ".join(other[same:]))


def _format(sign: str, text: str) -> Iterator[str]:
    shown = truncate.short(escape.flatten_line(text), MAX_CHARACTERS)
    yield from (f"{sign} {line}" for line in wrap(shown, WIDTH))
