"""Explains turns whose content was not captured, so that no evaluator takes them for empty."""

from collections.abc import Sequence
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions.registry import GENAI, Convention
from agentci.recordings.telemetry.span_views import SpanView
from agentci.recordings.telemetry.tool_calls import EMPTY_VALUES, ToolInvocation
from agentci.recordings.telemetry.turns import PartialTurn

# Attributes with JSON that holds what a model returned, and how such JSON ends.
OUTPUT_ATTRIBUTES: Final = (
    *(semconv.OUTPUT_MESSAGES, "ai.response.toolCalls", "mlflow.spanOutputs"),
    *("gen_ai.completion", "langfuse.observation.output"),
)
JSON_ENDS: Final = {"[": "]", "{": "}"}
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
    if cut := _find_cut_output(views):
        return cut
    missing = [
        number
        for number, (turn, used) in enumerate(zip(turns, uses, strict=True), start=1)
        if (turn.calls or used) and _lacks_content(turn, used, views)
    ]
    if not missing:
        return ""
    numbers = ", ".join(truncate.truncate_list([str(each) for each in missing], MAX_NAMES))
    place = f"turn {numbers} of {len(turns)}" if len(turns) > 1 else "the turn"
    calls = sum(len(turns[number - 1].calls) for number in missing)
    tools = sum(len(uses[number - 1]) for number in missing)
    found = [format_count(calls, "model call")] if calls else []
    found += [format_count(tools, "tool call")] if tools else []
    convention = _find_producer(views)
    return (
        f"The content of {place} was not captured: {' and '.join(found)} without messages "
        f"({convention.title}: {_list_scopes(views)}; found: {_list_attributes(views)}); "
        f"{convention.capture}"
    )


def _lacks_content(
    turn: PartialTurn, used: Sequence[ToolInvocation], views: Sequence[SpanView]
) -> bool:
    """Whether neither an answer nor any other output was recorded."""
    answer = turn.answer.text if turn.answer is not None else None
    if answer or turn.intermediate_texts:
        return False
    if any(use.arguments not in EMPTY_VALUES or use.result not in EMPTY_VALUES for use in used):
        return False
    return not turn.question or not (turn.failed or _has_empty_output(views))


def _has_empty_output(views: Sequence[SpanView]) -> bool:
    """Whether an output was recorded, so that the model really returned nothing."""
    return any(semconv.OUTPUT_MESSAGES in view.span.attributes for view in views)


def _find_cut_output(views: Sequence[SpanView]) -> str:
    """Name a span whose output is the beginning of JSON, which exporters with a limit record."""
    for view in views:
        for name in OUTPUT_ATTRIBUTES:
            value = view.span.attributes.get(name)
            end = JSON_ENDS.get(value[:1]) if isinstance(value, str) else None
            if end is not None and not str(value).rstrip().endswith(end):
                return (
                    f"{name} of span {view.span.id} was cut off and cannot be read; raise "
                    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
                )
    return ""


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


def _list_attributes(views: Sequence[SpanView]) -> str:
    """List what was recorded instead of content."""
    names = {name for view in views for name in view.span.attributes}
    listed = sorted(names - {semconv.OPERATION_NAME})
    return ", ".join(truncate.truncate_list(listed, MAX_NAMES)) or "no attributes"
