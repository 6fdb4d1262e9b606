"""Makes a layer of what platforms record as two JSON values, the input and the output."""

from collections.abc import Mapping
from typing import Final

from agentci.model.json import Json
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages, tool_values
from agentci.recordings.telemetry.messages import has_content
from agentci.recordings.telemetry.span_reading import SpanReading, select_values
from agentci.recordings.telemetry.spans import OperationKind, Span


def make_layer(
    span: Span,
    kind: OperationKind,
    given: Json,
    returned: Json,
    values: Mapping[str, Json],
) -> SpanReading:
    """Make the layer of a model call, a tool call, or a step around them.

    A step without messages, such as a span around several turns, is no workflow.
    """
    if kind == "tool":
        return _make_tool_layer(span, given, returned, values)
    inputs = api_messages.parse_input_messages(given)
    outputs = api_messages.parse_output_messages(returned)
    if kind == "workflow" and not (has_content(inputs) or has_content(outputs)):
        kind = "other"
    return SpanReading(kind=kind, values=values, input=inputs, output=outputs)


def make_usage(raw: Json) -> dict[str, Json]:
    """Read token counts under the names that platforms use."""
    return select_values(api_messages.parse_object(raw), _USAGE_KEYS)


_USAGE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    semconv.INPUT_TOKENS: ("input_tokens", "prompt_tokens", "input"),
    semconv.OUTPUT_TOKENS: ("output_tokens", "completion_tokens", "output"),
    semconv.CACHE_READ_TOKENS: ("cache_read_input_tokens", "input_cache_read"),
    semconv.CACHE_WRITE_TOKENS: ("cache_creation_input_tokens", "input_cache_creation"),
}
_COST_KEYS: Final[Mapping[str, tuple[str, ...]]] = {semconv.COST: ("total", "total_cost")}


def make_cost(raw: Json) -> dict[str, Json]:
    """Read the cost of a model call under the names that platforms use."""
    return select_values(api_messages.parse_object(raw), _COST_KEYS)


def _make_tool_layer(
    span: Span, given: Json, returned: Json, values: Mapping[str, Json]
) -> SpanReading:
    message = tool_values.find_tool_message(returned)
    return SpanReading(
        kind="tool",
        values={
            semconv.TOOL_NAME: span.name or None,
            semconv.TOOL_CALL_ID: (message or {}).get("tool_call_id"),
            semconv.TOOL_ARGUMENTS: tool_values.decode_tool_arguments(given),
            semconv.TOOL_RESULT: tool_values.decode_tool_output(returned),
            **{name: value for name, value in values.items() if value is not None},
        },
        failed=tool_values.has_failed(message),
    )
