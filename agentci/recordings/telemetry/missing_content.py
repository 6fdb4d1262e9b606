"""Explains turns whose content was not captured, so that no evaluator takes them for empty."""

from collections.abc import Sequence
from typing import Final

from agentci._util.text import truncate
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions.registry import GENAI, Convention
from agentci.recordings.telemetry.span_views import SpanView
from agentci.recordings.telemetry.tool_calls import EMPTY_VALUES, ToolInvocation
from agentci.recordings.telemetry.turns import PartialTurn

MAX_NAMES: Final = 5


def explain_missing_content(
    turns: Sequence[PartialTurn],
    uses: Sequence[Sequence[ToolInvocation]],
    views: Sequence[SpanView],
) -> str:
    """Say which turns were recorded without content; empty if all have some.

    Args:
        uses: the tool calls of each turn.
        views: all spans of the turns.
    """
    # An empty message was recorded: the model really said nothing.
    has_output = any(semconv.OUTPUT_MESSAGES in view.span.attributes for view in views)
    missing = [
        number
        for number, (turn, used) in enumerate(zip(turns, uses, strict=True), start=1)
        if (turn.calls or used)
        and not (turn.question and has_output)
        and _lacks_content(turn, used)
    ]
    if not missing:
        return ""
    numbers = ", ".join(truncate.truncate_list([str(each) for each in missing], MAX_NAMES))
    place = f"turn {numbers} of {len(turns)}" if len(turns) > 1 else "the turn"
    convention = _find_producer(views)
    return (
        f"The content of {place} was not captured ({convention.title}: "
        f"{_list_scopes(views)}); {convention.capture}"
    )


def _lacks_content(turn: PartialTurn, used: Sequence[ToolInvocation]) -> bool:
    """Whether neither an answer nor any other output was recorded, though nothing failed."""
    answer = turn.answer.text if turn.answer is not None else None
    if answer or turn.intermediate_texts or (turn.failed and turn.question):
        return False
    return all(use.arguments in EMPTY_VALUES and use.result in EMPTY_VALUES for use in used)


def _find_producer(views: Sequence[SpanView]) -> Convention:
    """Return the most specific convention, which knows the switch."""
    found = [one for view in views for one in view.conventions]
    return next((one for one in found if one.name != GENAI), found[0])


def _list_scopes(views: Sequence[SpanView]) -> str:
    named = dict.fromkeys(
        " ".join(filter(None, (view.span.scope, view.span.scope_version)))
        for view in views
        if view.span.scope
    )
    return ", ".join(truncate.truncate_list(list(named), MAX_NAMES)) or "no scope"
