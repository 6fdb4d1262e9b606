"""Reads spans of agent frameworks' own tracers.

The frameworks are Haystack, Mastra, Genkit, Strands Agents and the Vercel AI SDK.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject, replace
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.telemetry.messages import SpanMessages, flatten_content, parse_messages
from agentci.recordings.telemetry.spans import (
    OperationKind,
    Span,
    SpanEvent,
    SpanReading,
    select_values,
)

# Kinds of Haystack's spans by name, and the prefix of their input and output.
_HAYSTACK_SPANS: Final[Mapping[str, tuple[OperationKind, str]]] = {
    "haystack.agent.run": ("agent", "haystack.agent."),
    "haystack.agent.step.llm": ("inference", "haystack.agent.step.llm."),
    "haystack.agent.step.tool": ("tool", "haystack.agent.step.tool."),
    "haystack.component.run": ("other", "haystack.component."),
}
_GENERATOR: Final = "Generator"


def read_haystack(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span of Haystack's tracer, whose name states its kind."""
    kind, prefix = _HAYSTACK_SPANS.get(span.name, ("other", ""))
    attributes = span.attributes
    if str(attributes.get("haystack.component.type")).endswith(_GENERATOR):
        kind = "inference"
    given, returned = attributes.get(f"{prefix}input"), attributes.get(f"{prefix}output")
    if kind == "tool":
        yield _read_haystack_tool(attributes, given, returned)
    elif kind == "other":
        yield SpanReading(kind=kind)
    else:
        replies = api_messages.parse_object(returned).get(
            "replies" if kind == "inference" else "messages"
        )
        yield SpanReading(
            kind=kind,
            values=_read_haystack_reply(replies) if kind == "inference" else {},
            input=_parse_haystack_messages(
                api_messages.parse_object(given).get("messages"), "user"
            ),
            output=api_messages.parse_output_messages(replies),
        )


def _parse_haystack_messages(raw: Json, role: str) -> SpanMessages:
    return api_messages.parse_message_list(raw, role) if isinstance(raw, list) else ()


def _read_haystack_reply(replies: Json) -> dict[str, Json]:
    """Return the model and the tokens of a reply."""
    reply: JsonObject = next(iterate_objects(replies), {})
    meta = api_messages.parse_object(reply.get("meta"))
    usage = api_messages.parse_object(meta.get("usage"))
    details = api_messages.parse_object(usage.get("prompt_tokens_details"))
    return {
        semconv.REQUEST_MODEL: meta.get("model"),
        semconv.INPUT_TOKENS: usage.get("prompt_tokens", usage.get("input_tokens")),
        semconv.OUTPUT_TOKENS: usage.get("completion_tokens", usage.get("output_tokens")),
        semconv.CACHE_READ_TOKENS: details.get("cached_tokens"),
        semconv.FINISH_REASONS: [meta["finish_reason"]] if meta.get("finish_reason") else None,
    }


def _read_haystack_tool(attributes: Mapping[str, Json], given: Json, returned: Json) -> SpanReading:
    failed = attributes.get("haystack.tool.error") is True
    error = api_messages.parse_object(returned).get("error") if failed else None
    return SpanReading(
        kind="tool",
        values={
            semconv.TOOL_NAME: attributes.get("haystack.tool.name"),
            semconv.TOOL_ARGUMENTS: api_messages.decode(given),
            semconv.TOOL_RESULT: api_messages.decode(returned) if error is None else error,
        },
        failed=failed,
    )


def read_mastra(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read what Mastra records besides the GenAI conventions: the question, and errors of tools.

    The output of an agent's run is not its answer: it joins the texts of all steps.
    """
    kind = span.attributes.get("mastra.span.type")
    if kind == "agent_run":
        given = span.attributes.get("mastra.agent_run.input")
        yield SpanReading(kind="agent", input=api_messages.parse_input_messages(given))
    elif kind in ("tool_call", "mcp_tool_call") and span.failed:
        error = span.attributes.get("error.message")
        yield SpanReading(values={semconv.TOOL_RESULT: error}, failed=True)


_GENKIT_KINDS: Final[Mapping[str, OperationKind]] = {"model": "inference", "tool": "tool"}


def read_genkit(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span of Genkit: a model call, a tool call, or the outermost step around them."""
    attributes = span.attributes
    given, returned = attributes.get("genkit:input"), attributes.get("genkit:output")
    kind = _GENKIT_KINDS.get(str(attributes.get("genkit:metadata:subtype")), "other")
    if kind == "tool":
        yield _read_genkit_tool(span, given, returned)
    elif kind == "inference":
        response = api_messages.parse_object(returned)
        usage = api_messages.parse_object(response.get("usage"))
        yield SpanReading(
            kind=kind,
            values={
                semconv.REQUEST_MODEL: attributes.get("genkit:name"),
                semconv.INPUT_TOKENS: usage.get("inputTokens"),
                semconv.OUTPUT_TOKENS: usage.get("outputTokens"),
                semconv.CACHE_READ_TOKENS: usage.get("cachedContentTokens"),
            },
            input=api_messages.parse_input_messages(given),
            output=api_messages.parse_output_messages(response.get("message")),
        )
    elif attributes.get("genkit:isRoot") is True:
        yield SpanReading(
            kind="workflow",
            input=api_messages.parse_input_messages(given),
            output=api_messages.parse_output_messages(returned),
        )
    else:
        yield SpanReading(kind=kind)


def _read_genkit_tool(span: Span, given: Json, returned: Json) -> SpanReading:
    return SpanReading(
        kind="tool",
        values={
            semconv.TOOL_NAME: span.attributes.get("genkit:name"),
            semconv.TOOL_ARGUMENTS: api_messages.decode(given),
            semconv.TOOL_RESULT: api_messages.decode(returned),
        },
        failed=span.failed,
    )


_STRANDS_ROLES = {
    semconv.USER_EVENT: "user",
    semconv.ASSISTANT_EVENT: "assistant",
    semconv.TOOL_EVENT: "user",  # blocks say that they are results
}


def read_strands(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read the events of a span; that of a tool has its arguments and its result."""
    is_tool = span.attributes.get(semconv.OPERATION_NAME) == "execute_tool"
    failed = span.attributes.get("gen_ai.tool.status") == "error"
    if is_tool:
        yield SpanReading(values=_read_strands_tool(span), failed=failed)
        return
    inputs: list[JsonObject] = []
    outputs: list[JsonObject] = []
    details: list[SpanReading] = []
    for event in span.events:
        payload = event.payload
        if event.name == semconv.DETAILS_EVENT:
            details.append(_read_strands_details(event))
        elif event.name == semconv.CHOICE_EVENT:
            outputs.append(
                {"role": "assistant", "content": _decode_strands(payload.get("message"))}
            )
        elif role := _STRANDS_ROLES.get(event.name):
            inputs.append({"role": role, "content": _decode_strands(payload.get("content"))})
    yield SpanReading(
        input=api_messages.parse_message_list(inputs, "user"),
        output=_strip_last_line(api_messages.parse_message_list(outputs, "assistant")),
    )
    yield from details


def _read_strands_details(event: SpanEvent) -> SpanReading:
    return SpanReading(
        input=parse_messages(event.payload.get(semconv.INPUT_MESSAGES)),
        output=_strip_last_line(parse_messages(event.payload.get(semconv.OUTPUT_MESSAGES))),
    )


def _read_strands_tool(span: Span) -> dict[str, Json]:
    values: dict[str, Json] = {}
    result = span.attributes.get(semconv.TOOL_RESULT)
    for event in span.events:
        if event.name == semconv.TOOL_EVENT:
            values[semconv.TOOL_ARGUMENTS] = event.payload.get("content")
        elif event.name == semconv.CHOICE_EVENT:
            result = event.payload.get("message")
    if result is not None:
        values[semconv.TOOL_RESULT] = flatten_content(_decode_strands(result))
    return values


def _decode_strands(raw: Json) -> Json:
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


_VERCEL_KINDS: Final[Mapping[str, OperationKind]] = {
    "ai.generateText": "agent",
    "ai.streamText": "agent",
    "ai.generateObject": "agent",
    "ai.streamObject": "agent",
    "ai.toolCall": "tool",
}
_VERCEL_MODEL_CALLS: Final = (".doGenerate", ".doStream")
_VERCEL_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
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
    kind = _find_vercel_kind(attributes.get("ai.operationId"))
    values = select_values(attributes, _VERCEL_VALUES)
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


def _find_vercel_kind(operation: Json) -> OperationKind:
    if not isinstance(operation, str):
        return "other"
    if operation.endswith(_VERCEL_MODEL_CALLS):
        return "inference"
    return _VERCEL_KINDS.get(operation, "other")
