"""The first tool call and sentence in which a run differs from what is expected of it."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from textwrap import wrap
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count
from agentci.model.result import (
    BaselineTurn,
    CallContent,
    ExpectedCall,
    RunContent,
    TurnContent,
)
from agentci.model.values import Json, replace
from agentci.reports.tool_calls import ToolCallRow, compare_calls, list_sides

WIDTH: Final = 88
MAX_CHARACTERS: Final = 2 * WIDTH

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")


Reference: TypeAlias = Literal["expected", "baseline"]


class TurnDifference(Struct, frozen=True, kw_only=True):
    """What differs in the calls or in the answer of one turn.

    Lines have at most ``WIDTH`` characters, apart from their sign: ``-`` reference, ``+`` this run,
    ``!`` moved.

    Attributes:
        turn: counted from 1.
        lines: of a call, or of the answer from the first sentence on that differs.
        shown: how many calls they are of.
        total: how many calls differ in the turn.
    """

    turn: int
    reference: Reference
    lines: tuple[str, ...]
    shown: int = 1
    total: int = 1

    def describe(self, what: str) -> str:
        """Describe what the lines are of: ``answer of turn 1 (- expected, + actual)``."""
        new = "actual" if self.reference == "expected" else "this run"
        return f"{what} of turn {self.turn} (- {self.reference}, + {new})"


class FirstDifference(Struct, frozen=True, kw_only=True):
    """What differs first in a run, and how much more does.

    Attributes:
        missing_turns: turns that the run lacks, counted from 1.
        more_calls, more_answers: how many more differ, in the turns that the run has.
        is_same: whether the run is as in the baseline, so that it is compared with the eval case.
    """

    missing_turns: tuple[int, ...]
    calls: TurnDifference | None
    answer: TurnDifference | None
    more_calls: int
    more_answers: int
    is_same: bool = False

    def list_parts(self, *, with_calls: bool = True) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the tool calls, then the answer, each with its label; parts without lines not."""
        calls = self.calls if with_calls else None
        for name, part in (("tool calls", calls), ("answer", self.answer)):
            if part is not None:
                yield part.describe(name), part.lines

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
        """Format ``and 2 more differences``; "" for none."""
        return format_more_differences(self.more_answers + (self.more_calls if with_calls else 0))


def format_more_differences(count: int) -> str:
    """Format ``and 2 more differences``; "" for none."""
    return f"and {format_count(count, 'more difference')}" if count else ""


def find_first_difference(content: RunContent, reference: Reference) -> FirstDifference | None:
    """Find the first calls and the first answer that differ from the eval case or the baseline.

    None if nothing differs, or if there is nothing to compare with.

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


def _find_differences(content: RunContent, reference: Reference) -> FirstDifference | None:
    calls: list[TurnDifference] = []
    answers: list[TurnDifference] = []
    missing: list[int] = []
    for number, turn in enumerate(content.turns, start=1):
        own = _choose_reference(turn, reference)
        if turn.missing:
            # One that the baseline lacks, too, is no difference to it.
            missing += [number] if own == reference else []
            continue
        rows, texts = _compare_turn(turn, own)
        if rows:
            shown = rows[: 2 if _is_replacement(rows) else 1]
            calls.append(
                TurnDifference(
                    turn=number,
                    reference=own,
                    lines=tuple(line for row in shown for line in _format_row(row, own)),
                    shown=len(shown),
                    total=len(rows),
                )
            )
        if texts:
            lines = tuple(_format_answers(*texts))
            answers.append(TurnDifference(turn=number, reference=own, lines=lines))
    if not (missing or calls or answers):
        return None
    first = calls[0] if calls else None
    same = (each for each in answers if first is not None and each.turn == first.turn)
    answer = next(same, answers[0] if answers else None)
    return FirstDifference(
        missing_turns=tuple(missing),
        calls=first,
        answer=answer,
        more_calls=sum(each.total for each in calls) - (0 if first is None else first.shown),
        more_answers=len(answers) - (answer is not None),
    )


def _choose_reference(turn: TurnContent, wanted: Reference) -> Reference:
    """Choose what a turn has of the eval case and the baseline, and ``wanted`` if it has both."""
    has_expectation = turn.expected_calls is not None or turn.expected_answer is not None
    if turn.baseline is None:
        return "expected"
    return wanted if has_expectation else "baseline"


def _is_replacement(rows: Sequence[ToolCallRow]) -> bool:
    """Whether a call is missing and the next one is not expected, or the other way round."""
    sides = [(bool(row.expected), bool(row.actual)) for row in rows[:2] if row.mark != "moved"]
    return sorted(sides) == [(False, True), (True, False)]


def _compare_turn(
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
    yield from _format("-", " ".join(one[same:]))
    yield from _format("+", " ".join(other[same:]))


def _format(sign: str, text: str) -> Iterator[str]:
    shown = truncate.short(escape.flatten_line(text), MAX_CHARACTERS)
    yield from (f"{sign} {line}" for line in wrap(shown, WIDTH))
