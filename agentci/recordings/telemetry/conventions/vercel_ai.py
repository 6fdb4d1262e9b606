"""Reads the telemetry of the Vercel AI SDK, versions 4 to 6."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.model.values import Json
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.spans import (
    OperationKind,
    Span,
    SpanEvent,
    SpanReading,
    select_values,
)

_KINDS: Final[Mapping[str, OperationKind]] = {
    "ai.generateText": "agent",
    "ai.streamText": "agent",
    "ai.generateObject": "agent",
    "ai.streamObject": "agent",
    "ai.toolCall": "tool",
}
_MODEL_CALLS: Final = (".doGenerate", ".doStream")
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    semconv.REQUEST_MODEL: ("ai.model.id",),
    semconv.RESPONSE_MODEL: ("ai.response.model",),
    semconv.RESPONSE_ID: ("ai.response.id",),
    semconv.INPUT_TOKENS: ("ai.usage.inputTokens", "ai.usage.promptTokens"),
    semconv.OUTPUT_TOKENS: ("ai.usage.outputTokens", "ai.usage.completionTokens"),
    semconv.CACHE_READ_TOKENS: (
        "ai.usage.cachedInputTokens",
        "ai.usage.inputTokenDetails.cacheReadTokens",
    ),
    semconv.CACHE_WRITE_TOKENS: ("ai.usage.inputTokenDetails.cacheWriteTokens",),
    semconv.TOOL_NAME: ("ai.toolCall.name",),
    semconv.TOOL_CALL_ID: ("ai.toolCall.id",),
    semconv.TOOL_ARGUMENTS: ("ai.toolCall.args", "ai.toolCall.input"),
    semconv.TOOL_RESULT: ("ai.toolCall.result", "ai.toolCall.output"),
}


def read_vercel_ai(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span of the AI SDK."""
    attributes = span.attributes
    kind = _find_kind(attributes.get("ai.operationId"))
    values = select_values(attributes, _VALUES)
    if reason := attributes.get("ai.response.finishReason"):
        values[semconv.FINISH_REASONS] = [reason]
    prompt = attributes.get("ai.prompt.messages") or attributes.get("ai.prompt")
    answer = {
        "role": "assistant",
        "content": attributes.get("ai.response.text") or attributes.get("ai.response.object"),
        "parts": None,
        "tool_calls": [
            {
                "id": call.get("toolCallId"),
                "name": call.get("toolName"),
                "arguments": call.get("input", call.get("args")),
            }
            for call in api_messages.list_objects(attributes.get("ai.response.toolCalls"))
        ],
    }
    yield SpanReading(
        kind=kind,
        values=values,
        input=api_messages.parse_input_messages(prompt),
        output=api_messages.parse_message_list([answer], "assistant"),
    )


def _find_kind(operation: Json) -> OperationKind:
    if not isinstance(operation, str):
        return "other"
    if operation.endswith(_MODEL_CALLS):
        return "inference"
    return _KINDS.get(operation, "other")
