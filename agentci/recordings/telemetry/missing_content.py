"""Explains turns whose content was not captured, so that no evaluator takes them for empty."""

from collections.abc import Iterable, Sequence
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.spans import Span
from agentci.recordings.telemetry.tool_calls import ToolInvocation
from agentci.recordings.telemetry.turns import PartialTurn

MAX_NAMES: Final = 5
ADK_SWITCH: Final = (
    "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY and "
    "ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1"
)
# The variable of OpenTelemetry's GenAI instrumentations; newer ones take `span_only` for `true`.
GENAI_SWITCH: Final = (
    "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true (or span_only) and "
    "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
)


def explain_missing_content(
    turns: Sequence[PartialTurn], uses: Sequence[Sequence[ToolInvocation]], spans: Sequence[Span]
) -> str:
    """Say which turns have model calls but no content; empty if all turns have some.

    Args:
        uses: the tool calls of each turn.
        spans: all spans of the turns.
    """
    missing = [
        number
        for number, (turn, used) in enumerate(zip(turns, uses, strict=True), start=1)
        if turn.calls and not used and _lacks_content(turn)
    ]
    if not missing:
        return ""
    numbers = ", ".join(truncate.truncate_list([str(each) for each in missing], MAX_NAMES))
    place = f"turn {numbers} of {len(turns)}" if len(turns) > 1 else "the turn"
    calls = sum(len(turns[number - 1].calls) for number in missing)
    switch = ADK_SWITCH if any(span.adk for span in spans) else GENAI_SWITCH
    return (
        f"The content of {place} was not captured: {format_count(calls, 'model call')} without "
        f"messages (found: {_list_attributes(spans)}); {switch}"
    )


def _lacks_content(turn: PartialTurn) -> bool:
    """Whether neither a question nor any output of a model was recorded."""
    answer = turn.answer.text if turn.answer is not None else None
    return not (turn.question or answer or turn.intermediate_texts)


def _list_attributes(spans: Iterable[Span]) -> str:
    """The most general names of what was recorded instead."""
    names = {name for span in spans for name in span.attributes if name != semconv.OPERATION_NAME}
    return ", ".join(truncate.truncate_list(sorted(names), MAX_NAMES)) or "no attributes"
