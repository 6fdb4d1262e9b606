"""Messages spread over numbered attributes: ``gen_ai.prompt.0.content`` and its like."""

from collections.abc import Mapping
from typing import TypeAlias

from agentci.model.json import Json, JsonObject
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.message import Messages
from agentci.recordings.telemetry.message_attributes import parse
from agentci.recordings.telemetry.message_parts import parts_of, response_part, tool_call_parts
from agentci.recordings.telemetry.source_layer import Layer

Fields: TypeAlias = dict[str, Json]


def layer(attributes: Mapping[str, Json]) -> Layer:
    """What numbered attributes say."""
    return Layer(
        input=_messages(_numbered(attributes, semconv.PROMPT)),
        output=_messages(_numbered(attributes, semconv.COMPLETION)),
    )


def _messages(numbered: list[Fields]) -> Messages:
    return parse([_message(fields) for fields in numbered])


def _message(fields: Fields) -> JsonObject:
    role = fields.get("role") or "user"
    content = fields.get("content")
    if role == "tool":
        answer = response_part(fields.get("tool_call_id"), fields.get("name"), content)
        return {"role": role, "parts": [answer]}
    calls: list[Json] = list(_numbered(fields, "tool_calls."))
    return {"role": role, "parts": [*parts_of(content), *tool_call_parts(calls)]}


def _numbered(attributes: Mapping[str, Json], prefix: str) -> list[Fields]:
    """The fields below ``<prefix><number>.``, in the order of the numbers."""
    found: dict[int, Fields] = {}
    for name, value in attributes.items():
        number, _, field = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and number.isdecimal() and field:
            found.setdefault(int(number[:9]), {})[field] = value
    return [found[number] for number in sorted(found)]
