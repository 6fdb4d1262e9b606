"""Text for one check: its outcome and its findings."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_criterion, format_score
from agentci._util.text.patterns import TEMPORARY_PATH, UUID
from agentci.model.case import CaseSummary, DialogueTurn
from agentci.model.result import CheckResult
from agentci.model.values import IdentityKey
from agentci.reports import tool_calls

MAX_TURNS = 5
MAX_REASON = 300


def format_headline(result: CheckResult) -> str:
    """Format the outcome of a check: the score and the threshold that it missed, or the reason.

    A reason that comes from a program may have several lines.
    """
    if result.status in ("errored", "skipped"):
        return result.reason or "no reason given"
    if result.status == "failed" and reaches_threshold(result) and (why := _find_reason(result)):
        return f"{why}; {_format_score(result)} alone would pass"
    if result.reason is not None and result.status == "passed":
        return f"{result.reason} ({_format_score(result)})"
    if result.status == "passed":
        return _format_score(result)
    reason = "" if result.reason is None else f"{result.reason}; "
    return f"{reason}{_format_score(result)}, {format_requirement(result)}"


def list_reasons(result: CheckResult) -> list[str]:
    """List the reason of a check, if it has one, and what it missed."""
    misses = () if result.judgement is None else result.judgement.misses
    return [*([result.reason] if result.reason else []), *misses]


def _find_reason(result: CheckResult) -> str:
    """Return the reason of a check, or else the first thing that it missed; empty without both."""
    return next(iter(list_reasons(result)), "")


_TRACEBACK: Final = re.compile(
    r"Traceback \(most recent call last\):\n.*\n(?P<exception>[\w.]+)(?:: .*)?\Z", re.DOTALL
)


def find_reason_key(result: CheckResult) -> str:
    """Find what checks with the same outcome for the same reason have in common.

    That is the reason without the values of its case, and without the message of a Python
    exception: it often quotes the case, while the frames above it are those of one line of the
    program.
    """
    reason = hide_case_values(format_headline(result), result.case)
    found = _TRACEBACK.search(reason)
    return reason if found is None else reason[: found.end("exception")]


def format_cause(result: CheckResult) -> str:
    """Format why a check did not pass in one sentence: no JSON, and no frames of a traceback.

    What an errored check says of its case is left out, as by ``find_reason_key``.
    """
    found = next(filter(None, _iterate_reasons(result)), result.status).strip()
    found = shorten_quotes(found, result)
    if result.status == "errored":
        found = hide_case_values(found, result.case)
    if traceback := _TRACEBACK.search(found):
        start = found[: traceback.start()]
        # A program may have printed the exception's message before.
        how = f"{start.partition(': ')[0]}: " if "\n" in start else start
        found = f"{how}{traceback['exception']}"
    elif found.startswith(("{", "[")):
        values = (each[1] for each in _JSON_TEXT.finditer(found) if not each[2])
        sentences = (each for each in values if " " in each)
        found = next(sentences, found)
    else:
        found = _JSON.sub("", found)
    first = next(iter(split_lines(found)), result.status)
    return truncate.short(escape.flatten_line(first), MAX_REASON)


# An object or a list of objects or texts, in which a value, not a key, may be a sentence.
_JSON: Final = re.compile(r"[:,]?\s+(?:\{\s*\"|\[\s*[\[{\"]).*", re.DOTALL)
_JSON_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?')


def join_error_lines(reason: str) -> str:
    """Join the first and the last line of an error; of a Python exception, only the last."""
    lines = split_lines(reason)
    found = _TRACEBACK.search(reason.rstrip())
    return truncate.join_first_and_last(lines if found is None else lines[-1:])


# Ids of spans and traces, UUIDs, temporary files, and words with the digits of an order number.
_CASE_VALUE: Final = re.compile(
    rf"(?<=span )[0-9a-f]{{16}}\b|\b[0-9a-f]{{32}}\b|{UUID}|{TEMPORARY_PATH}"
    r"|(?<![\w-])(?=[\w-]{0,40}\d{4})[\w-]+"
)
_WORD_WITH_DIGIT: Final = re.compile(r"(?<![\w-])(?=[\w-]{0,40}\d)[\w-]{3,}")
# An id without these may be a word of the reason.
_ID_CHARACTER: Final = re.compile(r"[\d_/.-]")


def hide_case_values(text: str, case: CaseSummary) -> str:
    """Replace what is another one in each case: its ids, its file, and the numbers of its user."""
    for each in _list_case_values(IdentityKey(case)):
        if each in text:
            text = _hide_word(text, each)
    return _CASE_VALUE.sub(truncate.ELLIPSIS, text)


# Each check of a case needs them, several times.
@lru_cache(maxsize=4096)
def _list_case_values(case: IdentityKey[CaseSummary]) -> Sequence[str]:
    """List the values of a case, the longest first."""
    own = case.value
    ids = (own.id, own.trace_id, own.eval_case_id or "", own.recording.file)
    questions = " ".join(turn.question for turn in own.dialogue)
    values = {
        each for each in (*ids, *_WORD_WITH_DIGIT.findall(questions)) if _ID_CHARACTER.search(each)
    }
    return sorted(values, key=lambda each: (-len(each), each))


def _hide_word(text: str, value: str) -> str:
    """Replace a value that is not part of a word; compiling a pattern for it would take longer."""
    shown, done, start = "", 0, text.find(value)
    while start >= 0:
        end = start + len(value)
        if _ends_word(text[start - 1 : start]) or _ends_word(text[end : end + 1]):
            start = text.find(value, start + 1)
            continue
        shown += f"{text[done:start]}{truncate.ELLIPSIS}"
        done, start = end, text.find(value, end)
    return f"{shown}{text[done:]}"


def _ends_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def format_requirement(result: CheckResult) -> str:
    """Format ``threshold 0.7``, or the criterion of an evaluator that has more than a threshold."""
    threshold, criterion = result.evaluator.threshold, result.evaluator.criterion
    if threshold is None or criterion != format_criterion(threshold):
        return f"required: {criterion}"
    return f"threshold {threshold:g}"


def format_outcome(result: CheckResult) -> str:
    """Format the headline, with a mark if the result is cached."""
    return f"{format_headline(result)} (cached)" if result.cached else format_headline(result)


def split_lines(text: str) -> tuple[str, ...]:
    """Split a program's output into lines without control characters or blank lines."""
    return tuple(line.rstrip() for line in escape.remove_control(text).split("\n") if line.strip())


def list_findings(result: CheckResult, *, quotes: bool = True) -> tuple[str, ...]:
    """List the findings of a check, one per line: misses, tool calls, turns, reasoning.

    Args:
        quotes: whether misses quote both sides, which would repeat the first difference.
    """
    judgement = result.judgement
    if judgement is None:
        return ()
    calls = tool_calls.format_diff(judgement.details)
    misses = tuple(f"- {miss}" for miss in judgement.misses)
    if not quotes:
        short = (shorten_quotes(miss, result) for miss in judgement.misses)
        misses = tuple(f"- {miss}" for miss in short if not miss.endswith(CALLS_DIFFER))
    return (
        *(misses if quotes else calls),
        *(calls if quotes else misses),
        *(f"- {turn}" for turn in low_scoring_turns(result)),
        *(judgement.reasoning or "").splitlines(),
    )


# What metrics with an expected answer or expected calls write about a turn.
_QUOTED_SIDES: Final = re.compile(r"^(turn \d+): expected .*$", re.DOTALL)
CALLS_DIFFER: Final = ": the tool calls differ"
_ANSWER_DIFFERS: Final = ": the answer differs"
# They say no more than a difference does.
NO_REASONS: Final = (CALLS_DIFFER, _ANSWER_DIFFERS)


def shorten_quotes(text: str, result: CheckResult) -> str:
    """Replace a built-in metric's quotes of a turn by a note that the calls or answers differ."""
    if result.evaluator.type != "builtin" or result.judgement is None:
        return text
    calls = tool_calls.find_unmatched_turns(result.judgement.details)
    return _QUOTED_SIDES.sub(rf"\1{CALLS_DIFFER if calls else _ANSWER_DIFFERS}", text)


def format_reason(result: CheckResult) -> str:
    """Format why a check has its outcome, on one line, without its score; "" if it is unknown.

    The reason of a check without a score comes first, then what it missed, the first tool call
    that differs, the turns with a low score, and the reasoning.
    """
    found = next(filter(None, _iterate_reasons(result)), "")
    if _TRACEBACK.search(found):
        found = truncate.join_first_and_last(split_lines(found))
    return truncate.short(escape.flatten_line(found), MAX_REASON)


def _iterate_reasons(result: CheckResult) -> Iterator[str]:
    judgement = result.judgement
    yield result.reason or ""
    if judgement is not None:
        yield from judgement.misses[:1]
        yield tool_calls.describe_worst_call(judgement.details)
        yield from (turn.partition(";")[0] for turn in low_scoring_turns(result)[:1])
        yield judgement.reasoning or ""


def low_scoring_turns(result: CheckResult) -> tuple[str, ...]:
    """List the turns that made a check fail, if the evaluator reported only turn scores.

    The result is empty if the evaluator reported misses or tool calls.
    """
    judgement = result.judgement
    if judgement is None or judgement.misses or tool_calls.find_unmatched_turns(judgement.details):
        return ()
    turns = dict(enumerate(result.case.dialogue, start=1))
    lines = [
        f"turn {turn}: score "
        f"{format_score(score, result.evaluator.threshold)}"
        f"{''.join(_format_turn(turns.get(turn)))}"
        for turn, score in _find_low_turns(result, judgement.turn_scores)
    ]
    return truncate.truncate_list(lines, MAX_TURNS)


def _find_low_turns(
    result: CheckResult, turn_scores: Sequence[float | None]
) -> list[tuple[int, float]]:
    """Return the turns below the threshold, or else those with the lowest score.

    The result is empty if the score reaches the threshold.
    """
    if reaches_threshold(result):
        return []
    scores = [(turn, score) for turn, score in enumerate(turn_scores, 1) if score is not None]
    least = min((score for _, score in scores), default=0.0)
    threshold = result.evaluator.threshold
    low = [each for each in scores if threshold is not None and each[1] < threshold]
    return low or [each for each in scores if each[1] <= least]


def _format_turn(turn: DialogueTurn | None) -> Iterator[str]:
    """Yield the question and the answer of a turn."""
    if turn is None:
        return
    if turn.question:
        yield f'; question "{turn.question}"'
    yield "; no answer" if turn.answer is None else f'; answer "{turn.answer}"'


def reaches_threshold(result: CheckResult) -> bool:
    """Whether the score reaches the threshold; a check may fail all the same, as for a turn."""
    score, threshold = result.score, result.evaluator.threshold
    return score is not None and threshold is not None and score >= threshold


def _format_score(result: CheckResult) -> str:
    score = result.score
    return (
        "no score" if score is None else f"score {format_score(score, result.evaluator.threshold)}"
    )
