"""What a run differs in from its eval case or its baseline."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Final, Literal, TypeAlias

from msgspec import UNSET, Struct

from agentci._util.text import change, escape, truncate
from agentci._util.text.format import format_count
from agentci.evaluators.changed_facts import find_changed_facts
from agentci.model.result import BaselineTurn, CallContent, ExpectedCall, RunContent, TurnContent
from agentci.model.values import Json, replace
from agentci.recordings.tool_errors import format_error, parse_result
from agentci.reports.short_facts import (
    Quote,
    ShortFact,
    describe_answers,
    describe_changes,
    skip_equal_sentences,
    split_sentences,
)
from agentci.reports.tool_calls import (
    MAX_CHARACTERS,
    WIDTH,
    ToolCallRow,
    compare_calls,
    list_sides,
    rank_row,
)

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
        named: values around which the answers are cut.
    """

    turn: int
    reference: Reference
    texts: tuple[str, ...]
    rows: tuple[int, ...] = ()
    named: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The texts in lines of at most ``WIDTH`` characters, apart from their sign."""
        return tuple(_wrap(self.texts))

    def shorten(self, width: int) -> tuple[str, ...]:
        """Return one line for each text, of two sides from shortly before they differ."""
        found: list[str] = []
        for text in self.texts:
            if found and (found[-1][0], text[0]) == ("-", "+"):
                sides = found[-1][2:], text[2:]
                pair = (
                    change.shorten_pair(*sides, width)
                    if self.rows
                    else shorten_answers(*sides, width, self.named)
                )
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
        fact: what is most serious of this, in short.
        answer_fact: of the first answer that differs, in short; None if none does.
        more_calls, more_answers: how many more differ, in the turns that the run has.
        more_kinds: how these calls differ, unless calls that are shown differ in the same way.
        is_same: whether the run is as in the baseline, so that it is compared with the eval case.
    """

    missing_turns: tuple[int, ...]
    calls: tuple[TurnDifference, ...]
    fact: ShortFact
    answer_fact: ShortFact | None
    answer: TurnDifference | None
    more_calls: int
    more_answers: int
    more_kinds: str = ""
    is_same: bool = False

    def list_parts(
        self, *, with_calls: bool = True, is_short: bool = False
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the lines of tool calls by turn, then of the answer, each with its label."""
        parts = [(each, "tool calls") for each in self.calls if with_calls]
        parts += [(self.answer, "answer")] if self.answer is not None else []
        for part, what in parts:
            yield part.describe(what), part.shorten(WIDTH) if is_short else part.lines

    def format_head(self) -> str:
        """Format whether the run is as in the baseline, and which turns are missing; or nothing."""
        same = "the same calls and answers as in the baseline" if self.is_same else ""
        return "; ".join(filter(None, (same, format_missing_turns(self.missing_turns))))

    def format_more(self, *, with_calls: bool = True) -> str:
        """Format ``and 2 more differences: missing refund``; "" for none."""
        count = self.more_answers + (self.more_calls if with_calls else 0)
        if not count:
            return ""
        kinds = f": {self.more_kinds}" if with_calls and self.more_kinds else ""
        return f"and {format_count(count, 'more difference')}{kinds}"


def format_missing_turns(turns: Sequence[int]) -> str:
    """Format ``turn 2 is missing``; empty for none."""
    some = len(turns) > 1
    numbers = ", ".join(map(str, turns))
    return f"turn{'s' * some} {numbers} {'are' if some else 'is'} missing" if numbers else ""


def find_difference(
    content: RunContent, reference: Reference, named: tuple[str, ...] = ()
) -> RunDifference | None:
    """Find the calls and the first answer that differ from the eval case or the baseline.

    None if nothing differs, or if there is nothing to compare with. Of many calls, each kind is
    shown before a second one of any, the most serious first; what is left of ``MAX_CALL_LINES``
    shows further ones.

    Args:
        reference: what a turn is compared with if it has both. A run that is as in the baseline is
            compared with the eval case.
        named: values that checks name, which are shown of answers before others.
    """
    if reference == "expected" or all(turn.baseline is None for turn in content.turns):
        return _find_differences(content, "expected", named)
    if found := _find_differences(content, "baseline", named):
        return found
    found = _find_differences(content, "expected", named)
    return found and replace(found, is_same=True)


class _DifferingCall(Struct, frozen=True):
    """A call that differs: its place among those of its turn, and how it is shown.

    Attributes:
        instead_of: the turn in which it is made otherwise; 0 for none.
    """

    turn: int
    reference: Reference
    place: int
    row: ToolCallRow
    texts: tuple[str, ...]
    instead_of: int = 0

    @property
    def name(self) -> str:
        return (self.row.actual or self.row.expected).partition("(")[0]

    @property
    def kind(self) -> tuple[str, str, tuple[str, ...]]:
        """What calls that differ in the same way have in common."""
        paths = (_INDEX.sub("[]", each.path) for each in self.row.changes)
        return self.row.mark, self.name, tuple(dict.fromkeys(paths))


def _find_differences(
    content: RunContent, reference: Reference, named: tuple[str, ...]
) -> RunDifference | None:
    calls: list[_DifferingCall] = []
    answers: list[TurnDifference] = []
    facts: list[ShortFact] = []
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
            sides = tuple(_format_answers(*texts, named))
            answers.append(TurnDifference(turn=number, reference=own, texts=sides, named=named))
            facts = facts or [describe_answers(*texts, named)]
    if not (missing or calls or answers):
        return None
    calls = sorted(_join_moved(calls), key=lambda each: rank_row(each.row))
    shown = _choose_calls(calls)
    kinds = {each.kind for each in shown}
    same = (each for each in answers if shown and each.turn == shown[0].turn)
    answer = next(same, answers[0] if answers else None)
    turns = format_missing_turns(missing)
    return RunDifference(
        missing_turns=tuple(missing),
        calls=tuple(_group_by_turn(shown, content.turns)),
        fact=ShortFact(turns) if turns else _describe_calls(calls) if calls else facts[0],
        answer_fact=next(iter(facts), None),
        answer=answer,
        more_calls=len(calls) - len(shown),
        more_answers=len(answers) - (answer is not None),
        more_kinds=_name_kinds([each for each in calls if each.kind not in kinds]),
    )


def _join_moved(calls: Sequence[_DifferingCall]) -> Iterator[_DifferingCall]:
    """Yield calls, those that are made in another turn once, where they are made."""
    moved: dict[int, _DifferingCall] = {}
    for each in calls:
        if each.row.mark == "unexpected":
            missing = (
                one
                for one in calls
                if one.row.mark == "missing"
                and one.row.expected == each.row.actual
                and one.turn != each.turn
                and id(one) not in moved
            )
            if found := next(missing, None):
                moved[id(found)] = each
    turns = {id(moved[id(one)]): one.turn for one in calls if id(one) in moved}
    for each in calls:
        if turn := turns.get(id(each), 0):
            text = f"{each.row.actual} was called in turn {each.turn} instead of {turn}"
            yield replace(each, texts=(_format("!", text),), instead_of=turn)
        elif id(each) not in moved:
            yield each


def _describe_calls(calls: Sequence[_DifferingCall]) -> ShortFact:
    """Describe the most serious of the calls that differ.

    Args:
        calls: the most serious first.
    """
    first = calls[0]
    row = first.row
    if row.changes:
        return describe_changes(first.name, row.changes)
    if first.instead_of:
        turns = f"in turn {first.turn} instead of {first.instead_of}"
        return ShortFact(f"calls `{first.name}` {turns}", tool=first.name)
    if row.mark == "moved":
        return ShortFact(
            f"`{first.name}` was called {_format_order(row, first.reference)}", tool=first.name
        )
    if row.mark == "differs":
        return ShortFact(quotes=(Quote("", row.expected, row.actual),), tool=first.name)
    pairs = ("missing", "unexpected"), ("unexpected", "missing")
    other = next(
        (
            each.row
            for each in calls[1:]
            if each.turn == first.turn and (row.mark, each.row.mark) in pairs
        ),
        row,
    )
    before, after = row.expected or other.expected, row.actual or other.actual
    return ShortFact(quotes=(Quote("", before, after),), tool=first.name)


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


def _group_by_turn(
    calls: Sequence[_DifferingCall], turns: Sequence[TurnContent]
) -> Iterator[TurnDifference]:
    for number in dict.fromkeys(each.turn for each in calls):
        own = [each for each in calls if each.turn == number]
        texts = tuple(text for each in own for text in each.texts)
        yield TurnDifference(
            turn=number,
            reference=own[0].reference,
            texts=(*texts, *_format_error(turns[number - 1].calls)),
            rows=tuple(each.place for each in own),
        )


def _format_error(calls: Sequence[CallContent]) -> Iterator[str]:
    """Yield the first tool error, which may follow from other arguments."""
    for call in calls:
        if call.failed and call.result is not UNSET:
            yield _format("!", f"{call.name} failed: {format_error(parse_result(call.result))}")
            return


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
    differs = answer is not None and split_sentences(answer) != split_sentences(turn.answer)
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
        order = _format_order(row, reference)
        yield _format("!", f"{row.expected or row.actual} was called {order}")
    else:
        for sign, _, call in (line.partition(" ") for line in list_sides(row)):
            yield _format(sign, call)


def _format_order(row: ToolCallRow, reference: Reference) -> str:
    order = "later" if row.expected else "earlier"
    return f"{order} than {'expected' if reference == 'expected' else 'in the baseline'}"


def _format_answers(expected: str, actual: str | None, named: Sequence[str]) -> Iterator[str]:
    """Yield both answers from the first sentence on that differs."""
    if actual is None:
        yield _format("-", expected)
        yield "+ (no answer)"
        return
    old, new = skip_equal_sentences(expected, actual)
    for sign, text in zip("-+", shorten_answers(old, new, MAX_CHARACTERS, named), strict=True):
        if text:
            yield _format(sign, text)


def shorten_answers(one: str, other: str, limit: int, named: Sequence[str] = ()) -> tuple[str, str]:
    """Truncate two answers around the first fact that differs, else around the first word.

    Punctuation and the case of letters are no difference where words differ later.

    Args:
        limit: characters of each.
        named: values that come before facts, if only one of the answers has them.
    """
    pair = change.shorten_pair(one, other, limit)
    texts = one[:_MAX_COMPARED], other[:_MAX_COMPARED]
    if pair == (one, other) or not (places := _find_words(*texts)):
        return pair
    if around := next(filter(None, (_find_value(*texts, each) for each in named)), None):
        first, second = (
            change.cut_around(text, at, limit)
            for text, at in zip((one, other), around, strict=True)
        )
        return first, second
    facts = find_changed_facts(texts[1], texts[0])
    found = [own[0] if own else "" for own in (facts.lost, facts.new)]
    if any(found) and all(fact in part for fact, part in zip(found, pair, strict=True)):
        return pair
    first, second = (
        change.cut_around(text, text.find(fact) if fact and fact in text else at, limit)
        for text, fact, at in zip((one, other), found, places, strict=True)
    )
    return first, second


def _find_value(one: str, other: str, value: str) -> tuple[int, int] | None:
    """Find a value that one of the texts has, and the most similar sentence of the other one."""
    at, beside = (text.casefold().find(value.casefold()) for text in (one, other))
    if (at < 0) == (beside < 0):
        return None
    if at < 0:
        found = _find_value(other, one, value)
        return found and found[::-1]
    from rapidfuzz.fuzz import ratio  # noqa: PLC0415  (most runs compare no texts)

    own = (each for each in split_sentences(one) if value.casefold() in each.casefold())
    sentence = next(own, value)
    similar = max(split_sentences(other), key=lambda each: ratio(sentence, each))
    return at, other.find(similar)


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
