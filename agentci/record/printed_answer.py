"""What a command or its framework makes of the model's answers and arguments."""

import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final, Literal, TypeAlias, TypeVar

from agentci._util.text.escape import remove_control
from agentci._util.text.json_text import dumps_compact
from agentci._util.text.secrets import REMOVED_KEY
from agentci._util.text.truncate import short
from agentci.model.trace import OTHER_OUTPUT, OTHER_TELEMETRY, PRINTED_KEY, ToolCall
from agentci.model.values import Json
from agentci.record.apis.model_api import parse_body
from agentci.recordings.printed_lines import (
    ANSWER_MARK,
    MAX_SHOWN,
    describe_lines_of_recording,
    show_difference,
)

T = TypeVar("T")
# What the answer of a case is: what the model answered, or what the command printed.
AnswerSource: TypeAlias = Literal["model", "stdout"]
ANSWER_SOURCES: Final[tuple[AnswerSource, ...]] = ("model", "stdout")
MAX_PRINTED_BYTES: Final = 1024**2

# A line of a log: with a level or a time in front, or as an object with a level.
_LOG_LINE: Final = re.compile(
    r"""\s*\[?(?:\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR"""
    r"""|CRITICAL|FATAL)\b)|\s*\{.*"(?:level|levelname|severity|log\.level)"\s*:""",
    re.IGNORECASE,
)
_JSON_ESCAPE: Final = re.compile(r"""\\(?:u([0-9a-fA-F]{4})|([nrtbf])|(["'\\/]))""")
# Words and numbers, without marks of Markdown, borders and line breaks; `-5` and `1.5` stay whole.
_TOKEN_CHARACTERS: Final = re.compile(
    r"(?<=\d)[.,](?=\d)|(?<![^\s(\[=:$€£])-(?=[$€£]?\d)|[^\W_]|[%$€£]"
)
_LINK_TARGET: Final = re.compile(r"\]\([^)\s]*\)")
_FENCE: Final = re.compile(r"^\s*```.*$", re.MULTILINE)
_BORDER: Final = re.compile(r"[\u2500-\u257f|]")


def read_printed(stdout: IO[bytes]) -> str | None:
    """Read what a command printed, without escape codes; None if it is too long."""
    stdout.seek(0)
    content = stdout.read(MAX_PRINTED_BYTES + 1)
    if len(content) > MAX_PRINTED_BYTES:
        return None
    return remove_control(content.decode("utf-8", "replace"))


def describe_other_answer(printed: str, answers: Sequence[str]) -> str:
    """Describe that a command printed something else than the model answered; else empty.

    A command that prints nothing, or only a log, gives its answer elsewhere. Of several turns, one
    may be that of a router or a summary, so one printed answer is enough.

    Args:
        answers: of the turns.
    """
    text = " ".join(_list_lines(printed))
    if not text or not answers or any(contains_answer(printed, each) for each in answers):
        return ""
    answer = " ".join(answers[-1].split())
    found, expected = show_difference(text, answer)
    return f"{OTHER_OUTPUT} `{found}`, but the model's answer `{expected}` is evaluated"


def _list_lines(printed: str) -> list[str]:
    """Return what was printed by line, without logs and empty lines."""
    lines = (" ".join(line.split()) for line in printed.splitlines() if not _LOG_LINE.match(line))
    return list(filter(None, lines))


def describe_changed_output(printed: str, recorded: str, answers: Sequence[str]) -> str:
    """Describe that a command printed something else than when it was recorded; else empty.

    The order of lines, and times and ids outside the answers, differ from run to run.

    Args:
        recorded: what it printed then.
        answers: of the turns, equal in both runs.
    """
    new, old = _list_lines(printed), _list_lines(recorded)
    return describe_lines_of_recording(new, old, known=" ".join(answers))


def hide_answers(printed: str, texts: Sequence[str]) -> str:
    """Return the lines that a command printed, without logs, and a mark for each text of the model.

    Args:
        texts: what the model answered; each is replaced once, where it stands last.
    """
    for text in sorted(texts, key=len, reverse=True):
        words = r"\s+".join(map(re.escape, text.split()))
        found = [*re.finditer(rf"(?<!\w){words}(?!\w)", printed)] if words else []
        if found:
            start, end = found[-1].span()
            printed = f"{printed[:start]}{ANSWER_MARK}{printed[end:]}"
    return "\n".join(_list_lines(printed))


def is_answer(printed: str, answers: Sequence[str]) -> bool:
    """Return whether a command printed the only answer, and nothing else but logs and space."""
    words = answers[0].split() if len(answers) == 1 else []
    return bool(words) and words in (printed.split(), " ".join(_list_lines(printed)).split())


def describe_printed_key(printed: str) -> str:
    """Describe that a command printed a key, which has been removed; else empty."""
    line = next((line for line in printed.splitlines() if REMOVED_KEY in line), "")
    if not line:
        return ""
    start = max(0, line.index(REMOVED_KEY) - MAX_SHOWN // 2)
    return f"{PRINTED_KEY}: `{short(line[start:].strip(), MAX_SHOWN)}`"


def contains_answer(printed: str, answer: str) -> bool:
    """Return whether a text contains an answer, however it is wrapped, escaped or rendered.

    Of an answer that is JSON, a part is enough, as programs print what they take from it.
    """
    texts = [_fold(printed), _fold(_unescape(printed))]
    forms = [form for each in (answer, _render(answer)) if (form := _fold(each))]
    if not forms:
        return "".join(answer.split()) in "".join(printed.split())
    if any(form in text for form in forms for text in texts):
        return True
    parts = [_fold(each) for each in _list_texts(answer)]
    if any(part and part in text for part in parts for text in texts):
        return True
    # The cells of a table are wrapped beside each other.
    return bool(_BORDER.search(printed)) and _count(_render(answer)) <= _count(printed)


def _fold(text: str) -> str:
    return "".join(_TOKEN_CHARACTERS.findall(text)).casefold()


def _count(text: str) -> Counter[str]:
    return Counter(filter(None, (_fold(each) for each in re.split(r"[\s|\u2500-\u257f]+", text))))


def _render(answer: str) -> str:
    """Drop what a renderer of Markdown does not show as text."""
    return _FENCE.sub("", _LINK_TARGET.sub("]", answer))


def _unescape(text: str) -> str:
    def replace_escape(match: re.Match[str]) -> str:
        number, space, mark = match.groups()
        return chr(int(number, 16)) if number else mark or (" " if space else "")

    return _JSON_ESCAPE.sub(replace_escape, text)


def _list_texts(answer: str) -> Iterator[str]:
    """Yield the texts and numbers in an answer that is a JSON object or list."""
    yield from _walk(_parse_json(answer))


def _parse_json(text: str) -> Json:
    """Parse a JSON object or list, also in a fence of Markdown; None if it is neither."""
    text = text.strip().removeprefix("```json").removesuffix("```").strip()
    if text[:1] not in ("{", "["):
        return None
    return (parse_body(b'{"value":%s}' % text.encode("utf-8", "replace")) or {}).get("value")


def _walk(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _walk(each)
    elif isinstance(value, list):
        for each in value:
            yield from _walk(each)
    elif isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield value if isinstance(value, str) else json.dumps(value)


def describe_other_answers(framework: Sequence[str], model: Sequence[str]) -> str:
    """Describe that the telemetry of a framework has other answers than the model gave; else empty.

    An answer that contains the other is the same, as a framework cuts off marks such as ``Final
    Answer:``, and telemetry joins texts.
    """
    pairs = _pair_others(model, framework, _is_same_answer)
    for expected, found in pairs:
        shown, known = show_difference(" ".join(found.split()), " ".join(expected.split()))
        return f"{OTHER_TELEMETRY} the answer `{shown}`, not the model's `{known}`"
    return ""


def describe_other_arguments(framework: Sequence[ToolCall], model: Sequence[ToolCall]) -> str:
    """Describe that the telemetry of a framework has other arguments than the model's; else empty.

    Defaults that the framework adds, and other formats of a value, make no difference.
    """
    for name in dict.fromkeys(call.name for call in model):
        own = [call.args for call in model if call.name == name]
        others = [call.args for call in framework if call.name == name]
        for expected, found in _pair_others(own, others, _are_same_arguments):
            shown, known = show_difference(dumps_compact(found), dumps_compact(expected))
            return (
                f"{OTHER_TELEMETRY} the arguments `{shown}` of `{name}`, not the model's `{known}`"
            )
    return ""


def _pair_others(
    model: Sequence[T], framework: Sequence[T], is_same: Callable[[T, T], bool]
) -> list[tuple[T, T]]:
    """Pair the values that are not the same, in their order; none if their numbers differ."""
    if len(model) != len(framework):
        return []
    others, left = list(model), list(framework)
    for are_equal in (operator.eq, is_same):
        for each in tuple(others):
            if found := [other for other in left if are_equal(each, other)]:
                others.remove(each)
                left.remove(found[0])
    return list(zip(others, left, strict=True))


def _is_same_answer(model: str, framework: str) -> bool:
    expected, found = _parse_json(model), _parse_json(framework)
    if expected is not None and found is not None:
        return _is_same_value(expected, found)
    return contains_answer(model, framework) or contains_answer(framework, model)


def _are_same_arguments(model: Json, framework: Json) -> bool:
    """Compare arguments; those that were not recorded, or in another form, are the same."""
    expected, found = (
        (_parse_json(each) or each) if isinstance(each, str) else each
        for each in (model, framework)
    )
    if not isinstance(expected, Mapping) or not isinstance(found, Mapping):
        return True
    return expected.keys().isdisjoint(found) or _is_same_value(expected, found)


def _is_same_value(model: Json, framework: Json) -> bool:
    if isinstance(model, Mapping) and isinstance(framework, Mapping):
        given = {key: value for key, value in model.items() if value is not None}
        return all(
            key in framework and _is_same_value(value, framework[key])
            for key, value in given.items()
        )
    if isinstance(model, list) and isinstance(framework, list):
        return len(model) == len(framework) and all(map(_is_same_value, model, framework))
    expected, found = _format_value(model), _format_value(framework)
    return expected == found or (
        isinstance(model, str) and bool(expected) and (expected in found or found in expected)
    )


def _format_value(value: Json) -> str:
    """Format a value without its type, so that ``5``, ``5.0`` and ``"5"`` are the same."""
    text = value if isinstance(value, str) else dumps_compact(value)
    with suppress(ValueError, OverflowError):
        return repr(float(text))
    return "".join(text.split()).casefold()
