"""What spans of Google's Agent Development Kit say in attributes of their own."""

from collections.abc import Mapping
from typing import Final

from agentci.model.json import Json, JsonObject
from agentci.recordings.telemetry import google, semconv
from agentci.recordings.telemetry.json_input import loads_or_text, objects_in, whole
from agentci.recordings.telemetry.message_attributes import parse
from agentci.recordings.telemetry.source_layer import Layer
from agentci.recordings.telemetry.span import NOTHING

NO_ARGUMENTS: Final = "N/A"

_NO_RESULT: Final = (semconv.NOT_SPECIFIED, {"result": semconv.NOT_SPECIFIED})
_USAGE: Final[Mapping[str, str]] = {
    semconv.INPUT_TOKENS: "prompt_token_count",
    semconv.OUTPUT_TOKENS: "candidates_token_count",
    semconv.CACHE_READ_TOKENS: "cached_content_token_count",
}


def layer(attributes: Mapping[str, Json]) -> Layer:
    """What the attributes of an ADK span say."""
    request = _object(attributes.get(semconv.ADK_REQUEST))
    response = _object(attributes.get(semconv.ADK_RESPONSE))
    content, usage = response.get("content"), _object(response.get("usage_metadata"))
    reason = response.get("finish_reason")
    return Layer(
        values={
            semconv.REQUEST_MODEL: request.get("model"),
            semconv.RESPONSE_MODEL: response.get("model_version"),
            semconv.FINISH_REASONS: [reason.lower()] if isinstance(reason, str) else None,
            semconv.TOOL_ARGUMENTS: _arguments(attributes.get(semconv.ADK_TOOL_ARGUMENTS)),
            semconv.TOOL_RESULT: _result(attributes.get(semconv.ADK_TOOL_RESULT)),
            **{name: whole(usage.get(count)) for name, count in _USAGE.items()},
        },
        input=parse([google.message(item, "user") for item in objects_in(request.get("contents"))]),
        output=parse(google.message(content, "assistant") if isinstance(content, dict) else None),
    )


def _object(raw: Json) -> JsonObject:
    value = loads_or_text(raw) if isinstance(raw, str) else raw
    return value if isinstance(value, dict) else NOTHING


def _arguments(raw: Json) -> Json:
    return None if raw == NO_ARGUMENTS else raw


def _result(raw: Json) -> Json:
    value = loads_or_text(raw) if isinstance(raw, str) else raw
    return None if value in _NO_RESULT else raw
