"""Messages from the attributes that hold them."""

from dataclasses import replace
from typing import Final

from agentci.model.json import Json, JsonObject
from agentci.telemetry.foreign import loads, objects_in
from agentci.telemetry.message import EMPTY, Content, Message, Messages
from agentci.telemetry.parts import content_of, parts_of, response_part, tool_call_parts

MAX_MESSAGES_CHARS: Final = 4 * 1024 * 1024


def is_too_long(raw: Json) -> bool:
    """Whether a text is longer than agentevals 0.11.0 reads."""
    return isinstance(raw, str) and len(raw) > MAX_MESSAGES_CHARS


def parse(raw: Json) -> Messages:
    """The messages of an attribute: JSON text, a list or a single object."""
    if is_too_long(raw):
        return ()
    if isinstance(raw, str):
        try:
            raw = loads(raw)
        except ValueError:
            return ()
    return tuple(map(_message, objects_in([raw] if isinstance(raw, dict) else raw)))


def overlooked_calls(tool_calls: Json) -> Content:
    """The tools asked for in ``tool_calls``, which agentevals 0.11.0 carries but never reads."""
    calls = content_of(tool_call_parts(tool_calls)).calls
    return Content(calls=tuple(replace(call, overlooked=True) for call in calls))


def _message(raw: JsonObject) -> Message:
    parts, role = raw.get("parts"), raw.get("role")
    return Message(
        role=role if isinstance(role, str) and role else "user",
        content=content_of(
            objects_in(parts) if isinstance(parts, list) else parts_of(raw.get("content"))
        ),
        overlooked=_overlooked(raw),
    )


def _overlooked(raw: JsonObject) -> Content:
    if "tool_calls" in raw:
        return overlooked_calls(raw["tool_calls"])
    if raw.get("role") == "tool" and raw.get("tool_call_id"):
        answer = content_of(parts_of(raw.get("content"))).text
        return content_of([response_part(raw["tool_call_id"], raw.get("name"), answer)])
    return EMPTY
