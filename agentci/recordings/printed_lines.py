"""Compares the lines that commands print, and texts that differ in other ways from run to run."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from agentci._util.text.change import shorten_pair
from agentci._util.text.patterns import TEMPORARY_PATH, UUID
from agentci.model.trace import OTHER_OUTPUT

# Stands for a text of the model in what a command printed.
ANSWER_MARK: Final = "{answer}"
# The same in messages.
_SHOWN_ANSWER: Final = "(model's answer)"
MAX_SHOWN: Final = 80
# How the description of a changed output ends, after what is printed, which may be any text.
_WHEN_RECORDED: Final = "when it was recorded"
_IN_BASELINE: Final = "in the baseline"
_NOT_ANY_MORE: Final = ", and does not any more"

# What differs from run to run: ids, addresses, times, durations, temporary files.
_VOLATILE: Final = re.compile(
    rf"""{UUID}|{TEMPORARY_PATH}|\b0x[0-9a-f]+|\b(?=[a-z]*\d)[0-9a-f]{{8,}}\b"""
    r"""|\b\d{4}-\d\d-\d\d(?!\d)|(?<!\d)\d\d?:\d\d(?::\d\d(?:\.\d+)?)?\b"""
    r"""|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds?|minutes?)\b""",
    re.IGNORECASE,
)


def hide_volatile(text: str, *, known: str = "") -> str:
    """Write ``#`` for ids, addresses, times, durations and temporary files in a text.

    Args:
        known: text whose times and ids stay.
    """
    return _VOLATILE.sub(lambda found: found[0] if found[0] in known else "#", text)


def describe_lines_of_recording(new: Sequence[str], old: Sequence[str], *, known: str) -> str:
    """Describe that a command printed other lines than when it was recorded; else empty.

    Args:
        known: text whose times and ids count.
    """
    return _describe_other_lines(new, old, _WHEN_RECORDED, known=known)


def is_changed_output(warning: str) -> bool:
    """Return whether a warning is one of ``describe_lines_of_recording``."""
    ends = (_WHEN_RECORDED, f"{_WHEN_RECORDED}{_NOT_ANY_MORE}")
    return warning.startswith(OTHER_OUTPUT) and warning.endswith(ends)


def describe_changed_lines(printed: str, before: str, *, has_same_answers: bool) -> str:
    """Describe that a command printed something else than in the baseline; else empty.

    Where another answer of the model may be the cause, the lines are not compared.

    Args:
        printed: lines, with ``ANSWER_MARK`` for answers of the model.
        before: those of the baseline.
    """
    if not has_same_answers and not all(ANSWER_MARK in each for each in (printed, before)):
        return ""
    new, old = (each.replace(ANSWER_MARK, _SHOWN_ANSWER).splitlines() for each in (printed, before))
    return _describe_other_lines(new, old, _IN_BASELINE)


def _describe_other_lines(
    new: Sequence[str], old: Sequence[str], when: str, *, known: str = ""
) -> str:
    added, removed = _find_added(new, old, known), _find_added(old, new, known)
    if added == removed:  # perhaps on other lines
        return ""
    found, expected = show_difference(added, removed)
    if not added:
        return f"{OTHER_OUTPUT} `{expected}` {when}{_NOT_ANY_MORE}"
    then = f"`{expected}`" if removed else "nothing in its place"
    return f"{OTHER_OUTPUT} `{found}`, and {then} {when}"


def _find_added(lines: Sequence[str], others: Sequence[str], known: str) -> str:
    """Return the lines that are not among others, joined."""
    left = Counter(hide_volatile(each, known=known) for each in others)
    added = []
    for line in lines:
        folded = hide_volatile(line, known=known)
        if left[folded]:
            left[folded] -= 1
        else:
            added.append(line)
    return " ".join(added)


def show_difference(one: str, other: str) -> tuple[str, str]:
    """Shorten two texts for code in a message, so that the first difference is in both."""
    found, expected = shorten_pair(one, other, MAX_SHOWN)
    return found.replace("`", "'"), expected.replace("`", "'")
