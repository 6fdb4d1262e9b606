"""Reads OpenTelemetry's GenAI conventions: attributes, events, logs and former names.

Also reads what Google's ADK adds to them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject, replace
from agentci.recordings.telemetry import messages, semconv
from agentci.recordings.telemetry.json_input import iterate_objects, parse_int64, parse_json_or_text
from agentci.recordings.telemetry.messages import (
    EMPTY_CONTENT,
    MessageContent,
    SpanMessage,
    extract_text,
    extract_tool_calls,
    find_unread_parts,
    has_content,
    make_response_part,
    make_text_part,
    normalize_tool_calls,
    parse_content,
    parse_messages,
    parse_parts,
)
from agentci.recordings.telemetry.spans import (
    NO_ATTRIBUTES,
    OperationKind,
    Span,
    SpanEvent,
    SpanReading,
    classify_span,
)

# Current names, each with its former name.
_RENAMED_ATTRIBUTES: Final = (
    (semconv.INPUT_TOKENS, semconv.PROMPT_TOKENS),
    (semconv.OUTPUT_TOKENS, semconv.COMPLETION_TOKENS),
    (semconv.CACHE_WRITE_TOKENS, semconv.CACHE_CREATION_TOKENS),
    (semconv.COST, semconv.OPERATION_COST),
    (semconv.COST, semconv.COST_USD),
    (semconv.TOOL_NAME, semconv.MCP_TOOL_NAME),
)


def read_genai(span: Span, logs: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read attributes, then former names, then events and logs."""
    attributes = span.attributes
    yield _read_current_attributes(attributes, classify_span(span))
    renamed = {now: attributes[old] for now, old in _RENAMED_ATTRIBUTES if old in attributes}
    if reason := attributes.get(semconv.FINISH_REASON):
        renamed[semconv.FINISH_REASONS] = reason if isinstance(reason, list) else [reason]
    if renamed:
        yield SpanReading(values=renamed)
    if span.events or logs:
        yield from _read_event_sources(span.events, logs)


def _read_current_attributes(
    attributes: Mapping[str, Json], kind: OperationKind | None = None
) -> SpanReading:
    """Read attributes under their current names."""
    return SpanReading(
        kind=kind,
        values=attributes,
        input=parse_messages(attributes.get(semconv.INPUT_MESSAGES)),
        output=parse_messages(attributes.get(semconv.OUTPUT_MESSAGES)),
        failed=None if attributes.get(semconv.TOOL_STATUS) == "unknown" else False,
    )


def _read_event_sources(
    events: Sequence[SpanEvent], logs: Sequence[SpanEvent]
) -> Iterator[SpanReading]:
    for event in (*events, *logs):
        if event.name == semconv.DETAILS_EVENT:
            yield _read_current_attributes(event.payload)
    for source in (events, sorted(logs, key=lambda log: log.time)):
        messages = [event for event in source if event.name in semconv.MESSAGE_EVENTS]
        if messages:
            yield read_message_events(messages)
            return


def read_message_events(events: Sequence[SpanEvent]) -> SpanReading:
    """Read message events, in their order."""
    events = [replace(event, payload=_unwrap_payload(event.payload)) for event in events]
    choices = [event.payload for event in events if event.name == semconv.CHOICE_EVENT]
    output = tuple(map(_parse_choice_event, choices))
    reasons = [one.get("finish_reason") for one in choices] if has_content(output) else []
    return SpanReading(
        values={semconv.FINISH_REASONS: [one.lower() for one in reasons if isinstance(one, str)]},
        input=tuple(
            _INPUT_EVENT_PARSERS[event.name](event.payload)
            for event in events
            if event.name in _INPUT_EVENT_PARSERS
        ),
        output=output,
    )


def _unwrap_payload(payload: JsonObject) -> JsonObject:
    """Return what an event says; the clients of Azure AI record it as one JSON text."""
    raw = payload.get(semconv.EVENT_CONTENT)
    said = parse_json_or_text(raw) if isinstance(raw, str) else raw
    return {**payload, **said} if isinstance(said, dict) else payload


def _parse_user_event(payload: JsonObject) -> SpanMessage:
    return SpanMessage(role="user", content=parse_content(parse_parts(payload.get("content"))))


def _parse_assistant_event(payload: JsonObject) -> SpanMessage:
    return SpanMessage(role="assistant", content=_parse_event_content(payload))


def _parse_tool_event(payload: JsonObject) -> SpanMessage:
    call_id = payload.get("id", payload.get("tool_call_id"))
    answer = make_response_part(call_id, payload.get("name"), payload.get("content"))
    return SpanMessage(role="tool", content=parse_content([answer]))


def _parse_choice_event(payload: JsonObject) -> SpanMessage:
    message = payload.get("message")
    if isinstance(message, dict):
        return SpanMessage(role="assistant", content=_parse_event_content(message))
    return SpanMessage(
        role="assistant",
        content=parse_content(parse_parts(payload.get("content"))),
        fallback=_parse_choice_message(message) if isinstance(message, str) else EMPTY_CONTENT,
    )


def _parse_event_content(payload: JsonObject) -> MessageContent:
    parts = parse_parts(payload.get("content"))
    return parse_content([*parts, *normalize_tool_calls(payload.get("tool_calls"))])


def _parse_choice_message(message: str) -> MessageContent:
    """Parse a ``message`` that is JSON text, as in span events, or plain text."""
    parsed = parse_messages(message)
    if not parsed:
        return parse_content([make_text_part(message)])
    return MessageContent(
        text=extract_text(parsed),
        unread=tuple(find_unread_parts(parsed)),
        calls=tuple(replace(call, is_fallback=True) for call in extract_tool_calls(parsed)),
    )


_INPUT_EVENT_PARSERS: Final[Mapping[str, Callable[[JsonObject], SpanMessage]]] = {
    semconv.USER_EVENT: _parse_user_event,
    semconv.ASSISTANT_EVENT: _parse_assistant_event,
    semconv.TOOL_EVENT: _parse_tool_event,
}


_CONTENT: Final = frozenset(
    {
        *(semconv.ADK_REQUEST, semconv.ADK_RESPONSE),
        *(semconv.ADK_TOOL_ARGUMENTS, semconv.ADK_TOOL_RESULT),
    }
)
ADK_NO_ARGUMENTS: Final = "N/A"

_ADK_NO_RESULTS: Final = (semconv.NOT_SPECIFIED, {"result": semconv.NOT_SPECIFIED})
_ADK_USAGE_FIELDS: Final[Mapping[str, str]] = {
    semconv.INPUT_TOKENS: "prompt_token_count",
    semconv.OUTPUT_TOKENS: "candidates_token_count",
    semconv.CACHE_READ_TOKENS: "cached_content_token_count",
}


def read_adk(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read the attributes of an ADK span."""
    attributes = span.attributes
    if _CONTENT.isdisjoint(attributes):
        return
    request = _decode_adk_object(attributes.get(semconv.ADK_REQUEST))
    response = _decode_adk_object(attributes.get(semconv.ADK_RESPONSE))
    content, usage = response.get("content"), _decode_adk_object(response.get("usage_metadata"))
    reason = response.get("finish_reason")
    yield SpanReading(
        values={
            semconv.REQUEST_MODEL: request.get("model"),
            semconv.RESPONSE_MODEL: response.get("model_version"),
            semconv.FINISH_REASONS: [reason.lower()] if isinstance(reason, str) else None,
            semconv.TOOL_ARGUMENTS: _clean_adk_arguments(
                attributes.get(semconv.ADK_TOOL_ARGUMENTS)
            ),
            semconv.TOOL_RESULT: _clean_adk_result(attributes.get(semconv.ADK_TOOL_RESULT)),
            **{name: parse_int64(usage.get(count)) for name, count in _ADK_USAGE_FIELDS.items()},
        },
        input=parse_messages(
            [
                messages.convert_google_message(item, "user")
                for item in iterate_objects(request.get("contents"))
            ]
        ),
        output=parse_messages(
            messages.convert_google_message(content, "assistant")
            if isinstance(content, dict)
            else None
        ),
    )


def _decode_adk_object(raw: Json) -> JsonObject:
    value = parse_json_or_text(raw) if isinstance(raw, str) else raw
    return value if isinstance(value, dict) else NO_ATTRIBUTES


def _clean_adk_arguments(raw: Json) -> Json:
    return None if raw == ADK_NO_ARGUMENTS else raw


def _clean_adk_result(raw: Json) -> Json:
    value = parse_json_or_text(raw) if isinstance(raw, str) else raw
    return None if value in _ADK_NO_RESULTS else raw
