"""Tool calls that a run makes otherwise than the baseline's."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from agentci._util.text import change, escape, json_text
from agentci._util.text.truncate import short
from agentci.evaluators.changed_facts import ChangedFacts, find_changed_facts
from agentci.model.case import CALL_CHANGES, CallChange, ChangedCall, ChangedText
from agentci.model.values import Json
from agentci.recordings.tool_errors import parse_result
from agentci.reports.changed_texts import MAX_SHOWN, show_facts, show_texts
from agentci.reports.compared_runs import ComparedCall, ComparedRun, PairedTurns, hide_unstable
from agentci.reports.tool_calls import format_call

# Of a case.
MAX_CALLS: Final = 5
# Of texts in arguments, of which only the start is compared word by word, and how many are.
MAX_COMPARED: Final = 2_000
MAX_TEXTS: Final = 50
# Arguments that a model words, also if one word is enough.
_WORDED: Final = re.compile(
    r"(?:^|[._])(?:query|queries|q|search|keywords?|text|message|prompt|question|instructions?"
    r"|description|reason|notes?|comments?|summary|content|body|title|subject|thoughts?)"
    r"(?:\[\d+\])*\Z",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w+")


class ChangedCalls(Struct):
    """The first calls of a case that changed, and the number of others.

    Attributes:
        reworded: number of calls of which only the words of arguments differ.
    """

    shown: tuple[ChangedCall, ...] = ()
    more: int = 0
    reworded: int = 0


# How it changed, the tool, and both sides.
_Change: TypeAlias = tuple[CallChange, str, str, str]
_Value: TypeAlias = "Json | UnsetType"


def find_changed_calls(
    run: ComparedRun, before: ComparedRun, pairs: Sequence[PairedTurns]
) -> ChangedCalls:
    """Find the calls that only one run has, or whose arguments have other values.

    Texts that say the same facts in other words are only counted, as models vary them.
    """
    comparison = _CallComparison()
    found = Counter(comparison.list_changes(pairs, run.tools, before.tools))
    ordered = sorted(found.items(), key=lambda each: CALL_CHANGES.index(each[0][0]))
    return ChangedCalls(
        shown=tuple(
            ChangedCall(kind=kind, tool=tool, before=then, after=now, count=count)
            for (kind, tool, then, now), count in ordered[:MAX_CALLS]
        ),
        more=sum(count for _, count in ordered[MAX_CALLS:]),
        reworded=comparison.reworded,
    )


class _CallComparison:
    def __init__(self) -> None:
        self.reworded = 0
        self._texts = 0

    def list_changes(
        self, pairs: Sequence[PairedTurns], tools: AbstractSet[str], old: AbstractSet[str]
    ) -> Iterator[_Change]:
        for each in pairs:
            calls = each.calls
            for call, index in calls.changed:
                if f"calls[{index}].arguments" in each.before.cut:
                    continue
                then = each.before.calls[index]
                if call.arguments is None or then.arguments is None:  # not recorded
                    continue
                now, old_arguments = parse_result(call.arguments), parse_result(then.arguments)
                shown = self._compare(now, old_arguments, each.known)
                if shown is not None:
                    yield "arguments", call.name, shown.before, shown.after
            for call in calls.added:
                yield "added" if call.name in old else "new_tool", call.name, "", _format(call)
            for index in calls.removed:
                call = each.before.calls[index]
                yield (
                    "removed" if call.name in tools else "lost_tool",
                    call.name,
                    _format(call),
                    "",
                )

    def _compare(self, now: Json, then: Json, known: AbstractSet[str]) -> ChangedText | None:
        """Show the first argument whose value differs; count a call with only other words."""
        # An object without members has no path, and no value.
        new, old = (dict(change.list_leaves(each, "")) if each else {} for each in (now, then))
        reworded = False
        for path in dict.fromkeys((*old, *new)):
            sides = new.get(path, UNSET), old.get(path, UNSET)
            if sides[0] == sides[1] or _are_equal(*sides, known):
                continue
            shown = self._compare_words(path, *sides)
            if shown is None:
                after, before = (
                    change.ABSENT if each is UNSET else json_text.dumps_readable(each)
                    for each in sides
                )
                if all(isinstance(each, str) and each.strip() for each in sides):
                    after, before = map(str, sides)
                shown = show_texts(after, before)
            if shown.before != shown.after:
                label = f"{short(escape.flatten_line(path), MAX_SHOWN)}: " if path else ""
                return ChangedText(before=label + shown.before, after=label + shown.after)
            reworded = True
        self.reworded += reworded
        return None

    def _compare_words(self, path: str, now: _Value, then: _Value) -> ChangedText | None:
        """Show the first fact that differs; equal sides without one; None for other values."""
        sides = ["" if each is UNSET else each for each in (now, then)]
        if not all(isinstance(each, str) for each in sides):
            return None
        after, before = (str(each)[:MAX_COMPARED] for each in sides)
        words = [_WORD.findall(each.casefold()) for each in (after, before)]
        is_text = any(" " in each.strip() for each in (after, before))
        if not is_text and words[0] != words[1] and not _WORDED.search(path):
            return None
        self._texts += 1
        facts = find_changed_facts(after, before) if self._texts <= MAX_TEXTS else ChangedFacts()
        return show_facts(after, before, facts) if str(facts) else ChangedText(before="", after="")


def _are_equal(now: _Value, then: _Value, known: AbstractSet[str]) -> bool:
    """Return whether two texts are equal but for ids and times."""
    if not (isinstance(now, str) and isinstance(then, str)):
        return False
    sides = (each[:MAX_COMPARED] for each in (now, then))
    new, old = (hide_unstable(each, known) for each in sides)
    return new == old and "#" in new


def _format(call: ComparedCall) -> str:
    return escape.flatten_line(short(format_call(call.name, call.arguments), MAX_SHOWN))
