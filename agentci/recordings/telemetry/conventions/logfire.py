"""Reads what Logfire and Pydantic AI record beside the GenAI conventions."""

from collections.abc import Iterator, Sequence

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.messages import SpanMessages
from agentci.recordings.telemetry.spans import OperationKind, Span, SpanEvent, SpanReading

_AGENTS_SCOPE = "logfire.openai_agents"


def read_logfire(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span of Logfire or Pydantic AI."""
    attributes = span.attributes
    is_agents_sdk = span.scope == _AGENTS_SCOPE
    kind = _find_agents_kind(span) if is_agents_sdk else _find_kind(span)
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
        values |= _read_usage(response.get("usage")) | {semconv.REQUEST_MODEL: request.get("model")}
    yield SpanReading(
        kind=kind, values=values, input=_read_input(span), output=_read_output(span, response)
    )


def _find_kind(span: Span) -> OperationKind | None:
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


def _read_input(span: Span) -> SpanMessages:
    """Read the messages before the model's answer."""
    attributes = span.attributes
    if "all_messages_events" in attributes or "pydantic_ai.all_messages" in attributes:
        found = _read_conversation(span)
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


def _read_output(span: Span, response: JsonObject) -> SpanMessages:
    attributes = span.attributes
    if (result := attributes.get("final_result")) is not None:
        text = result if isinstance(result, str) else str(result)
        return api_messages.parse_message_list([{"role": "assistant", "content": text}], "")
    if "all_messages_events" in attributes or "pydantic_ai.all_messages" in attributes:
        found = _read_conversation(span)
        return found[len(found) - _count_answers(found) :]
    events = api_messages.list_objects(attributes.get("events"))
    return (
        api_messages.parse_output_messages(attributes.get("response"))
        or api_messages.parse_output_messages(events)
        or api_messages.parse_output_messages(response or None)
    )


def _read_conversation(span: Span) -> SpanMessages:
    attributes = span.attributes
    recorded = attributes.get("all_messages_events") or attributes.get("pydantic_ai.all_messages")
    return api_messages.parse_message_list(recorded, "user")


def _count_answers(found: SpanMessages) -> int:
    return int(bool(found) and found[-1].role == "assistant")


def _read_usage(usage: Json) -> dict[str, Json]:
    counts = usage if isinstance(usage, dict) else {}
    return {
        semconv.INPUT_TOKENS: counts.get("input_tokens", counts.get("prompt_tokens")),
        semconv.OUTPUT_TOKENS: counts.get("output_tokens", counts.get("completion_tokens")),
    }
