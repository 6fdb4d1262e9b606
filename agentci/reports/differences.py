"""What a run differs in from its eval case or its baseline."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile, zip_longest
from textwrap import wrap
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text import change, escape, truncate
from agentci._util.text.format import format_count
from agentci.evaluators.changed_facts import find_changed_facts
from agentci.model.result import BaselineTurn, CallContent, ExpectedCall, RunContent, TurnContent
from agentci.model.values import Json, replace
from agentci.reports.tool_calls import (
    MAX_CHARACTERS,
    WIDTH,
    ToolCallRow,
    compare_calls,
    list_sides,
    rank_row,
)

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
Reference: TypeAlias = Literal["expected", "baseline"]
# Lines of a run's calls.
MAX_CALL_LINES: Final = 8
_MAX_NAME: Final = 40
_INDEX: Final = re.compile(r"\[\d+\]")


class TurnDifference(Struct, frozen=True, kw_only=True):
    """What differs in the calls or in the answer of one turn.

    Attributes:
        turn: counted from 1.
        texts: the calls, or the answers from the first sentence on that differs, each after its
            sign: ``-`` reference, ``+`` this run, ``!`` moved.
        rows: places of these calls among those of the turn that differ, from 0.
    """

    turn: int
    reference: Reference
    texts: tuple[str, ...]
    rows: tuple[int, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The texts in lines of at most ``WIDTH`` characters, apart from their sign."""
        return tuple(_wrap(self.texts))

    def shorten(self, width: int) -> tuple[str, ...]:
        """Return one line for each text, of two sides from shortly before they differ."""
        found: list[str] = []
        for text in self.texts:
            if found and (found[-1][0], text[0]) == ("-", "+"):
                shorten = change.shorten_pair if self.rows else shorten_answers
                pair = shorten(found[-1][2:], text[2:], width)
                found[-1:] = [f"- {pair[0]}", f"+ {pair[1]}"]
            else:
                found.append(text)
        return tuple(truncate.short(each, width + len("- ")) for each in found)

    def describe(self, what: str) -> str:
        """Describe what the lines show: ``answer of turn 1 (- expected, + actual)``."""
        new = "actual" if self.reference == "expected" else "this run"
        return f"{what} of turn {self.turn} (- {self.reference}, + {new})"


class RunDifference(Struct, frozen=True, kw_only=True):
    """What differs in a run, and how much more does.

    Attributes:
        missing_turns: turns that the run lacks, counted from 1.
        calls: by turn, the turn with the most serious first.
        first_change: the arguments of the first of them that differ: ``refund: amount 8.5 → 85``;
            empty for a missing, unexpected or moved one.
        more_calls, more_answers: how many more differ, in the turns that the run has.
        more_kinds: how these calls differ, unless calls that are shown differ in the same way.
        is_same: whether the run is as in the baseline, so that it is compared with the eval case.
    """

    missing_turns: tuple[int, ...]
    calls: tuple[TurnDifference, ...]
    first_change: str
    answer: TurnDifference | None
    more_calls: int
    more_answers: int
    more_kinds: str = ""
    is_same: bool = False

    @property
    def first(self) -> TurnDifference | None:
        """The first calls that differ, else the answers; None if only turns are missing."""
        return self.calls[0] if self.calls else self.answer

    def list_parts(
        self, *, with_calls: bool = True, is_short: bool = False
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the lines of tool calls by turn, then of the answer, each with its label."""
        parts = [(each, "tool calls") for each in self.calls if with_calls]
        parts += [(self.answer, "answer")] if self.answer is not None else []
        for part, what in parts:
            yield part.describe(what), part.shorten(WIDTH) if is_short else part.lines

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
    texts: tuple[str, ...]

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
            sides = tuple(_format_answers(*texts))
            answers.append(TurnDifference(turn=number, reference=own, texts=sides))
    if not (missing or calls or answers):
        return None
    calls.sort(key=lambda each: rank_row(each.row))
    shown = _choose_calls(calls)
    kinds = {each.kind for each in shown}
    same = (each for each in answers if shown and each.turn == shown[0].turn)
    answer = next(same, answers[0] if answers else None)
    return RunDifference(
        missing_turns=tuple(missing),
        calls=tuple(_group_by_turn(shown)),
        first_change=change.format_changes(shown[0].name, shown[0].row.changes)
        if shown and shown[0].row.changes
        else "",
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
        if each.texts not in (known.texts for known in chosen) and (
            not chosen or _count_lines((*chosen, each)) <= MAX_CALL_LINES
        ):
            chosen.append(each)
    return [each for each in calls if any(each is one for one in chosen)]


def _count_lines(calls: Sequence[_DifferingCall]) -> int:
    return sum(1 for call in calls for _ in _wrap(call.texts))


def _group_by_turn(calls: Sequence[_DifferingCall]) -> Iterator[TurnDifference]:
    for number in dict.fromkeys(each.turn for each in calls):
        own = [each for each in calls if each.turn == number]
        yield TurnDifference(
            turn=number,
            reference=own[0].reference,
            texts=tuple(text for each in own for text in each.texts),
            rows=tuple(each.place for each in own),
        )


def _name_kinds(calls: Sequence[_DifferingCall]) -> str:
    """Format ``missing refund; other arguments find_order (order_id), search (query, limit)``."""
    names: dict[str, dict[str, None]] = {}
    short = truncate.distinct([each.name for each in calls], _MAX_NAME)
    for each, name in zip(calls, short, strict=True):
        mark, _, paths = each.kind
        arguments = f" ({truncate.short(', '.join(paths), _MAX_NAME)})" if any(paths) else ""
        word = "other arguments" if mark == "differs" else mark
        names.setdefault(word, {})[f"{name}{arguments}"] = None
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
        yield _format("!", f"{row.expected or row.actual} was called {order} than {than}")
    else:
        for sign, _, call in (line.partition(" ") for line in list_sides(row)):
            yield _format(sign, call)


def _split(text: str | None) -> list[str]:
    """Split a text into sentences; none without a text."""
    return [] if text is None else _SENTENCE_END.split(text.strip())


def _format_answers(expected: str, actual: str | None) -> Iterator[str]:
    """Yield both answers from the first sentence on that differs."""
    if actual is None:
        yield _format("-", expected)
        yield "+ (no answer)"
        return
    one, other = _split(expected), _split(actual)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
    old, new = (escape.flatten_line(" ".join(side[same:])) for side in (one, other))
    for sign, text in zip("-+", shorten_answers(old, new, MAX_CHARACTERS), strict=True):
        if text:
            yield _format(sign, text)


def shorten_answers(one: str, other: str, limit: int) -> tuple[str, str]:
    """Truncate two answers around the first fact that differs, else around the first word.

    Punctuation and the case of letters are no difference where words differ later.
    """
    pair = change.shorten_pair(one, other, limit)
    texts = one[:_MAX_COMPARED], other[:_MAX_COMPARED]
    if pair == (one, other) or not (places := _find_words(*texts)):
        return pair
    facts = find_changed_facts(texts[1], texts[0])
    found = [own[0] if own else "" for own in (facts.lost, facts.new)]
    if any(found) and all(fact in part for fact, part in zip(found, pair, strict=True)):
        return pair
    first, second = (
        change.cut_around(text, text.find(fact) if fact and fact in text else at, limit)
        for text, fact, at in zip((one, other), found, places, strict=True)
    )
    return first, second


_MAX_COMPARED: Final = 20_000
_WORD: Final = re.compile(r"\w+(?:[.,:]\w+)*|[^\w\s.,:;!?]")


def _find_words(one: str, other: str) -> tuple[int, int] | None:
    """Find the first word that differs, in both texts; None if none does."""
    for first, second in zip_longest(_WORD.finditer(one), _WORD.finditer(other)):
        if first is None or second is None or first[0].casefold() != second[0].casefold():
            return (
                first.start() if first else len(one),
                second.start() if second else len(other),
            )
    return None


def _format(sign: str, text: str) -> str:
    return f"{sign} {truncate.short(escape.flatten_line(text), MAX_CHARACTERS)}"


def _wrap(texts: Sequence[str]) -> Iterator[str]:
    for each in texts:
        sign, _, text = each.partition(" ")
        yield from (f"{sign} {line}" for line in wrap(text, WIDTH))
