"""Reads spans of libraries that instrument others: OpenInference, Traceloop's and Logfire's."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.messages import (
    SpanMessages,
    has_content,
    make_response_part,
    normalize_tool_calls,
    parse_messages,
    parse_parts,
)
from agentci.recordings.telemetry.spans import (
    OperationKind,
    Span,
    SpanEvent,
    SpanReading,
    select_values,
)

_TRACELOOP_KINDS: Final[Mapping[str, OperationKind]] = {
    "workflow": "workflow",
    "agent": "agent",
    "tool": "tool",
}


def read_traceloop(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a workflow, an agent or a tool; its input and output are records of a callback."""
    attributes = span.attributes
    kind = _TRACELOOP_KINDS.get(str(attributes.get("traceloop.span.kind")))
    given = _unwrap_traceloop(attributes.get("traceloop.entity.input"), "inputs")
    returned = _unwrap_traceloop(attributes.get("traceloop.entity.output"), "outputs")
    if kind == "tool" or attributes.get(semconv.OPERATION_NAME) == "execute_tool":
        recorded = attributes.get(semconv.TOOL_ARGUMENTS) or attributes.get(
            "traceloop.entity.input"
        )
        result = attributes.get(semconv.TOOL_RESULT)
        yield SpanReading(
            kind="tool",
            values={
                semconv.TOOL_NAME: attributes.get("traceloop.entity.name")
                or attributes.get(semconv.TOOL_NAME)
                or span.name.removesuffix(".tool"),
                semconv.TOOL_ARGUMENTS: api_messages.decode_tool_arguments(recorded),
                semconv.TOOL_RESULT: api_messages.decode_tool_output(
                    returned if result is None else _unwrap_traceloop(result, "output")
                ),
            },
        )
    elif kind is not None:
        yield SpanReading(
            kind=kind,
            input=api_messages.parse_input_messages(given),
            output=api_messages.parse_output_messages(returned),
        )


def _unwrap_traceloop(raw: Json, key: str) -> Json:
    record = api_messages.parse_object(raw)
    return record.get(key) if key in record else raw


IndexedFields: TypeAlias = dict[str, Json]


def read_indexed(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read indexed attributes, such as ``gen_ai.prompt.0.content``."""
    attributes = span.attributes
    yield SpanReading(
        input=_parse_indexed_messages(group_by_index(attributes, semconv.PROMPT_PREFIX)),
        output=_parse_indexed_messages(group_by_index(attributes, semconv.COMPLETION_PREFIX)),
    )


def _parse_indexed_messages(numbered: list[IndexedFields]) -> SpanMessages:
    return parse_messages([_make_indexed_message(fields) for fields in numbered])


def _make_indexed_message(fields: IndexedFields) -> JsonObject:
    role = fields.get("role") or "user"
    content = fields.get("content")
    if role == "tool":
        answer = make_response_part(fields.get("tool_call_id"), fields.get("name"), content)
        return {"role": role, "parts": [answer]}
    calls: list[Json] = list(group_by_index(fields, "tool_calls."))
    return {"role": role, "parts": [*parse_parts(content), *normalize_tool_calls(calls)]}


def group_by_index(
    attributes: Mapping[str, Json], prefix: str, inner: str = ""
) -> list[IndexedFields]:
    """Collect the fields below ``<prefix><number>.<inner>``, sorted by number."""
    found: dict[int, IndexedFields] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            number, _, field = name[len(prefix) :].partition(".")
            if number.isdecimal() and field and field.startswith(inner):
                found.setdefault(int(number[:9]), {})[field[len(inner) :]] = value
    return [found[number] for number in sorted(found)]


_OPENINFERENCE_KINDS: Final[Mapping[str, OperationKind]] = {
    "LLM": "inference",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "workflow",
}
_OPENINFERENCE_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
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
    kind = _find_openinference_kind(span)
    values = select_values(attributes, _OPENINFERENCE_VALUES)
    if reason := attributes.get("llm.finish_reason"):
        values[semconv.FINISH_REASONS] = [reason]
    given, returned = attributes.get("input.value"), attributes.get("output.value")
    if kind == "tool":
        yield _read_openinference_tool(values, given, returned)
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


def _find_openinference_kind(span: Span) -> OperationKind:
    kind = _OPENINFERENCE_KINDS.get(
        str(span.attributes.get("openinference.span.kind")).upper(), "other"
    )
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


def _read_openinference_tool(values: dict[str, Json], given: Json, returned: Json) -> SpanReading:
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


_AGENTS_SCOPE = "logfire.openai_agents"


def read_logfire(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span of Logfire or Pydantic AI."""
    attributes = span.attributes
    is_agents_sdk = span.scope == _AGENTS_SCOPE
    kind = _find_agents_kind(span) if is_agents_sdk else _find_logfire_kind(span)
    values: dict[str, Json] = {
        semconv.TOOL_ARGUMENTS: attributes.get("tool_arguments"),
        semconv.TOOL_RESULT: attributes.get("tool_response"),
    }
    if is_agents_sdk and kind == "tool":
        values[semconv.TOOL_NAME] = attributes.get("name")
        values[semconv.TOOL_ARGUMENTS] = attributes.get("input")
        values[semconv.TOOL_RESULT] = attributes.get("output")
    request = api_messages.parse_object(attributes.get("request_data"))
    response = api_messages.parse_object(attributes.get("response_data"))
    if request or response:
        values |= _read_logfire_usage(response.get("usage")) | {
            semconv.REQUEST_MODEL: request.get("model")
        }
    yield SpanReading(
        kind=kind,
        values=values,
        input=_read_logfire_input(span),
        output=_read_logfire_output(span, response),
    )


def _find_logfire_kind(span: Span) -> OperationKind | None:
    return "inference" if "request_data" in span.attributes else None


def _find_agents_kind(span: Span) -> OperationKind | None:
    """Find the kind by what the span of the OpenAI Agents SDK has, as its name is a template."""
    attributes = span.attributes
    if "agent_trace_id" in attributes:
        return "workflow"
    if "tools" in attributes and "handoffs" in attributes:
        return "agent"
    if "response" in attributes or "events" in attributes:
        return "inference"
    return "tool" if "input" in attributes and "name" in attributes else None


def _read_logfire_input(span: Span) -> SpanMessages:
    """Read the messages before the model's answer."""
    attributes = span.attributes
    if "all_messages_events" in attributes or "pydantic_ai.all_messages" in attributes:
        found = _read_logfire_conversation(span)
        return found[: len(found) - _count_answers(found)]
    events = api_messages.list_objects(attributes.get("events"))
    given = [one for one in events if one.get("event.name") != semconv.CHOICE_EVENT]
    if len(given) == len(events) and given and given[-1].get("role") == "assistant":
        given = given[:-1]
    return (
        api_messages.parse_message_list(given, "user")
        or api_messages.parse_input_messages(attributes.get("raw_input"))
        or api_messages.parse_input_messages(attributes.get("request_data"))
    )


def _read_logfire_output(span: Span, response: JsonObject) -> SpanMessages:
    attributes = span.attributes
    if (result := attributes.get("final_result")) is not None:
        text = result if isinstance(result, str) else str(result)
        return api_messages.parse_message_list([{"role": "assistant", "content": text}], "")
    if "all_messages_events" in attributes or "pydantic_ai.all_messages" in attributes:
        found = _read_logfire_conversation(span)
        return found[len(found) - _count_answers(found) :]
    events = api_messages.list_objects(attributes.get("events"))
    return (
        api_messages.parse_output_messages(attributes.get("response"))
        or api_messages.parse_output_messages(events)
        or api_messages.parse_output_messages(response or None)
    )


def _read_logfire_conversation(span: Span) -> SpanMessages:
    attributes = span.attributes
    recorded = attributes.get("all_messages_events") or attributes.get("pydantic_ai.all_messages")
    return api_messages.parse_message_list(recorded, "user")


def _count_answers(found: SpanMessages) -> int:
    return int(bool(found) and found[-1].role == "assistant")


def _read_logfire_usage(usage: Json) -> dict[str, Json]:
    counts = usage if isinstance(usage, dict) else {}
    return {
        semconv.INPUT_TOKENS: counts.get("input_tokens", counts.get("prompt_tokens")),
        semconv.OUTPUT_TOKENS: counts.get("output_tokens", counts.get("completion_tokens")),
    }
