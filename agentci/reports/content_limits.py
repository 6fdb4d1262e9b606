"""Shortens the content of a case: fields that are too long, and whole kinds of fields."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import UNSET

from agentci._util.text import json_text
from agentci.model.result import (
    CallContent,
    ContentLevel,
    ExpectedCall,
    RunContent,
    TurnContent,
)
from agentci.model.values import replace
from agentci.reports.case_summary import excerpt

# Of one field: a text, or the JSON of arguments or of a result.
MAX_FIELD_CHARACTERS: Final = 64 * 1024
MAX_SPANS: Final = 1_000
# No field of a content that takes less can exceed its limit: a byte is at most six characters of
# JSON, and two more where it is indented or escaped again.
UNCUT_BYTES: Final = MAX_FIELD_CHARACTERS // 8

# From the most to the least that is kept.
LEVELS: Final[tuple[ContentLevel, ...]] = ("full", "without_results", "excerpt", "none")

_Call = TypeVar("_Call", CallContent, ExpectedCall)


def cut_content(content: RunContent) -> RunContent:
    """Shorten all fields beyond the limit; ``cut`` counts what is left out."""
    spans = FieldCutter(content.cut)
    kept = content.spans[:MAX_SPANS]
    if len(kept) < len(content.spans):
        spans.cut["spans"] = len(content.spans) - len(kept)
    columns = {name: spans.cut_value(f"columns.{name}", v) for name, v in content.columns.items()}
    return replace(
        content,
        turns=tuple(map(_cut_turn, content.turns)),
        spans=kept,
        subagents=tuple(
            replace(each, turns=tuple(map(_cut_turn, each.turns))) for each in content.subagents
        ),
        columns=columns,
        cut=spans.cut,
    )


def _cut_turn(turn: TurnContent) -> TurnContent:
    fields = FieldCutter(turn.cut)
    return replace(
        turn,
        user=fields.cut_text("user", turn.user),
        answer=None if turn.answer is None else fields.cut_text("answer", turn.answer),
        expected_answer=None
        if turn.expected_answer is None
        else fields.cut_text("expected_answer", turn.expected_answer),
        texts=fields.cut_texts("texts", turn.texts),
        calls=tuple(
            replace(
                fields.cut_arguments(f"calls[{index}]", call),
                result=fields.cut_value(f"calls[{index}].result", call.result),
            )
            for index, call in enumerate(turn.calls)
        ),
        expected_calls=None
        if turn.expected_calls is None
        else tuple(
            fields.cut_arguments(f"expected_calls[{index}]", call)
            for index, call in enumerate(turn.expected_calls)
        ),
        cut=fields.cut,
    )


class FieldCutter:
    """Shortens fields, and counts the characters that are left out by name of the field."""

    def __init__(self, cut: Mapping[str, int]) -> None:
        self.cut = dict(cut)

    def cut_text(self, name: str, text: str) -> str:
        """Shorten a text."""
        if len(text) <= MAX_FIELD_CHARACTERS:
            return text
        self.cut[name] = self.cut.get(name, 0) + len(text) - MAX_FIELD_CHARACTERS
        return text[:MAX_FIELD_CHARACTERS]

    def cut_value(self, name: str, value: Any) -> Any:
        """Shorten a text; of another value that is too long, the start of its JSON is kept."""
        if isinstance(value, str):
            return self.cut_text(name, value)
        if value is UNSET or value is None or isinstance(value, bool | int | float):
            return value
        text = json_text.dumps_compact(value)
        return value if len(text) <= MAX_FIELD_CHARACTERS else self.cut_text(name, text)

    def cut_texts(self, name: str, texts: Sequence[str]) -> tuple[str, ...]:
        """Shorten each text."""
        return tuple(self.cut_text(f"{name}[{index}]", each) for index, each in enumerate(texts))

    def cut_arguments(self, name: str, call: _Call) -> _Call:
        """Shorten the arguments of a call."""
        return replace(call, arguments=self.cut_value(f"{name}.arguments", call.arguments))


def reduce_content(content: RunContent, level: ContentLevel) -> RunContent:
    """Keep only what ``level`` includes; a content that has less stays as it is."""
    if level == content.level or LEVELS.index(level) < LEVELS.index(content.level):
        return content
    if level == "without_results":
        return replace(
            content,
            turns=tuple(map(_drop_results, content.turns)),
            spans=(),
            subagents=(),
            level=level,
        )
    shorten = _make_excerpt if level == "excerpt" else _drop_texts
    return replace(
        content,
        turns=tuple(map(shorten, content.turns)),
        spans=(),
        subagents=(),
        columns={},
        level=level,
        cut={},
    )


def _drop_results(turn: TurnContent) -> TurnContent:
    return replace(turn, calls=tuple(replace(call, result=UNSET) for call in turn.calls))


def _make_excerpt(turn: TurnContent) -> TurnContent:
    cut = {name: count for name, count in turn.cut.items() if name in ("user", "answer")}
    user, answer = excerpt(turn.user), None if turn.answer is None else excerpt(turn.answer)
    for name, shown, text in (("user", user, turn.user), ("answer", answer, turn.answer)):
        left = len(text or "") - len(shown or "")
        if left > 0:
            cut[name] = cut.get(name, 0) + left
    kept = _drop_texts(turn)
    return replace(kept, user=user, answer=answer, user_recorded=turn.user_recorded, cut=cut)


def _drop_texts(turn: TurnContent) -> TurnContent:
    return TurnContent(
        user="",
        answer=None,
        missing=turn.missing,
        latency_ms=turn.latency_ms,
        tokens=turn.tokens,
    )
