"""Messages from the attributes that hold them."""

from collections.abc import Sequence
from typing import Final

from agentci.model.json import Json, JsonObject
from agentci.model.values import replace
from agentci.recordings.telemetry.json_input import loads, objects_in
from agentci.recordings.telemetry.message import EMPTY, Content, Message, Messages
from agentci.recordings.telemetry.message_parts import (
    content_of,
    parts_of,
    response_part,
    text_part,
    tool_call_parts,
)

MAX_MESSAGES_CHARS: Final = 4 * 1024 * 1024

# Parts that say something in ``text`` where the conventions want it in ``content``.
_SAID: Final = (None, "text", "input_text", "output_text")


def is_too_long(raw: Json) -> bool:
    """Whether a text is longer than agentevals 0.11.0 reads."""
    return isinstance(raw, str) and len(raw) > MAX_MESSAGES_CHARS


def parse(raw: Json) -> Messages:
    """The messages of an attribute: JSON text, a list or a single object."""
    if raw is None or is_too_long(raw):
        return ()
    if isinstance(raw, str):
        try:
            raw = loads(raw)
        except ValueError:
            return ()
    return tuple(map(_message, objects_in([raw] if isinstance(raw, dict) else raw)))


def _message(raw: JsonObject) -> Message:
    parts, role = raw.get("parts"), raw.get("role")
    listed = list(objects_in(parts)) if isinstance(parts, list) else parts_of(raw.get("content"))
    return Message(
        role=role if isinstance(role, str) and role else "user",
        content=content_of(listed),
        overlooked=_overlooked(raw, listed),
    )


def _overlooked(raw: JsonObject, parts: Sequence[JsonObject]) -> Content:
    """What agentevals 0.11.0 carries but never reads."""
    if "tool_calls" in raw:
        calls = content_of(tool_call_parts(raw["tool_calls"])).calls
        return Content(calls=tuple(replace(call, overlooked=True) for call in calls))
    if raw.get("role") == "tool" and raw.get("tool_call_id"):
        answer = content_of(parts_of(raw.get("content"))).text
        return content_of([response_part(raw["tool_call_id"], raw.get("name"), answer)])
    said = [part["text"] for part in parts if "text" in part and part.get("type") in _SAID]
    return content_of([text_part(words) for words in said]) if said else EMPTY
