"""What a run does otherwise than in the baseline: answers, results of tools, printed lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET

from agentci._util.text import change, escape, json_text
from agentci._util.text.patterns import EPOCH
from agentci._util.text.truncate import short
from agentci.evaluators.changed_facts import (
    describe_found,
    find_changed_facts,
    find_changed_words,
)
from agentci.model.case import (
    RESULT_CHANGES,
    ChangedResult,
    ChangedText,
    ResultChange,
    RunChanges,
)
from agentci.model.values import Json
from agentci.recordings.printed_lines import describe_changed_lines, hide_volatile
from agentci.recordings.tool_errors import is_empty_result, looks_like_error, parse_result
from agentci.reports.changed_calls import find_changed_calls
from agentci.reports.changed_texts import MAX_SHOWN, show_facts, show_texts, show_words
from agentci.reports.compared_runs import (
    ComparedCall,
    ComparedRun,
    ComparedTurn,
    PairedTurns,
    pair_turns,
)

# Of a case.
MAX_RESULTS: Final = 5
# Of a turn, those whose results are compared.
MAX_CALLS: Final = 200
# Of texts that are compared word by word.
MAX_COMPARED: Final = 20_000

# Numbers that differ in each recording: times since 1970, and those of keys that name a time.
_EPOCH: Final = re.compile(EPOCH)
_TIME_KEY: Final = re.compile(
    r"(?:^|[a-z_.\]-])(?:time(?:stamp)?|ts|duration|elapsed|latency|took|uptime|_at|_ms|Ms|At)\Z"
)
# Ids of mixed letters and digits, such as ``call_5kVb81mGqQ2d``, and times with fractions.
_MIXED_ID: Final = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{16,}")
_TIMESTAMP: Final = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
)


def find_run_changes(run: ComparedRun, before: ComparedRun, *, with_lines: bool) -> RunChanges:
    """Find what a run does otherwise than in the baseline, as far as both are kept.

    Args:
        with_lines: whether to compare the lines that the command printed.
    """
    answers, old = run.recorded, before.recorded
    answer, facts = None, ""
    if before.level in _WITH_ANSWERS:
        answer, facts = _compare_answers(answers, old)
    printed = ""
    if with_lines and run.printed is not None and before.printed is not None:
        same = [each.answer for each in answers] == [each.answer for each in old]
        printed = describe_changed_lines(run.printed, before.printed, has_same_answers=same)
    pairs = [*pair_turns(run, before)] if before.level in _WITH_ANSWERS else []
    found = [*_compare_results(pairs)] if before.level == "full" else []
    calls = find_changed_calls(run, before, pairs)
    found.sort(key=lambda each: RESULT_CHANGES.index(each.kind))
    return RunChanges(
        answer=answer,
        facts=facts,
        results=tuple(found[:MAX_RESULTS]),
        more_results=max(0, len(found) - MAX_RESULTS),
        calls=calls.shown,
        more_calls=calls.more,
        reworded_calls=calls.reworded,
        printed=printed,
    )


_WITH_ANSWERS: Final = ("full", "without_results")


def _compare_answers(
    turns: Sequence[ComparedTurn], before: Sequence[ComparedTurn]
) -> tuple[ChangedText | None, str]:
    """Return the first answer with other facts, else the first that differs; and its facts."""
    first: tuple[ChangedText | None, str] = None, ""
    for index in range(max(len(turns), len(before))):
        now, then = (side[index].answer if index < len(side) else None for side in (turns, before))
        if index < len(before) and (left := before[index].cut.get("answer")):
            # Its end is not kept.
            is_as_long = len(now or "") == len(then or "") + left
            now = (now or "")[: len(then or "")] if is_as_long else now
        if now != then:
            found = _compare_texts(now or "", then or "")
            if found[1]:
                return found
            first = found if first[0] is None else first
    return first


def _compare_texts(now: str, then: str) -> tuple[ChangedText, str]:
    compared = now[:MAX_COMPARED], then[:MAX_COMPARED]
    facts = find_changed_facts(*compared)
    if str(facts):
        return show_facts(now, then, facts), str(facts)
    words = find_changed_words(*compared)
    return show_words(now, then, words), describe_found(words)


def _compare_results(pairs: Sequence[PairedTurns]) -> Iterator[ChangedResult]:
    for each in (pair for pair in pairs if pair.has_results):
        turn, before = each.turn, each.before
        for call, index in each.calls.equal[:MAX_CALLS]:
            cut = f"calls[{index}].result" in before.cut
            found = _compare_result(call, before.calls[index], is_cut=cut)
            if found and not (found.kind == "error" and _has_failed_as_often(call, turn, before)):
                yield found
        failing: dict[str, bool] = {}
        for call in (*(now for now, _ in each.calls.changed), *each.calls.added):
            if call.name not in failing:
                failing[call.name] = _fails_more_often(call.name, turn, before)
            if failing[call.name] and _has_failed(call):
                result = "" if call.result is UNSET else call.result
                yield _make_change(call, result, "", "error")


def _fails_more_often(tool: str, turn: ComparedTurn, before: ComparedTurn) -> bool:
    """Return whether a tool failed less often in the baseline, with any arguments."""
    now, then = ([each for each in side.calls if each.name == tool] for side in (turn, before))
    if any(each.error is None and each.result is UNSET for each in then):
        return False  # not known
    return sum(map(_has_failed, now)) > sum(map(_has_failed, then))


def _has_failed_as_often(call: ComparedCall, turn: ComparedTurn, before: ComparedTurn) -> bool:
    """Return whether calls like one failed as often in the baseline, perhaps in another order."""
    now, then = (
        sum(_has_failed(each) for each in side.calls if each.key == call.key)
        for side in (turn, before)
    )
    return 0 < now <= then


def _compare_result(
    call: ComparedCall, before: ComparedCall, *, is_cut: bool
) -> ChangedResult | None:
    """Compare two results of a call; None if they are equal but for ids and times, or unknown."""
    if call.result == before.result and call.error == before.error:
        return None
    now, then = ("" if each.result is UNSET else each.result for each in (call, before))
    if is_cut:
        now = _write(now)[: len(_write(then))]
    # A status that the baseline lacks is no change.
    newly_failed = bool(call.error) and before.error is False
    if now == then or UNSET in (call.result, before.result):
        return _make_change(call, now, then, "error") if newly_failed else None
    if _has_failed(call) and not _has_failed(before):
        return _make_change(call, now, then, "error")
    if is_empty_result(now) and not is_empty_result(then) and not _has_failed(before):
        return _make_change(call, now, then, "empty")
    return _find_other(call.name, parse_result(now), parse_result(then))


def _has_failed(call: ComparedCall) -> bool:
    return shows_failure(call.result, call.failed, call.error)


def shows_failure(result: Any, *flags: bool | None) -> bool:
    """Return whether a tool call failed: by one of the flags, or by an error as its result."""
    return any(flags) or (result is not UNSET and looks_like_error(result))


def _make_change(call: ComparedCall, now: Json, then: Json, kind: ResultChange) -> ChangedResult:
    # Readers of recordings have no result, or an empty text, as null.
    written = ("" if each is None else _write(each) for each in (then, now))
    texts = (short(" ".join(each.split()), MAX_SHOWN) for each in written)
    before, after = map(escape.flatten_line, texts)
    return ChangedResult(tool=call.name, before=before, after=after, kind=kind)


def _find_other(tool: str, now: Json, then: Json) -> ChangedResult | None:
    """Find the first part that differs, but for ids and times."""
    if isinstance(now, Mapping | list) and isinstance(then, Mapping | list):
        for each in change.list_changes(then, now):
            if _TIME_KEY.search(each.path) and _is_number(each.before) and _is_number(each.after):
                continue
            texts = _show_stable(each.after, each.before)
            if texts is not None:
                path = f"{each.path}: " if each.path else ""
                return ChangedResult(
                    tool=tool, before=f"{path}{texts.before}", after=f"{path}{texts.after}"
                )
        return None
    texts = _show_stable(_write(now), _write(then))
    if texts is None:
        return None
    # Text that takes the place of an object and begins like one was cut off, or badly written.
    is_broken = isinstance(then, Mapping | list) and str(now).lstrip()[:1] in ("{", "[")
    label = "invalid JSON: " if is_broken else ""
    return ChangedResult(tool=tool, before=texts.before, after=f"{label}{texts.after}")


def _show_stable(now: str, then: str) -> ChangedText | None:
    after, before = (_hide_unstable(each) for each in (now, then))
    return None if after == before else show_texts(after, before)


def _hide_unstable(text: str) -> str:
    for pattern in (_TIMESTAMP, _EPOCH, _MIXED_ID):
        text = pattern.sub("#", text)
    return hide_volatile(text)


def _is_number(text: str) -> bool:
    return bool(text) and text.strip('"').replace(".", "", 1).isdecimal()


def _write(value: Json) -> str:
    return value if isinstance(value, str) else json_text.dumps_readable(value)
