"""Reads OpenInference, the conventions of Arize Phoenix's instrumentations."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.conventions.traceloop import group_by_index
from agentci.recordings.telemetry.messages import SpanMessages, has_content
from agentci.recordings.telemetry.spans import (
    OperationKind,
    Span,
    SpanEvent,
    SpanReading,
    select_values,
)

_KINDS: Final[Mapping[str, OperationKind]] = {
    "LLM": "inference",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "workflow",
}
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    semconv.REQUEST_MODEL: ("llm.model_name",),
    semconv.INPUT_TOKENS: ("llm.token_count.prompt",),
    semconv.OUTPUT_TOKENS: ("llm.token_count.completion",),
    semconv.CACHE_READ_TOKENS: ("llm.token_count.prompt_details.cache_read",),
    semconv.CACHE_WRITE_TOKENS: ("llm.token_count.prompt_details.cache_write",),
    semconv.COST: ("llm.cost.total",),
    semconv.TOOL_NAME: ("tool.name", "tool_call.function.name"),
    semconv.TOOL_CALL_ID: ("tool.id", "tool_call.id"),
}
_HANDOFF: Final = "handoff to "


def read_openinference(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span with ``openinference.span.kind``."""
    attributes = span.attributes
    kind = _find_kind(span)
    values = select_values(attributes, _VALUES)
    if reason := attributes.get("llm.finish_reason"):
        values[semconv.FINISH_REASONS] = [reason]
    given, returned = attributes.get("input.value"), attributes.get("output.value")
    if kind == "tool":
        yield _read_tool(values, given, returned)
        return
    inputs = _parse_numbered(attributes, "llm.input_messages.", "user")
    outputs = _parse_numbered(attributes, "llm.output_messages.", "assistant")
    if kind != "inference" or not has_content(inputs):
        # On spans around model calls, LangChain's instrumentation numbers only one message.
        inputs = max(api_messages.parse_input_messages(given), inputs, key=len)
    if not has_content(outputs):
        outputs = api_messages.parse_output_messages(returned)
    if kind == "inference" and not (
        values.keys() - {semconv.REQUEST_MODEL} or has_content(outputs)
    ):
        kind = _find_kind_without_answer(span, inputs)
    if kind == "workflow" and not (has_content(inputs) or has_content(outputs)):
        kind = "other"  # a step without messages, or a span around several turns
    yield SpanReading(kind=kind, values=values, input=inputs, output=outputs)


def _find_kind(span: Span) -> OperationKind:
    kind = _KINDS.get(str(span.attributes.get("openinference.span.kind")).upper(), "other")
    if kind == "tool" and "tool.name" not in span.attributes and span.name.startswith(_HANDOFF):
        return "other"  # the model's call of the hand-off is recorded in its messages
    return kind


def _find_kind_without_answer(span: Span, inputs: SpanMessages) -> OperationKind:
    """Tell a model call that was not captured or failed from a helper around it.

    LlamaIndex records functions that only prepare a request as LLM, too.
    """
    if span.failed or has_content(inputs) or "output.value" not in span.attributes:
        return "inference"
    return "other"


def _read_tool(values: dict[str, Json], given: Json, returned: Json) -> SpanReading:
    message = api_messages.find_tool_message(returned)
    if message is not None and (call_id := message.get("tool_call_id")):
        values.setdefault(semconv.TOOL_CALL_ID, call_id)
    values[semconv.TOOL_ARGUMENTS] = api_messages.decode_tool_arguments(given)
    values[semconv.TOOL_RESULT] = api_messages.decode_tool_output(returned)
    return SpanReading(kind="tool", values=values, failed=api_messages.has_failed(message))


def _parse_numbered(attributes: Mapping[str, Json], prefix: str, role: str) -> SpanMessages:
    """Parse messages such as ``llm.input_messages.0.message.content``."""
    listed = [
        _make_message(fields)
        for fields in group_by_index(attributes, prefix, "message.")
        if fields.keys() - {"role"}
    ]
    return api_messages.parse_message_list([{"role": role, **one} for one in listed], role)


def _make_message(fields: Mapping[str, Json]) -> JsonObject:
    calls = [
        {
            "id": call.get("id"),
            "name": call.get("function.name"),
            "arguments": call.get("function.arguments", {}),
        }
        for call in group_by_index(fields, "tool_calls.", "tool_call.")
    ]
    blocks = list(map(_make_block, group_by_index(fields, "contents.", "message_content.")))
    content = blocks or fields.get("content")
    message = {"content": content, "tool_calls": calls}
    named = {key: fields[key] for key in ("role", "name", "tool_call_id") if key in fields}
    if name := fields.get("function_call_name"):
        arguments = fields.get("function_call_arguments_json")
        message["function_call"] = {"name": name, "arguments": arguments}
    return {**message, **named}


def _make_block(fields: Mapping[str, Json]) -> JsonObject:
    return {"type": fields.get("type", "text"), **fields}
