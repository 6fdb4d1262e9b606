"""What a run does otherwise than in the baseline: answers, results of tools, printed lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentci._util.text import change, escape, json_text
from agentci._util.text.truncate import short
from agentci.evaluators.changed_facts import (
    ChangedFacts,
    describe_changed_words,
    find_changed_facts,
)
from agentci.model.case import (
    RESULT_CHANGES,
    ChangedResult,
    ChangedText,
    ResultChange,
    RunChanges,
)
from agentci.model.result import ContentLevel
from agentci.model.values import Json
from agentci.recordings.printed_lines import describe_changed_lines, hide_volatile, show_difference
from agentci.recordings.tool_errors import is_empty_result, looks_like_error, parse_result
from agentci.reports.tool_calls import align

# Of those of a case; and the characters that are shown of each side.
MAX_RESULTS: Final = 5
MAX_SHOWN: Final = 60
# Of these, those before what differs.
MAX_COMMON: Final = 20
# Of a turn, as many as the page aligns.
MAX_CALLS: Final = 200
# Of texts that are compared word by word.
MAX_COMPARED: Final = 20_000

# Numbers that differ in each recording: times since 1970, and those of keys that name a time.
_EPOCH: Final = re.compile(r"\b1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b")
_TIME_KEY: Final = re.compile(
    r"(?:^|[a-z_.\]-])(?:time(?:stamp)?|ts|duration|elapsed|latency|took|uptime|_at|_ms|Ms|At)\Z"
)
# Ids of mixed letters and digits, such as ``call_5kVb81mGqQ2d``, and times with fractions.
_MIXED_ID: Final = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{16,}")
_TIMESTAMP: Final = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
)


class _Call(Struct):
    name: str
    arguments: Any = None
    result: Any | UnsetType = UNSET
    error: bool | None = None
    failed: bool = False

    @property
    def key(self) -> tuple[str, Any]:
        return self.name, self.arguments


class _Turn(Struct):
    answer: str | None = None
    calls: tuple[_Call, ...] = ()
    missing: bool = False
    cut: Mapping[str, int] = {}


class _Subagent(Struct):
    turns: tuple[_Turn, ...] = ()
    name: str | None = None


class ComparedRun(Struct):
    """What is read of a ``RunContent`` to compare it."""

    turns: tuple[_Turn, ...] = ()
    subagents: tuple[_Subagent, ...] = ()
    level: ContentLevel = "full"
    printed: str | None = None

    @property
    def recorded(self) -> list[_Turn]:
        """The turns that the run has."""
        return [turn for turn in self.turns if not turn.missing]


_Pair: TypeAlias = tuple[_Turn, _Turn]


def read_run(data: bytes) -> ComparedRun:
    """Read what is compared of an encoded ``RunContent``."""
    return _DECODER.decode(data)


_DECODER: Final = msgspec.json.Decoder(ComparedRun)


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
    found = [*_compare_results(run, before)] if before.level == "full" else []
    found.sort(key=lambda each: RESULT_CHANGES.index(each.kind))
    return RunChanges(
        answer=answer,
        facts=facts,
        results=tuple(found[:MAX_RESULTS]),
        more_results=max(0, len(found) - MAX_RESULTS),
        printed=printed,
    )


_WITH_ANSWERS: Final = ("full", "without_results")


def _compare_answers(
    turns: Sequence[_Turn], before: Sequence[_Turn]
) -> tuple[ChangedText | None, str]:
    """Return the first answer that differs, and the facts in which it does."""
    for index in range(max(len(turns), len(before))):
        now, then = (side[index].answer if index < len(side) else None for side in (turns, before))
        if index < len(before) and (left := before[index].cut.get("answer")):
            # Its end is not kept.
            is_as_long = len(now or "") == len(then or "") + left
            now = (now or "")[: len(then or "")] if is_as_long else now
        if now != then:
            compared = (now or "")[:MAX_COMPARED], (then or "")[:MAX_COMPARED]
            facts = find_changed_facts(*compared)
            shown = _show_facts(now or "", then or "", facts)
            return shown, str(facts) or describe_changed_words(*compared)
    return None, ""


def _show_facts(now: str, then: str, facts: ChangedFacts) -> ChangedText:
    """Show the first fact in which two texts differ, unless the first difference shows it."""
    shown = _show_texts(now, then)
    if facts.first_value is not None:
        after, before = (_cut(each, 0) for each in facts.first_value)
        return ChangedText(before=before, after=after)
    sides = []
    for text, own, part in (
        (then, facts.lost, shown.before),
        (now, facts.new, shown.after),
    ):
        flat = " ".join(text.split())
        at = flat.find(own[0]) if own else -1
        is_visible = at < 0 or own[0] in part
        sides.append(part if is_visible else _cut(flat, at))
    return ChangedText(before=sides[0], after=sides[1])


def _cut(text: str, at: int) -> str:
    """Cut out the part of a text around an index."""
    start = text.rfind(" ", 0, max(0, at - MAX_COMMON)) + 1
    omitted = "\N{HORIZONTAL ELLIPSIS}" if start else ""
    return escape.flatten_line(short(f"{omitted}{text[start:]}", MAX_SHOWN))


def _show_texts(now: str, then: str) -> ChangedText:
    after, before = show_difference(" ".join(now.split()), " ".join(then.split()), MAX_SHOWN)
    return ChangedText(before=escape.flatten_line(before), after=escape.flatten_line(after))


def _compare_results(run: ComparedRun, before: ComparedRun) -> Iterator[ChangedResult]:
    for now, then in _pair_turns(run, before):
        for call, index in _pair_calls(now.calls, then.calls):
            if index is None:
                if _fails_newly(call, now, then):
                    result = "" if call.result is UNSET else call.result
                    yield _make_change(call, result, "", "error")
                continue
            cut = f"calls[{index}].result" in then.cut
            found = _compare_result(call, then.calls[index], is_cut=cut)
            if found and not (found.kind == "error" and _has_failed_as_often(call, now, then)):
                yield found


def _has_failed_as_often(call: _Call, turn: _Turn, before: _Turn) -> bool:
    """Return whether calls like one failed as often in the baseline, perhaps in another order."""
    now, then = (
        sum(_has_failed(each) for each in side.calls if each.key == call.key)
        for side in (turn, before)
    )
    return 0 < now <= then


def _fails_newly(call: _Call, turn: _Turn, before: _Turn) -> bool:
    """Return whether a call failed whose tool, with any arguments, failed less often before."""
    now, then = ([each for each in side.calls if each.name == call.name] for side in (turn, before))
    if not _has_failed(call) or any(e.error is None and e.result is UNSET for e in then):
        return False
    return sum(map(_has_failed, now)) > sum(map(_has_failed, then))


def _pair_turns(run: ComparedRun, before: ComparedRun) -> Iterator[_Pair]:
    """Pair turns by their order, also those of sub-agents if both runs started the same."""
    yield from zip(run.recorded, before.recorded, strict=False)
    if [each.name for each in run.subagents] == [each.name for each in before.subagents]:
        for own, other in zip(run.subagents, before.subagents, strict=True):
            yield from zip(own.turns, other.turns, strict=False)


def _pair_calls(
    calls: Sequence[_Call], before: Sequence[_Call]
) -> Iterator[tuple[_Call, int | None]]:
    """Pair each call with the index of that with the same arguments, as the page does.

    None for a call that the baseline does not have.
    """
    keys, old = ([each.key for each in side[:MAX_CALLS]] for side in (calls, before))
    if keys == old:
        yield from zip(calls, range(len(old)), strict=False)
        return
    left: list[int] = []
    right: list[int] = []
    for then, now in align(range(len(old)), range(len(keys)), lambda i, j: _rate(old[i], keys[j])):
        if then is not None and now is not None:
            yield calls[now], then if old[then] == keys[now] else None
        elif then is None and now is not None:
            right.append(now)
        elif then is not None and now is None:
            left.append(then)
    # These have another place than in the baseline.
    for now in right:
        then = next((each for each in left if old[each] == keys[now]), None)
        if then is not None:
            left.remove(then)
        yield calls[now], then


def _rate(then: tuple[str, Any], now: tuple[str, Any]) -> int:
    if then[0] != now[0]:
        return 0
    return 3 if then == now else 1


def _compare_result(call: _Call, before: _Call, *, is_cut: bool) -> ChangedResult | None:
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


def _has_failed(call: _Call) -> bool:
    return shows_failure(call.result, call.failed, call.error)


def shows_failure(result: Any, *flags: bool | None) -> bool:
    """Return whether a tool call failed: by one of the flags, or by an error as its result."""
    return any(flags) or (result is not UNSET and looks_like_error(result))


def _make_change(call: _Call, now: Json, then: Json, kind: ResultChange) -> ChangedResult:
    texts = (short(" ".join(_write(each).split()), MAX_SHOWN) for each in (then, now))
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
    return ChangedResult(tool=tool, before=texts.before, after=texts.after)


def _show_stable(now: str, then: str) -> ChangedText | None:
    after, before = (_hide_unstable(each) for each in (now, then))
    return None if after == before else _show_texts(after, before)


def _hide_unstable(text: str) -> str:
    for pattern in (_TIMESTAMP, _EPOCH, _MIXED_ID):
        text = pattern.sub("#", text)
    return hide_volatile(text)


def _is_number(text: str) -> bool:
    return bool(text) and text.strip('"').replace(".", "", 1).isdecimal()


def _write(value: Json) -> str:
    return value if isinstance(value, str) else json_text.dumps_readable(value)
