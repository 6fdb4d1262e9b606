"""Reads the events of Strands Agents, whose contents are JSON text of Bedrock's blocks."""

from collections.abc import Iterator, Sequence

from agentci.model.values import Json, JsonObject, replace
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.messages import SpanMessages, flatten_content, parse_messages
from agentci.recordings.telemetry.spans import Span, SpanEvent, SpanReading

_ROLES = {
    semconv.USER_EVENT: "user",
    semconv.ASSISTANT_EVENT: "assistant",
    semconv.TOOL_EVENT: "user",  # blocks say that they are results
}


def read_strands(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read the events of a span; that of a tool has its arguments and its result."""
    is_tool = span.attributes.get(semconv.OPERATION_NAME) == "execute_tool"
    failed = span.attributes.get("gen_ai.tool.status") == "error"
    if is_tool:
        yield SpanReading(values=_read_tool(span), failed=failed)
        return
    inputs: list[JsonObject] = []
    outputs: list[JsonObject] = []
    details: list[SpanReading] = []
    for event in span.events:
        payload = event.payload
        if event.name == semconv.DETAILS_EVENT:
            details.append(_read_details(event))
        elif event.name == semconv.CHOICE_EVENT:
            outputs.append({"role": "assistant", "content": _decode(payload.get("message"))})
        elif role := _ROLES.get(event.name):
            inputs.append({"role": role, "content": _decode(payload.get("content"))})
    yield SpanReading(
        input=api_messages.parse_message_list(inputs, "user"),
        output=_strip_last_line(api_messages.parse_message_list(outputs, "assistant")),
    )
    yield from details


def _read_details(event: SpanEvent) -> SpanReading:
    return SpanReading(
        input=parse_messages(event.payload.get(semconv.INPUT_MESSAGES)),
        output=_strip_last_line(parse_messages(event.payload.get(semconv.OUTPUT_MESSAGES))),
    )


def _read_tool(span: Span) -> dict[str, Json]:
    values: dict[str, Json] = {}
    result = span.attributes.get(semconv.TOOL_RESULT)
    for event in span.events:
        if event.name == semconv.TOOL_EVENT:
            values[semconv.TOOL_ARGUMENTS] = event.payload.get("content")
        elif event.name == semconv.CHOICE_EVENT:
            result = event.payload.get("message")
    if result is not None:
        values[semconv.TOOL_RESULT] = flatten_content(_decode(result))
    return values


def _decode(raw: Json) -> Json:
    value = api_messages.decode(raw)
    return value if isinstance(value, list) else raw


def _strip_last_line(messages: SpanMessages) -> SpanMessages:
    """Remove the line break that Strands adds when it prints an agent's result."""
    return tuple(
        replace(
            one, content=replace(one.content, text=(one.content.text or "").rstrip("\n") or None)
        )
        for one in messages
    )
