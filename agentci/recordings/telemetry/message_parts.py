"""The parts of messages, from the shapes that instrumentations record, and what is in them."""

import json
from collections.abc import Sequence
from typing import Final

from agentci.model.json import Json, JsonObject
from agentci.recordings.telemetry import google
from agentci.recordings.telemetry.json_input import loads, loads_or_text, objects_in, read_value
from agentci.recordings.telemetry.message import CallPart, Content, ResponsePart

PLACEHOLDERS: Final = frozenset({"", "<REDACTED>", "<elided>"})


def content_of(parts: Sequence[JsonObject]) -> Content:
    """The content of parts that have the form of the conventions."""
    texts: list[str] = []
    calls: list[CallPart] = []
    responses: list[ResponsePart] = []
    has_more = False
    for part in parts:
        kind, name = part.get("type"), part.get("name")
        if kind == "text":
            texts.append(_text(part.get("content")))
        elif kind == "tool_call" and isinstance(name, str) and name:
            calls.append(_call(name, part))
        elif kind == "tool_call_response":
            responses.append(_response(part))
        elif kind:
            has_more = True
    return Content(
        text="".join(texts) or None,
        calls=tuple(calls),
        responses=tuple(responses),
        has_more=has_more,
        only_responds=0 < len(responses) == len(parts),
    )


def parts_of(content: Json) -> list[JsonObject]:
    """The parts that a ``content`` stands for: text, a list of anything, or Google's."""
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        return google.parts(content["parts"])
    if isinstance(content, list):
        return [part for item in content for part in _part_of(item)]
    return [] if content is None else [text_part(content)]


def text_part(content: Json) -> JsonObject:
    """A part that says something."""
    return {"type": "text", "content": content}


def response_part(answered: Json, name: Json, answer: Json) -> JsonObject:
    """A part that answers the call of an id; text is taken for JSON where it is."""
    return {"type": "tool_call_response", "id": answered, "name": name, "response": answer}


def tool_call_parts(tool_calls: Json) -> list[JsonObject]:
    """The parts that ``tool_calls`` stand for, in the style of OpenAI or of LangChain."""
    listed = loads_or_text(tool_calls) if isinstance(tool_calls, str) else tool_calls
    return [_tool_call_part(call) for call in objects_in(listed)]


def _tool_call_part(call: JsonObject) -> JsonObject:
    function = call.get("function")
    said = function if isinstance(function, dict) else call
    return {
        "type": "tool_call",
        "id": call.get("id"),
        "name": said.get("name"),
        "arguments": said.get("arguments", said.get("args")),
    }


def _part_of(item: Json) -> list[JsonObject]:
    if isinstance(item, str):
        return [text_part(item)]
    if not isinstance(item, dict):
        return []
    kind = item.get("type")
    if kind == "text" or (not kind and "text" in item):
        return [text_part(item.get("content", item.get("text")))]
    return [item] if kind else []


def _text(content: Json) -> str:
    if content is None:
        return ""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    return "" if text.strip() in PLACEHOLDERS else text


def _call(name: str, part: JsonObject) -> CallPart:
    arguments = part.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = loads(arguments)
        except ValueError:
            arguments = None
    return CallPart(name=name, id=_identifier(part.get("id")), arguments=arguments)


def _response(part: JsonObject) -> ResponsePart:
    value = part.get("response")
    return ResponsePart(
        name=_identifier(part.get("name")),
        id=_identifier(part.get("id")),
        value=read_value(value),
    )


def _identifier(raw: Json) -> str | None:
    return str(raw) if isinstance(raw, str | int) and raw else None
