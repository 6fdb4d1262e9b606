"""The sources of span data: message events, ADK attributes and indexed attributes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

from agentci.model.json import Json, JsonObject
from agentci.model.values import replace
from agentci.recordings.telemetry import messages, semconv
from agentci.recordings.telemetry.json_input import iterate_objects, parse_int64, parse_json_or_text
from agentci.recordings.telemetry.messages import (
    EMPTY_CONTENT,
    MessageContent,
    SpanMessage,
    SpanMessages,
    extract_text,
    extract_tool_calls,
    has_content,
    make_response_part,
    make_text_part,
    parse_content,
    parse_messages,
    parse_parts,
    parse_tool_call_parts,
)
from agentci.recordings.telemetry.spans import NO_ATTRIBUTES, SpanEvent, make_no_attributes


class SourceLayer(Struct, frozen=True, kw_only=True):
    """The data of a span from one source.

    Attributes:
        values: by current names of the conventions.
        input, output: messages to and from the model; empty if the source has none.
    """

    values: Mapping[str, Json] = field(default_factory=make_no_attributes)
    input: SpanMessages = ()
    output: SpanMessages = ()


def read_message_events(events: Sequence[SpanEvent]) -> SourceLayer:
    """Read message events, in their order."""
    choices = [event.payload for event in events if event.name == semconv.CHOICE_EVENT]
    output = tuple(map(_parse_choice_event, choices))
    reasons = [one.get("finish_reason") for one in choices] if has_content(output) else []
    return SourceLayer(
        values={semconv.FINISH_REASONS: [one.lower() for one in reasons if isinstance(one, str)]},
        input=tuple(
            _INPUT_EVENT_PARSERS[event.name](event.payload)
            for event in events
            if event.name in _INPUT_EVENT_PARSERS
        ),
        output=output,
    )


def _parse_user_event(payload: JsonObject) -> SpanMessage:
    return SpanMessage(role="user", content=parse_content(parse_parts(payload.get("content"))))


def _parse_assistant_event(payload: JsonObject) -> SpanMessage:
    return SpanMessage(role="assistant", content=_parse_event_content(payload))


def _parse_tool_event(payload: JsonObject) -> SpanMessage:
    answer = make_response_part(payload.get("id"), payload.get("name"), payload.get("content"))
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
    return parse_content([*parts, *parse_tool_call_parts(payload.get("tool_calls"))])


def _parse_choice_message(message: str) -> MessageContent:
    """Parse a ``message`` that is JSON text, as in span events, or plain text."""
    parsed = parse_messages(message)
    if not parsed:
        return parse_content([make_text_part(message)])
    return MessageContent(
        text=extract_text(parsed),
        calls=tuple(replace(call, is_fallback=True) for call in extract_tool_calls(parsed)),
    )


_INPUT_EVENT_PARSERS: Final[Mapping[str, Callable[[JsonObject], SpanMessage]]] = {
    semconv.USER_EVENT: _parse_user_event,
    semconv.ASSISTANT_EVENT: _parse_assistant_event,
    semconv.TOOL_EVENT: _parse_tool_event,
}


ADK_NO_ARGUMENTS: Final = "N/A"

_ADK_NO_RESULTS: Final = (semconv.NOT_SPECIFIED, {"result": semconv.NOT_SPECIFIED})
_ADK_USAGE_FIELDS: Final[Mapping[str, str]] = {
    semconv.INPUT_TOKENS: "prompt_token_count",
    semconv.OUTPUT_TOKENS: "candidates_token_count",
    semconv.CACHE_READ_TOKENS: "cached_content_token_count",
}


def read_adk_attributes(attributes: Mapping[str, Json]) -> SourceLayer:
    """Read the attributes of an ADK span."""
    request = _decode_adk_object(attributes.get(semconv.ADK_REQUEST))
    response = _decode_adk_object(attributes.get(semconv.ADK_RESPONSE))
    content, usage = response.get("content"), _decode_adk_object(response.get("usage_metadata"))
    reason = response.get("finish_reason")
    return SourceLayer(
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


IndexedFields: TypeAlias = dict[str, Json]


def read_indexed_attributes(attributes: Mapping[str, Json]) -> SourceLayer:
    """Read indexed attributes, such as ``gen_ai.prompt.0.content``."""
    return SourceLayer(
        input=_parse_indexed_messages(_group_by_index(attributes, semconv.PROMPT_PREFIX)),
        output=_parse_indexed_messages(_group_by_index(attributes, semconv.COMPLETION_PREFIX)),
    )


def _parse_indexed_messages(numbered: list[IndexedFields]) -> SpanMessages:
    return parse_messages([_make_indexed_message(fields) for fields in numbered])


def _make_indexed_message(fields: IndexedFields) -> JsonObject:
    role = fields.get("role") or "user"
    content = fields.get("content")
    if role == "tool":
        answer = make_response_part(fields.get("tool_call_id"), fields.get("name"), content)
        return {"role": role, "parts": [answer]}
    calls: list[Json] = list(_group_by_index(fields, "tool_calls."))
    return {"role": role, "parts": [*parse_parts(content), *parse_tool_call_parts(calls)]}


def _group_by_index(attributes: Mapping[str, Json], prefix: str) -> list[IndexedFields]:
    """Collect the fields below ``<prefix><number>.``, sorted by number."""
    found: dict[int, IndexedFields] = {}
    for name, value in attributes.items():
        number, _, field = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and number.isdecimal() and field:
            found.setdefault(int(number[:9]), {})[field] = value
    return [found[number] for number in sorted(found)]
