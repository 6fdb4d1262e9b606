"""Groups failed cases by cause, and finds the numbers in which they differ.

The cause of a case is a tool that newly fails, with its error, else what happened to its decisive
check: the evaluator, the kind of difference, and the tool and argument or the finding, without the
values that differ between cases.

The pattern of a case is what its failed checks say, with the calls and answers that differ from
those of the baseline, else from the expected ones. Cases of a cause with equal patterns fail in
the same way: only numbers, and values that the user gave, are left out of a pattern. Anything else
that is worse in one of the cases gives it a different pattern, and reports show the numbers of
each case.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Final, TypeAlias

from msgspec import UNSET, Struct

from agentci._util.text import escape, json_text, truncate
from agentci._util.text.change import (
    ARROW,
    MAX_SIDE,
    find_numbers,
    list_leaves,
    read_number,
)
from agentci.model.case import RunChanges
from agentci.model.result import BaselineTurn, CheckResult, ExpectedCall, RunContent, TurnContent
from agentci.recordings.tool_errors import format_error, parse_result
from agentci.reports.check_text import (
    find_reason_key,
    hide_case_values,
    low_scoring_turns,
    shorten_quotes,
)
from agentci.reports.contents import KEPT_LEVELS
from agentci.reports.differences import Reference, choose_reference, compare_turn
from agentci.reports.short_facts import skip_equal_sentences
from agentci.reports.tool_calls import (
    MAX_CALLS,
    ToolCallRow,
    find_unmatched_turns,
    format_call,
    has_forbidden_call,
    list_forbidden_tools,
)

# Beyond these limits, numbers are compared literally instead of being left out.
MAX_NUMBERS: Final = 40
MAX_DIFFERING: Final = 4
# Characters that are shown around a number.
_BEFORE: Final = 26
_AFTER: Final = 24
_MAX_NUMBER: Final = 24
_MAX_LABEL: Final = 60
# Each value that the user gave is one of these in a pattern; texts have no control characters.
_PLACEHOLDERS: Final = tuple(map(chr, range(1, 9)))
_SHOWN_PLACEHOLDERS: Final = dict.fromkeys(map(ord, _PLACEHOLDERS), truncate.ELLIPSIS)
_DIGIT: Final = re.compile(r"\d")
_DIGITS: Final = re.compile(r"\d+")
_QUOTED: Final = re.compile(
    r"""`[^`\n]+`|"[^"\n]*"|(?<!\w)'[^'\n]*'(?!\w)|\u201c[^\u201d]*\u201d"""
)
# Shorter words are those of grammar; an id with digits is a value.
_WORD: Final = re.compile(r"(?<![\w-])(?:[^\W\d_]{4,}|no|not)(?![\w-])", re.IGNORECASE)
# Limits on resources, which do not depend on calls or answers.
_RESOURCE_TYPES: Final = frozenset({"latency", "cost", "token_usage"})
_RESOURCE_CRITERIA: Final = re.compile(r"(time|time of the run|cost|(\w+ )*tokens|model calls) <= ")

# Checks of tool calls by what they require, and by what they say of a call.
_TOOL_ERRORS: Final = "tool errors <= "
_ABOUT_CALLS: Final = re.compile(r"`[^`]+` was (not )?called\b")
# How often tools may be called, and how long an answer may be.
_LIMIT_ON_COUNTS: Final = re.compile(
    r"([^\s,]+ )?tool calls <= |[^\s,]+ calls <= |(words|characters) [<>]= "
)


NO_CHANGES: Final = RunChanges()


class Phrase(Struct, frozen=True):
    """A text of a pattern.

    Attributes:
        label: what it is about; may be empty.
        pieces: the texts around its numbers, one more than these.
        common: these without the values that the user gave; equal in all cases with the pattern.
        is_expected: whether its numbers are those of an expected call, which is missing or moved.
    """

    label: str
    pieces: tuple[str, ...]
    common: tuple[str, ...]
    is_expected: bool = False


class ToolError(Struct, frozen=True):
    """A tool that failed, from which other failures of the case follow.

    Attributes:
        text: its error, on one line; empty if it is not known.
        changed: the path of its first argument that differs from the baseline; empty for none.
    """

    tool: str
    text: str
    changed: str = ""

    def __str__(self) -> str:
        """Format ``track_parcel` failed: TimeoutError``."""
        return f"`{self.tool}` failed{f': {self.text}' if self.text else ''}"


class FailurePattern(Struct, frozen=True, kw_only=True):
    """Why a case fails.

    Attributes:
        cause: equal for cases with the same cause.
        wording: the same, with the words of reasons that are also in the texts of the case; cases
            with the same wording have the same cause, too.
        decisive: the check that decides it.
        kind: how its calls and answers differ, without their values: ``refund not called``; empty
            if they do not, or if a tool error is the cause.
        tool_error: its cause, if that is one.
        key: equal for cases that fail in the same way.
        phrases: what differs, then what the checks say.
        numbers: of the phrases, in order.
        given: whether each of these is in a question or in the result of a tool.
        is_known: False if its checks depend on calls or answers that were not kept.
    """

    cause: tuple[str, ...]
    wording: tuple[str, ...]
    decisive: CheckResult
    kind: str
    tool_error: ToolError | None
    key: bytes
    phrases: tuple[Phrase, ...]
    numbers: tuple[str, ...]
    given: tuple[bool, ...]
    is_known: bool = True


def make_pattern(
    problems: Sequence[CheckResult],
    content: RunContent,
    is_new: Callable[[CheckResult], bool] = lambda _: True,
    *,
    failed_in_baseline: bool = False,
    changes: RunChanges = NO_CHANGES,
) -> FailurePattern | None:
    """Make the pattern of a case; None if none of its checks failed or errored.

    Args:
        problems: its failed and errored checks.
        is_new: whether a check did not fail in the baseline.
        failed_in_baseline: if so, its run is compared with what is expected, too.
        changes: what it does otherwise than in the baseline. Where only limits on resources fail,
            cases with other facts or results do not fail in the same way.
    """
    if not problems:
        return None
    builder = _PatternBuilder(_list_given_values(content), _find_given_numbers(content))
    # Resource limits and crashed programs have nothing to do with calls and answers.
    judged = [each for each in problems if each.status == "failed" and not is_resource_limit(each)]
    reads_more = not all(map(_lists_calls, judged))
    is_kept = content.level in KEPT_LEVELS
    if judged:
        _add_run(builder, content, reads_more=reads_more, failed_in_baseline=failed_in_baseline)
        if any(content.cut) or any(turn.cut for turn in content.turns):
            builder.add_to_key(problems[0].case.id)
    elif any(each.status == "failed" for each in problems):
        builder.add_to_key(*_list_changes(changes))
    for each in problems:
        builder.add_to_key(each.config, each.evaluator.name, each.status)
        for statement in _list_statements(each, quotes=not is_kept):
            if each.status == "errored":
                builder.add_to_key(statement)
            else:
                builder.add("", statement)
    decisive = _choose_decisive(problems, is_new)
    tool_error = _find_tool_error(decisive, content, changes, is_new=is_new(decisive))
    kind = "" if tool_error else _describe_kinds(decisive, content, is_new=is_new(decisive))
    return builder.make(
        cause=tuple(_make_cause(decisive, content, tool_error, kind)),
        wording=tuple(_make_cause(decisive, content, tool_error, kind, with_values=True)),
        decisive=decisive,
        kind=kind,
        tool_error=tool_error,
        is_known=is_kept or not reads_more,
    )


def _make_cause(
    decisive: CheckResult,
    content: RunContent,
    tool_error: ToolError | None,
    kind: str,
    *,
    with_values: bool = False,
) -> Iterator[str]:
    yield decisive.config
    if tool_error is None:
        yield from (decisive.evaluator.name, decisive.status, kind)
        yield from _describe_reasons(decisive, content, with_values=with_values)
    else:
        yield from ("", tool_error.tool, tool_error.changed)
        yield from find_numbers(hide_case_values(tool_error.text, decisive.case))[0]


def _list_changes(changes: RunChanges) -> Iterator[str]:
    yield from filter(None, [changes.facts])
    for each in changes.results:
        yield from (each.tool, each.before, each.after)


def _choose_decisive(
    problems: Sequence[CheckResult], is_new: Callable[[CheckResult], bool]
) -> CheckResult:
    """Choose a failed check before an errored one, then required, newly failing, the most serious.

    Not by score, which differs between cases with the same cause.
    """
    return min(
        problems,
        key=lambda each: (
            each.status != "failed",
            not each.evaluator.required,
            not is_new(each),
            rank_seriousness(each),
        ),
    )


def _find_tool_error(
    result: CheckResult, content: RunContent, changes: RunChanges, *, is_new: bool
) -> ToolError | None:
    """Find the first call that fails, and did not in the baseline, with no later one that succeeds.

    Args:
        result: the decisive check. If it is about such calls, it says whether any fails.
    """
    if result.status != "failed" or rank_seriousness(result) == FORBIDDEN:
        return None
    newly = {each.tool for each in changes.results if each.kind == "error"}
    is_about_errors = rank_seriousness(result) == TOOL_ERROR
    if not (is_about_errors or (newly and is_new)):
        return None
    for turn in content.turns:
        for place, call in enumerate(turn.calls):
            is_healed = any(
                each.name == call.name and not each.failed for each in turn.calls[place + 1 :]
            )
            if call.failed and not is_healed and (call.name in newly or not newly):
                text = "" if call.result is UNSET else format_error(parse_result(call.result))
                return ToolError(call.name, text, _find_changed_argument(turn, call.name))
    return None


def _find_changed_argument(turn: TurnContent, tool: str) -> str:
    rows, _ = compare_turn(turn, choose_reference(turn, "baseline"))
    found = (row.changes[0].path for row in rows if row.changes and _name_tool(row) == tool)
    return _DIGITS.sub("", next(found, ""))


def _describe_kinds(result: CheckResult, content: RunContent, *, is_new: bool) -> str:
    """Describe how calls and answers differ that a check may depend on, without their values."""
    if result.status == "errored" or is_resource_limit(result):
        return ""
    if rows := _list_checked_rows(result):
        return _describe_kind([each for each in rows if each.mark == "forbidden"] or rows)
    if result.judgement and (tools := list_forbidden_tools(result.judgement.details)):
        return f"forbidden {', '.join(tools)}"
    references: tuple[Reference, ...] = ("baseline", "expected") if is_new else ("expected",)
    found = ("; ".join(_list_kinds(content, reference)) for reference in references)
    return next(filter(None, found), "")


def _list_checked_rows(result: CheckResult) -> list[ToolCallRow]:
    """List the calls that a check says are not as expected."""
    listed = [] if result.judgement is None else find_unmatched_turns(result.judgement.details)
    return [row for turn in listed for row in turn.rows if row.mark]


def _describe_reasons(
    result: CheckResult, content: RunContent, *, with_values: bool
) -> Iterator[str]:
    """Yield what a check says besides calls that differ, without quotes and numbers.

    Args:
        with_values: whether to keep words that are in the texts of the case, too.
    """
    if result.status == "errored":
        yield find_reason_key(result)
        return
    judgement = result.judgement
    # A judge model writes another text about each case.
    is_judge = judgement is not None and bool(judgement.reasoning)
    if not (is_judge or is_resource_limit(result) or _list_checked_rows(result)):
        quotes = content.level not in KEPT_LEVELS
        misses = () if judgement is None else judgement.misses
        texts = [each if quotes else shorten_quotes(each, result) for each in misses]
        values = {} if with_values else _list_words(_list_texts(content))
        yield from dict.fromkeys(
            " ".join(each for each in _list_words([text]) if each not in values)
            for text in (result.reason or "", *texts)
        )


def _list_kinds(content: RunContent, reference: Reference) -> Iterator[str]:
    """Yield the kind of the first tool call that differs, and that of the first answer."""
    kinds: dict[bool, str] = {}
    for turn in content.turns:
        if turn.missing:
            kinds.setdefault(False, "a turn is missing")
            continue
        rows, answers = compare_turn(turn, choose_reference(turn, reference))
        if rows:
            kinds.setdefault(False, _describe_kind(rows))
        if answers is not None:
            kinds.setdefault(True, "no answer" if turn.answer is None else "the answer differs")
    yield from (kinds[each] for each in sorted(kinds))


def _describe_kind(rows: Sequence[ToolCallRow]) -> str:
    """Describe the first call that differs: ``refund called with another lines[].sum``.

    A missing one may have been replaced by an unexpected one.
    """
    found: dict[str, str] = {}
    for row in rows:
        found.setdefault(row.mark, _describe_call(row))
    pair = [found[each] for each in ("missing", "unexpected") if each in found]
    return "; ".join(pair) if rows[0].mark in ("missing", "unexpected") else found[rows[0].mark]


def _describe_call(row: ToolCallRow) -> str:
    name = _name_tool(row)
    if row.mark != "differs":
        return _KINDS[row.mark].format(name)
    path = _DIGITS.sub("", row.changes[0].path) if row.changes else ""
    return f"{name} called with {f'another {path}' if path else 'other arguments'}"


_KINDS: Final = {
    "missing": "{} not called",
    "unexpected": "unexpected call of {}",
    "moved": "{} called in another order",
    "forbidden": "forbidden call of {}",
    "allowed": "additional call of {}",
}


def _name_tool(row: ToolCallRow) -> str:
    return (row.actual or row.expected).partition("(")[0]


def _list_texts(content: RunContent) -> Iterator[str]:
    """Yield the texts of a case that evaluators quote."""
    for turn in content.turns:
        yield from (turn.user, turn.answer or "", turn.expected_answer or "")
        before = turn.baseline if isinstance(turn.baseline, BaselineTurn) else None
        if before is not None:
            yield before.answer or ""
        given = [each.arguments for each in turn.calls]
        given += [each.arguments for each in turn.expected_calls or ()]
        given += [each.arguments for each in (before.calls if before else ())]
        for arguments in given:
            yield from (str(value) for _, value in list_leaves(arguments, ""))


def _list_words(texts: Iterable[str]) -> Mapping[str, None]:
    """List the words of texts in order, without quoted ones, numbers and short words."""
    found = chain.from_iterable(_WORD.findall(_QUOTED.sub(" ", each)) for each in texts)
    return dict.fromkeys(each.casefold() for each in found)


def _list_statements(result: CheckResult, *, quotes: bool) -> Iterable[str]:
    """List all that a check says about why it failed, one line each.

    Args:
        quotes: as in ``list_findings``. What a metric says about calls is in their rows.
    """
    judgement = result.judgement
    texts = [find_reason_key(result) if result.status == "errored" else result.reason or ""]
    if judgement is not None:
        turns = find_unmatched_turns(judgement.details)
        titles = tuple(f"{turn.title}: " for turn in turns)
        texts += [
            miss if quotes else shorten_quotes(miss, result)
            for miss in judgement.misses
            if not (titles and miss.startswith(titles))
        ]
        for turn in turns:
            for row in turn.rows:
                texts += [f"{turn.title}: {text}" for text in _describe_checked_row(row)]
            texts += [f"{turn.title}: {turn.hidden} more calls"] if turn.hidden else []
        texts += [turn.partition(";")[0] for turn in low_scoring_turns(result)]
        texts.append(judgement.reasoning or "")
    return dict.fromkeys(filter(None, texts))


def _describe_checked_row(row: ToolCallRow) -> Iterator[str]:
    if row.changes:
        yield from (f"{label} {text}" for label, text, _ in _describe_row(row, ""))
    elif row.mark:
        yield f"{row.mark} {row.actual or row.expected} {row.note}"


# Ranks of failed checks: what other failures may follow from comes first.
FORBIDDEN: Final = 0
TOOL_ERROR: Final = 1
_CALLS: Final = 2
_RULE: Final = 3
_ANSWER: Final = 4
LIMIT: Final = 5


def rank_seriousness(result: CheckResult) -> int:
    """Rank a failed check: forbidden calls, errors of tools, other calls, answers, limits.

    Of answers, a rule says what is wrong, and comes before a score.
    """
    judgement, evaluator = result.judgement, result.evaluator
    is_check = evaluator.type == "check"
    if is_check and judgement is not None and has_forbidden_call(judgement.details):
        return FORBIDDEN
    if is_check and evaluator.criterion.startswith(_TOOL_ERRORS):
        return TOOL_ERROR
    if is_resource_limit(result) or (is_check and _LIMIT_ON_COUNTS.match(evaluator.criterion)):
        return LIMIT
    misses = judgement.misses if is_check and judgement is not None else ()
    is_about_calls = _lists_calls(result) or any(map(_ABOUT_CALLS.match, misses))
    if is_about_calls:
        return _CALLS
    return _RULE if is_check else _ANSWER


def is_resource_limit(result: CheckResult) -> bool:
    """Return whether a check is about time, cost or tokens, not about calls and answers."""
    evaluator = result.evaluator
    is_limit = evaluator.type == "check" and _RESOURCE_CRITERIA.match(evaluator.criterion)
    return evaluator.type in _RESOURCE_TYPES or bool(is_limit)


def _lists_calls(result: CheckResult) -> bool:
    """Whether the check is about tool calls, and lists those that differ."""
    return result.judgement is not None and bool(find_unmatched_turns(result.judgement.details))


def _add_run(
    builder: "_PatternBuilder", content: RunContent, *, reads_more: bool, failed_in_baseline: bool
) -> None:
    """Add the calls and answers that differ, or all if there is nothing that they differ from.

    Args:
        reads_more: whether a check may read more than the calls that it lists.
    """
    found = list(_list_differences(content, "baseline"))
    if failed_in_baseline or not found:
        found += _list_differences(content, "expected")
    if reads_more:
        several = len(content.turns) > 1
        for number, turn in enumerate(content.turns, start=1):
            prefix = f"turn {number}: " if several else ""
            if not found or _lacks_reference(turn.expected_answer, turn):
                found.append((f"{prefix}answer", turn.answer or "(no answer)", False))
            if not found or _lacks_reference(turn.expected_calls, turn):
                calls = (format_call(call.name, call.arguments) for call in turn.calls)
                found += [(f"{prefix}called", text, False) for text in calls]
    for label, text, is_expected in dict.fromkeys(found):
        builder.add(label, text, is_expected=is_expected)


def _lacks_reference(expected: object, turn: TurnContent) -> bool:
    return expected is None and turn.baseline is None


# Label, text, and whether it is an expected call.
_Difference: TypeAlias = tuple[str, str, bool]


def _list_differences(content: RunContent, reference: Reference) -> Iterator[_Difference]:
    """Yield each call and answer that differs."""
    several = len(content.turns) > 1
    for number, turn in enumerate(content.turns, start=1):
        prefix = f"turn {number}: " if several else ""
        own = choose_reference(turn, reference)
        if turn.missing:
            yield f"{prefix}missing", "", False
            continue
        rows, answers = compare_turn(turn, own)
        for row in rows:
            yield from _describe_row(row, prefix)
        yield from _list_further_calls(turn, own, prefix)
        if answers is not None:
            yield f"{prefix}answer", describe_texts(*answers), False


def _describe_row(row: ToolCallRow, prefix: str) -> Iterator[_Difference]:
    name = _name_tool(row)
    for each in row.changes:
        is_short = max(len(each.before), len(each.after)) <= MAX_SIDE
        yield (
            f"{prefix}{name}: {each.path}".rstrip(": "),
            f"{each.before} {ARROW} {each.after}"
            if is_short
            else describe_texts(each.before, each.after),
            False,
        )
    if not row.changes:
        text = f"{row.actual or row.expected} {_ROW_WORDS.get(row.mark, row.mark)}"
        yield prefix.rstrip(": "), text, row.mark in ("missing", "moved")


_ROW_WORDS: Final = {"missing": "is missing", "unexpected": "is not expected", "moved": "moved"}


def _list_further_calls(
    turn: TurnContent, reference: Reference, prefix: str
) -> Iterator[_Difference]:
    """Yield the calls of both sides that are too many to be compared."""
    sides = (_list_calls(turn, reference)[MAX_CALLS:], turn.calls[MAX_CALLS:])
    texts = [[format_call(call.name, call.arguments) for call in calls] for calls in sides]
    if texts[0] != texts[1]:
        both = f"{'; '.join(texts[0])} {ARROW} {'; '.join(texts[1])}"
        yield f"{prefix}further calls", both, False


def _list_calls(turn: TurnContent, reference: Reference) -> Sequence[ExpectedCall]:
    if reference == "expected":
        return turn.expected_calls or ()
    return turn.baseline.calls if isinstance(turn.baseline, BaselineTurn) else ()


def describe_texts(expected: str, actual: str | None) -> str:
    """Describe two texts by the words that differ: ``39.90 EUR? → 49.90 EUR.``.

    If fewer than half of the expected words of the sentences that differ remain, only the actual
    ones are shown.
    """
    if actual is None:
        return "(no answer)"
    old, new = expected.split(), actual.split()
    whole = len(skip_equal_sentences(expected, actual)[0].split())
    most = min(len(old), len(new))
    start = next((at for at in range(most) if old[at] != new[at]), most)
    end = next((at for at in range(most - start) if old[-1 - at] != new[-1 - at]), most - start)
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    if come and 2 * len(gone) > whole > 2 * _MIN_WORDS:
        return " ".join(come)
    return f"{' '.join(gone)} {ARROW} {' '.join(come)}".strip()


# Shorter texts are values, of which both sides are shown.
_MIN_WORDS: Final = 2


def _list_given_values(content: RunContent) -> list[str]:
    """List the values of expected arguments that the user gave.

    Numbers are not among them: each number is shown.
    """
    questions = " ".join(turn.user for turn in content.turns).casefold()
    found: dict[str, None] = {}
    for turn in content.turns:
        for call in (*(turn.expected_calls or ()), *_list_calls(turn, "baseline")):
            for _, value in list_leaves(call.arguments, ""):
                text = escape.flatten_line(value) if isinstance(value, str) else ""
                if len(text) > 1 and text.casefold() in questions and not _DIGIT.search(text):
                    found[text.casefold()] = None
    return list(found)[: len(_PLACEHOLDERS)]


def _find_given_numbers(content: RunContent) -> frozenset[str]:
    """Find the numbers that users and tools gave, from which ids and amounts are copied.

    Not those of arguments that a tool only repeats.
    """
    found = {each for turn in content.turns for each in find_numbers(turn.user)[1]}
    others: set[str] = set()
    for call in chain.from_iterable(turn.calls for turn in content.turns):
        sides = (call.arguments, None if call.result is UNSET else call.result)
        texts = (json_text.dumps_readable(each)[:_MAX_RESULT] for each in sides)
        arguments, results = (find_numbers(text)[1] for text in texts)
        others.update(each for each in arguments if each not in found)
        found.update(each for each in results if each not in others)
    return frozenset(found)


# Characters of a result that are read.
_MAX_RESULT: Final = 10_000


class _PatternBuilder:
    def __init__(self, given: Sequence[str], numbers: frozenset[str]) -> None:
        self._given_numbers = numbers
        self._given = dict(zip(given, _PLACEHOLDERS, strict=False))
        names = "|".join(map(re.escape, sorted(given, key=len, reverse=True)))
        self._names = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE) if given else None
        self._key: list[str] = []
        self._phrases: list[Phrase] = []
        self._numbers: list[str] = []

    def add_to_key(self, *texts: str) -> None:
        """Add texts that distinguish the pattern but are not shown."""
        self._key += texts

    def add(self, label: str, text: str, *, is_expected: bool = False) -> None:
        """Add a phrase."""
        label, text = escape.flatten_line(label), escape.flatten_line(text)
        pieces, numbers = find_numbers(text)
        if len(self._numbers) + len(numbers) > MAX_NUMBERS:
            pieces, numbers = [text], []
        masked = tuple(map(self._mask, pieces))
        self._key += ["\n", label, *masked]
        common = tuple(piece.translate(_SHOWN_PLACEHOLDERS) for piece in masked)
        self._phrases.append(Phrase(label, tuple(pieces), common, is_expected))
        self._numbers += numbers

    def make(
        self,
        *,
        cause: tuple[str, ...],
        wording: tuple[str, ...],
        decisive: CheckResult,
        kind: str,
        tool_error: ToolError | None,
        is_known: bool,
    ) -> FailurePattern:
        written = "\0".join(self._key).encode("utf-8", "surrogatepass")
        return FailurePattern(
            cause=cause,
            wording=wording,
            decisive=decisive,
            kind=kind,
            tool_error=tool_error,
            key=blake2b(written, digest_size=16).digest(),
            phrases=tuple(self._phrases),
            numbers=tuple(self._numbers),
            given=tuple(each in self._given_numbers for each in self._numbers),
            is_known=is_known,
        )

    def _mask(self, text: str) -> str:
        if self._names is None:
            return text
        return self._names.sub(lambda found: self._given.get(found[0].casefold(), found[0]), text)


def count_differing(numbers: Sequence[tuple[str, ...]], given: Sequence[tuple[bool, ...]]) -> int:
    """Count the numbers that differ between cases with equal patterns; equal ones count once.

    Args:
        given: as in ``FailurePattern``; those that were given in all cases do not count.
    """
    columns = zip(zip(*numbers, strict=True), zip(*given, strict=True), strict=True)
    return len({each for each, known in columns if len(set(each)) > 1 and not all(known)})


class NumberNotes:
    """Describes how cases with equal patterns differ from the first of them.

    Numbers that the users gave, and that are expected, are no difference: "4705" of ``find_order``,
    which is missing. Neither are those that users or tools gave in all cases.

    Args:
        numbers, given: of all of these cases.
        phrases: of the first.
        questions: of each case.
    """

    def __init__(
        self,
        numbers: Sequence[tuple[str, ...]],
        given: Sequence[tuple[bool, ...]],
        phrases: Sequence[Phrase],
        questions: Sequence[str],
    ) -> None:
        self._numbers = numbers
        columns = list(zip(*numbers, strict=True))
        asked = [set(find_numbers(each)[1]) for each in questions]
        differing: list[tuple[int, int, list[int]]] = []
        covered = {
            column
            for column, known in zip(columns, zip(*given, strict=True), strict=True)
            if all(known)
        }
        at = 0
        for index, phrase in enumerate(phrases):
            size = len(phrase.pieces) - 1
            own = [n for n in range(size) if len(set(columns[at + n])) > 1]
            differing.append((index, at, own))
            if phrase.is_expected:
                covered.update(
                    column
                    for column in (columns[at + n] for n in own)
                    if all(each in known for each, known in zip(column, asked, strict=True))
                )
            at += size
        self._chosen: list[tuple[int, int, list[int]]] = []
        for index, at, own in differing:
            if not covered.issuperset(columns[at + n] for n in own):
                covered.update(columns[at + n] for n in own)
                self._chosen.append((index, at, own))

    def describe(self, place: int, phrases: Sequence[Phrase]) -> str:
        """Describe the case at ``place``; empty if its numbers are those of the first.

        Args:
            phrases: of this case.
        """
        numbers = self._numbers[place]
        if numbers == self._numbers[0]:
            return ""
        return self._write([(each.label, each.pieces) for each in phrases], numbers)

    def describe_rest(self, start: int, phrases: Sequence[Phrase]) -> str:
        """Describe the cases from ``start`` on by the ranges of their numbers; or nothing.

        Args:
            phrases: of the first case.
        """
        rest = self._numbers[start:]
        if all(each == self._numbers[0] for each in rest):
            return ""
        # What differs within an id or a quoted text is no amount: a range says nothing about it.
        columns = list(zip(*rest, strict=True))
        ids = {each for each, is_id in zip(columns, _list_ids(phrases), strict=True) if is_id}
        shown = tuple(
            truncate.ELLIPSIS if each in ids and len({*each}) > 1 else format_range(each)
            for each in columns
        )
        return self._write([(each.label, each.common) for each in phrases], shown)

    def _write(self, texts: Sequence[tuple[str, tuple[str, ...]]], numbers: Sequence[str]) -> str:
        shown: list[str] = []
        for index, at, differing in self._chosen:
            label, pieces = texts[index]
            text = _excerpt(pieces, numbers[at : at + len(pieces) - 1], differing)
            shown.append(f"{truncate.end(label, _MAX_LABEL)} {text}".lstrip())
        return "; ".join(shown)


def _list_ids(phrases: Sequence[Phrase]) -> Iterator[bool]:
    """Yield for each number whether it is part of an id or of a quoted text."""
    for phrase in phrases:
        quotes = 0
        for before, after in itertools.pairwise(phrase.pieces):
            quotes += before.count('"')
            yield bool(quotes % 2 or _ID_BEFORE.search(before) or _ID_AFTER.match(after))


_ID_BEFORE: Final = re.compile(r"[\w'#/-]\Z")
_ID_AFTER: Final = re.compile(r"[\w'#/-]")


def format_range(numbers: Iterable[str]) -> str:
    """Format the smallest and the largest number: ``49.90 to 9000``."""
    ordered = sorted(set(numbers), key=lambda each: (read_number(each), each))
    ends = [truncate.short(each, _MAX_NUMBER) for each in (ordered[0], ordered[-1])]
    return " to ".join(dict.fromkeys(ends))


def find_largest(numbers: Sequence[tuple[str, ...]], questions: Sequence[str]) -> Iterator[float]:
    """Yield the largest number of each case among those that differ; 0 if there is none.

    Args:
        numbers: of cases with equal patterns.
        questions: of each case; numbers of its question, such as ids, do not count.
    """
    differing = [n for n, each in enumerate(zip(*numbers, strict=True)) if len(set(each)) > 1]
    for own, question in zip(numbers, questions, strict=True):
        given = find_numbers(question)[1] if differing else []
        values = (read_number(own[n]) for n in differing if own[n] not in given)
        yield max(values, default=0.0)


def _excerpt(pieces: Sequence[str], numbers: Sequence[str], differing: Sequence[int]) -> str:
    """Return what stands around the numbers that differ."""
    text, spans = pieces[0], list[tuple[int, int]]()
    for index, (number, piece) in enumerate(zip(numbers, pieces[1:], strict=True)):
        start = len(text)
        text += truncate.short(number, 2 * _MAX_NUMBER)
        if index in differing:
            spans.append((start, len(text)))
        text += piece
    shown, done = "", 0
    for start, end in spans:
        left, right = _find_edges(text, start, end)
        if left > done:
            shown += truncate.ELLIPSIS if not shown else f"{truncate.ELLIPSIS} "
        else:
            left = done
        shown += text[left : max(left, right)]
        done = max(done, right)
    return shown.strip() + (truncate.ELLIPSIS if done < len(text) else "")


def _find_edges(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the words around a number begin and end."""
    left, right = max(0, start - _BEFORE), min(len(text), end + _AFTER)
    if left:
        space = text.find(" ", left, start)
        left = left if space < 0 else space + 1
    if right < len(text):
        space = text.rfind(" ", end, right)
        right = right if space < 0 else space
    return left, right
