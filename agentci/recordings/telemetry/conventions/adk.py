"""Reads what Google's Agent Development Kit records beside the GenAI conventions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry import messages, semconv
from agentci.recordings.telemetry.json_input import iterate_objects, parse_int64, parse_json_or_text
from agentci.recordings.telemetry.messages import parse_messages
from agentci.recordings.telemetry.spans import NO_ATTRIBUTES, Span, SpanEvent, SpanReading

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
