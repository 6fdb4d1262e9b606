"""The first tool call and sentence in which a run differs from what is expected of it."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from textwrap import wrap
from typing import Final

from agentci._util.text import escape, truncate
from agentci.model.json import Json
from agentci.model.result import (
    BaselineTurn,
    CallContent,
    ExpectedCall,
    RunContent,
    TurnContent,
)
from agentci.reports.tool_calls import compare_calls, list_sides

WIDTH: Final = 88
MAX_CHARACTERS: Final = 2 * WIDTH

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")


def format_first_difference(content: RunContent, *, names_sides: bool = False) -> tuple[str, ...]:
    """Format the first differing turn as a diff: ``-`` expected, ``+`` actual, ``!`` moved.

    Without an eval case, the turn of the baseline is what is expected. Lines have at most ``WIDTH``
    characters, apart from their sign; there are none if nothing differs.

    Args:
        names_sides: start with two lines that name the sides, as in files of differences.
    """
    for turn in content.turns:
        if lines := tuple(_compare_turn(turn)):
            side = "expected" if _has_expectation(turn) else "baseline"
            return (f"--- {side}", "+++ this run", *lines) if names_sides else lines
    return ()


def _has_expectation(turn: TurnContent) -> bool:
    return turn.expected_calls is not None or turn.expected_answer is not None


def _compare_turn(turn: TurnContent) -> Iterator[str]:
    before = turn.baseline
    if _has_expectation(turn):
        calls, answer = turn.expected_calls, turn.expected_answer
    elif isinstance(before, BaselineTurn):
        calls, answer = before.calls, before.answer
    else:
        return
    if calls is not None:
        yield from _compare_calls(calls, turn.calls)
    if answer is not None:
        yield from _compare_answers(answer, turn.answer)


def _compare_calls(
    expected: Sequence[ExpectedCall], actual: Sequence[CallContent]
) -> Iterator[str]:
    rows = compare_calls(_read_calls(expected), _read_calls(actual))
    row = next((each for each in rows if each.mark), None)
    if row is None:
        return
    if row.mark == "moved":
        order = "later" if row.expected else "earlier"
        yield from _format("!", f"{row.expected or row.actual} was called {order} than expected")
    else:
        for sign, _, call in (line.partition(" ") for line in list_sides(row)):
            yield from _format(sign, call)


def _read_calls(calls: Sequence[ExpectedCall | CallContent]) -> list[tuple[str, Json]]:
    return [(call.name, call.arguments) for call in calls]


def _compare_answers(expected: str, actual: str | None) -> Iterator[str]:
    """Yield both answers from the first sentence on that differs."""
    if actual is None:
        yield from _format("-", expected)
        yield "+ (no answer)"
        return
    one, other = (_SENTENCE_END.split(text.strip()) for text in (expected, actual))
    if one != other:
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
        yield from _format("-", " ".join(one[same:]))
        yield from _format("+", " ".join(other[same:]))


def _format(sign: str, text: str) -> Iterator[str]:
    shown = truncate.short(escape.flatten_line(text), MAX_CHARACTERS)
    yield from (f"{sign} {line}" for line in wrap(shown, WIDTH))
